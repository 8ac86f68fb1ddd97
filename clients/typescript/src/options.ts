// Checks of the options in programs without types: a misspelt name would silently mean the default.
import { invalid } from './errors.js';

const CLIENT = ['onPermission', 'onQuestion', 'handlers', 'chunkProfile', 'clientInfo'];

/** Throws if `options` is not an object with these options, or those of every client. */
export function checkOptions(caller: string, options: unknown, own: string[]): void {
  const known = [...own, ...CLIENT];
  if (typeof options !== 'object' || options === null || Array.isArray(options)) {
    throw invalid(`${caller} takes an object: ${caller}({ ${own[0]}: … })`);
  }
  const unknown = Object.keys(options).find((name) => !known.includes(name));
  if (unknown !== undefined) {
    throw invalid(`${caller} has no option "${unknown}"; it has ${known.join(', ')}`);
  }
}

/** Throws if an agent that is named by a string cannot be a name. */
export function checkAgentName(agent: string): void {
  if (!/[\s/]/.test(agent)) return;
  const list = agent.trim().split(/\s+/).map((word) => `'${word}'`);
  throw invalid(`the agent "${agent}" is not a name; write a command line as a list: agent: [${list.join(', ')}]`);
}
