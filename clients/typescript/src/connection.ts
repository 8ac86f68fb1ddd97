// JSON-RPC over one channel: a subprocess or a WebSocket, from its start to its end.
import { AcpipeError, invalidMessage, type ErrorKind } from './errors.js';
import { BadMessages, brokenFrame, frameOf, type Frame, type Id } from './frame.js';
import { faultOfResult } from './shapes.js';

/** Longest message in bytes: acpipe writes lines of up to 64 MiB. */
export const LINE_LIMIT = 2 ** 27;

const INVALID_PARAMS = -32602;

/** Carries messages. */
export interface Channel {
  /** Sends one message, which is JSON text without line breaks. */
  send(text: string): void;
  /** Closes the channel; resolves when it is closed. */
  close(): Promise<void>;
}

/** Events of a channel. */
export interface ChannelEvents {
  /** A message. `isIntact`: whether all of its bytes were text. */
  message(text: string, isIntact?: boolean): void;
  /** The channel is closed. Later calls have no effect. */
  closed(error: AcpipeError): void;
}

/** Opens a channel. Each reconnect opens another one. */
export type Connector = (events: ChannelEvents) => Promise<Channel>;

/** Receives notifications and requests of acpipe. */
export interface Receiver {
  notified(method: string, params: unknown): void;
  /** Returns why the request is dropped; `undefined` if it is handled. */
  requested(connection: Connection, id: Id, method: string, params: unknown): string | undefined;
  closed(error: AcpipeError): void;
}

/** The error of a message over the limit, after which nothing can be read. */
export function tooLong(what: string): AcpipeError {
  const advice = 'the client is closed: start a new one, and install the package and the program from the same release';
  return new AcpipeError('invalidMessage', `${what} of more than ${LINE_LIMIT / 2 ** 20} MiB, the limit of this package; ${advice}`);
}

interface Pending {
  method: string;
  resolve(result: unknown): void;
  reject(error: AcpipeError): void;
}

export class Connection {
  readonly #receiver: Receiver;
  readonly #bad = new BadMessages('acpipe');
  readonly #pending = new Map<Id, Pending>();
  #channel: Channel | undefined;
  #error: AcpipeError | undefined;
  #lastId = 0;

  private constructor(receiver: Receiver) {
    this.#receiver = receiver;
  }

  static async open(connector: Connector, receiver: Receiver): Promise<Connection> {
    const connection = new Connection(receiver);
    connection.#channel = await connector({
      message: (text, isIntact = true) => connection.#receive(text, isIntact),
      closed: (error) => connection.#closed(error),
    });
    return connection;
  }

  /** Sends a request. `caller` is the stack of the call, which that of a later error does not have. */
  call(method: string, params: unknown, caller = new Error().stack): Promise<unknown> {
    return new Promise((resolve, reject) => {
      if (this.#error) return reject(this.#error);
      const id = ++this.#lastId;
      const text = encode({ id, method, params });
      this.#pending.set(id, { method, resolve, reject: (error) => reject(withCaller(error, caller)) });
      this.#channel!.send(text);
    });
  }

  respond(id: string | number, result: unknown): void {
    this.#send({ id, result });
  }

  /** Responds that this client cannot handle a request. */
  refuse(id: string | number, code: number, message: string): void {
    this.#send({ id, error: { code, message } });
  }

  close(): Promise<void> {
    return this.#channel!.close();
  }

  #send(message: object): void {
    const text = encode(message);
    if (!this.#error) this.#channel!.send(text);
  }

  #receive(text: string, isIntact: boolean): void {
    const frame = isIntact ? frameOf(text) : brokenFrame(text);
    const fault = this.#handle(frame);
    if (fault !== undefined) this.#bad.log(fault, text);
  }

  /** Handles a message; returns why it is dropped. */
  #handle(frame: Frame): string | undefined {
    if (frame.type === 'notification') {
      this.#receiver.notified(frame.method, frame.params);
      return undefined;
    }
    if (frame.type === 'request') {
      const { id, method, params, fault } = frame;
      if (fault !== undefined) this.refuse(id, INVALID_PARAMS, fault);
      return fault ?? this.#receiver.requested(this, id, method, params);
    }
    const pending = frame.id === undefined ? undefined : this.#pending.get(frame.id);
    if (!pending) return frame.type === 'bad' ? frame.why : 'it answers no call of this client';
    this.#pending.delete(frame.id!);
    settle(pending, frame);
    return undefined;
  }

  #closed(error: AcpipeError): void {
    if (this.#error) return;
    this.#error = error;
    // The receiver first: a rejected call may be repeated, and must find that the connection is gone.
    this.#receiver.closed(error);
    for (const { reject } of this.#pending.values()) reject(error);
    this.#pending.clear();
  }
}

const encode = (message: object) => JSON.stringify({ jsonrpc: '2.0', ...message });

function settle({ method, resolve, reject }: Pending, frame: Exclude<Frame, { type: 'notification' | 'request' }>): void {
  if (frame.type === 'failure') {
    const kind = typeof frame.data['kind'] === 'string' ? (frame.data['kind'] as ErrorKind) : 'internal';
    return reject(new AcpipeError(kind, frame.message, frame.data));
  }
  const fault = frame.type === 'bad' ? frame.why : faultOfResult(method, frame.result);
  if (fault !== undefined) return reject(invalidMessage(`the response to \`${method}\``, fault));
  resolve((frame as { result: unknown }).result);
}

/** Gives an error the frames of the call that it ends. */
function withCaller(error: AcpipeError, caller: string | undefined): AcpipeError {
  const frames = caller?.split('\n').filter((line) => /^\s+at /.test(line)) ?? [];
  // Browsers have other formats of stacks.
  if (frames.length > 0) error.stack = [`${error.name}: ${error.message}`, ...frames].join('\n');
  return error;
}
