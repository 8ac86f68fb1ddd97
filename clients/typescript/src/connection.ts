// JSON-RPC over one channel: a subprocess or a WebSocket, from its start to its end.
import { AcpipeError, type ErrorKind } from './errors.js';

/** Carries messages. */
export interface Channel {
  /** Sends one message, which is JSON text without line breaks. */
  send(text: string): void;
  /** Closes the channel; resolves when it is closed. */
  close(): Promise<void>;
}

/** Events of a channel. */
export interface ChannelEvents {
  message(text: string): void;
  /** The channel is closed. Called once. */
  closed(error: AcpipeError): void;
}

/** Opens a channel. Each reconnect opens another one. */
export type Connector = (events: ChannelEvents) => Promise<Channel>;

/** Receives notifications and requests of acpipe. */
export interface Receiver {
  notified(method: string, params: unknown): void;
  requested(connection: Connection, id: string | number, method: string, params: unknown): void;
  closed(error: AcpipeError): void;
}

interface ErrorData {
  kind?: string;
  [name: string]: unknown;
}

interface Message {
  id?: string | number;
  method?: string;
  params?: unknown;
  result?: unknown;
  error?: { message: string; data?: ErrorData };
}

interface Pending {
  resolve(result: unknown): void;
  reject(error: AcpipeError): void;
}

export class Connection {
  readonly #receiver: Receiver;
  readonly #pending = new Map<number, Pending>();
  #channel: Channel | undefined;
  #error: AcpipeError | undefined;
  #lastId = 0;

  private constructor(receiver: Receiver) {
    this.#receiver = receiver;
  }

  static async open(connector: Connector, receiver: Receiver): Promise<Connection> {
    const connection = new Connection(receiver);
    connection.#channel = await connector({
      message: (text) => connection.#receive(JSON.parse(text) as Message),
      closed: (error) => connection.#closed(error),
    });
    return connection;
  }

  /** Sends a request. `caller` is the stack of the call, which that of a later error does not have. */
  call(method: string, params: unknown, caller = new Error().stack): Promise<unknown> {
    return new Promise((resolve, reject) => {
      if (this.#error) return reject(this.#error);
      const id = ++this.#lastId;
      this.#pending.set(id, { resolve, reject: (error) => reject(withCaller(error, caller)) });
      this.#send({ id, method, params });
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
    if (!this.#error) this.#channel!.send(JSON.stringify({ jsonrpc: '2.0', ...message }));
  }

  #receive({ id, method, params, result, error }: Message): void {
    if (method !== undefined) {
      if (id === undefined) this.#receiver.notified(method, params);
      else this.#receiver.requested(this, id, method, params);
      return;
    }
    const pending = this.#pending.get(id as number);
    this.#pending.delete(id as number);
    if (error) pending?.reject(new AcpipeError((error.data?.kind as ErrorKind | undefined) ?? 'internal', error.message, error.data));
    else pending?.resolve(result);
  }

  #closed(error: AcpipeError): void {
    this.#error = error;
    // The receiver first: a rejected call may be repeated, and must find that the connection is gone.
    this.#receiver.closed(error);
    for (const { reject } of this.#pending.values()) reject(error);
    this.#pending.clear();
  }
}

/** Gives an error the frames of the call that it ends. */
function withCaller(error: AcpipeError, caller: string | undefined): AcpipeError {
  const frames = caller?.split('\n').filter((line) => /^\s+at /.test(line)) ?? [];
  // Browsers have other formats of stacks.
  if (frames.length > 0) error.stack = [`${error.name}: ${error.message}`, ...frames].join('\n');
  return error;
}
