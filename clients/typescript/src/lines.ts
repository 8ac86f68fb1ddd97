/**
 * Splits text into lines at `\n` only: JSON can contain U+2028 and U+2029, at which `node:readline` of some versions
 * splits, too.
 */
export class Lines {
  // The pieces of an unfinished line, which are joined once: a line can have many megabytes.
  #pieces: string[] = [];

  /** Adds text; returns the lines that are complete. */
  push(text: string): string[] {
    const parts = text.split('\n');
    const rest = parts.pop()!;
    if (parts.length > 0) {
      parts[0] = this.#pieces.join('') + parts[0];
      this.#pieces = [];
    }
    if (rest !== '') this.#pieces.push(rest);
    return parts;
  }
}
