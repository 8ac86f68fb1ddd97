// What a message of acpipe is: a response, a request, a notification, or none of them. clients/bad-peers.json lists what
// both packages do with one that is none of them.
import { mismatch, PARAMS } from './shapes.js';

/** Longest piece of a bad message in the log. */
const SHOWN = 200;

/** Bad messages that are logged; a peer that sends nothing else must not fill the log. */
const LOGGED = 20;

export type Id = string | number;

export type Frame =
  | { type: 'result'; id: Id; result: unknown }
  | { type: 'failure'; id: Id; message: string; data: Record<string, unknown> }
  | { type: 'request'; id: Id; method: string; params: unknown; fault: string | undefined }
  | { type: 'notification'; method: string; params: unknown }
  /** Another message. With the id of a call, it is the only response that the call gets. */
  | { type: 'bad'; why: string; id?: Id };

/** Classifies a message. */
export function frameOf(text: string): Frame {
  const message = parse(text);
  if (message === undefined) return bad('it is not JSON');
  if (!isObject(message)) return bad('it is not an object');
  // `null` is a field that is absent.
  const [id, method, error] = [message['id'] ?? undefined, message['method'] ?? undefined, message['error'] ?? undefined];
  const { params = {}, result } = message;
  if (id !== undefined && typeof id !== 'string' && !Number.isInteger(id)) return bad('the id is neither text nor an integer');
  const number = id as Id | undefined;
  if (method !== undefined) {
    if (typeof method !== 'string') return bad('the method is not text', number);
    if ((result ?? error) !== undefined) return bad('it has a method and a result or an error', number);
    const shape = PARAMS.get(method);
    const wrong = shape && mismatch(params, shape);
    const fault = wrong && `the parameters of ${method}: ${wrong}`;
    if (number !== undefined) return { type: 'request', id: number, method, params, fault };
    return fault === undefined ? { type: 'notification', method, params } : bad(fault);
  }
  if (number === undefined) return bad('it has neither a method nor an id');
  if (error === undefined) {
    return result === undefined ? bad('it has neither a result nor an error', number) : { type: 'result', id: number, result };
  }
  if (result !== undefined && result !== null) return bad('it has a result and an error', number);
  if (!isObject(error) || typeof error['message'] !== 'string') return bad('the error is not an object with a message', number);
  return { type: 'failure', id: number, message: error['message'], data: isObject(error['data']) ? error['data'] : {} };
}

/** The frame of bytes that are not UTF-8, decoded with replacements. Its text cannot be trusted, but its id is that of a call. */
export function brokenFrame(text: string): Frame {
  const frame = frameOf(text);
  return bad('it is not valid UTF-8', 'id' in frame ? frame.id : undefined);
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Logs the bad messages of one stream. */
export class BadMessages {
  readonly #sender: string;
  #count = 0;

  constructor(sender: string) {
    this.#sender = sender;
  }

  log(why: string, text: string): void {
    this.#count += 1;
    if (this.#count <= LOGGED) console.warn(`acpipe: ${this.#sender} sent a message that cannot be read: ${shown(why)}: ${shown(text)}`);
    else if (this.#count === LOGGED + 1) console.warn('acpipe: more such messages are not logged');
  }
}

/** The beginning of a text for the log, without characters that control a terminal. */
function shown(text: string): string {
  return text.slice(0, SHOWN).trimEnd().replace(/[\p{C}\u2028\u2029]/gu, escaped);
}

const escaped = (character: string) => `\\u{${character.codePointAt(0)!.toString(16)}}`;

function bad(why: string, id?: Id): Frame {
  return { type: 'bad', why, ...(id !== undefined && { id }) };
}

/** The value of JSON text; `undefined` for other text. */
export function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
