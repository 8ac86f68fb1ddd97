// Control sequences of terminals: ESC [ … letter, ESC ] … BEL, and other escapes of one character.
const CONTROL = /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[@-_])/g;

/** Removes colors and the like, and shows of a line that was overwritten with `\r` its last state. */
export function plainText(output: string): string {
  const lines = output.replace(CONTROL, '').replaceAll('\r\n', '\n').split('\n');
  return lines.map((line) => line.split('\r').findLast((state) => state !== '') ?? '').join('\n');
}
