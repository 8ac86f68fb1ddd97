// Keeps a connection to acpipe: opens it again, after pauses that grow, whenever it is lost.

import { Connection, RpcError, type Receiver } from './connection';

const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 10_000;

export interface LinkEvents extends Omit<Receiver, 'closed'> {
  /** The socket is open. The link is usable when the promise is fulfilled. */
  opened(): Promise<void>;
  lost(): void;
  /** acpipe does not accept the token; the link gives up. */
  refused(): void;
}

export class Link {
  readonly #token: string;
  readonly #events: LinkEvents;
  #connection: Connection | undefined;
  #timer: number | undefined;
  #pause = FIRST_PAUSE_MS;
  #isStopped = false;

  constructor(token: string, events: LinkEvents) {
    this.#token = token;
    this.#events = events;
  }

  start(): void {
    addEventListener('online', this.#hurry);
    document.addEventListener('visibilitychange', this.#hurry);
    this.#open();
  }

  stop(): void {
    this.#isStopped = true;
    removeEventListener('online', this.#hurry);
    document.removeEventListener('visibilitychange', this.#hurry);
    clearTimeout(this.#timer);
    this.#connection?.close();
  }

  call<T>(method: string, params: object): Promise<T> {
    if (!this.#connection) {
      return Promise.reject(new RpcError('the page is not connected to acpipe; it tries again by itself', 'disconnected'));
    }
    return this.#connection.call(method, params);
  }

  respond(id: string | number, result: object): void {
    this.#connection?.respond(id, result);
  }

  refuse(id: string | number, message: string): void {
    this.#connection?.refuse(id, message);
  }

  #open(): void {
    this.#timer = undefined;
    const { notified, requested } = this.#events;
    const closed = (wasOpen: boolean) => void this.#closed(wasOpen);
    this.#connection = new Connection(this.#token, { notified, requested, closed }, () => void this.#opened());
  }

  async #opened(): Promise<void> {
    try {
      await this.#events.opened();
      this.#pause = FIRST_PAUSE_MS;
    } catch {
      this.#connection?.close();
    }
  }

  async #closed(wasOpen: boolean): Promise<void> {
    this.#connection = undefined;
    if (this.#isStopped) return;
    this.#events.lost();
    // A browser does not say why a WebSocket was refused; an ordinary request does.
    if (!wasOpen && (await this.#isTokenRefused())) {
      this.stop();
      this.#events.refused();
      return;
    }
    if (this.#isStopped) return;
    // Spread, so that the windows of many users do not come back at the same moment.
    this.#timer = setTimeout(() => this.#open(), this.#pause * (0.75 + Math.random() / 2));
    this.#pause = Math.min(this.#pause * 2, LONGEST_PAUSE_MS);
  }

  async #isTokenRefused(): Promise<boolean> {
    try {
      const response = await fetch('/rpc', { headers: { authorization: `Bearer ${this.#token}` } });
      return response.status === 401;
    } catch {
      return false;
    }
  }

  readonly #hurry = (): void => {
    if (this.#timer === undefined || document.visibilityState === 'hidden') return;
    clearTimeout(this.#timer);
    this.#open();
  };
}
