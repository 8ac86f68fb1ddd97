// One WebSocket with JSON-RPC on it: calls of the page, and requests and notifications of acpipe.

/** Error of a call, with the kind of docs/reference/errors.md. */
export class RpcError extends Error {
  readonly kind: string;

  constructor(message: string, kind: string) {
    super(message);
    this.kind = kind;
  }
}

export interface Receiver {
  notified(method: string, params: any): void;
  requested(id: string | number, method: string, params: any): void;
  closed(wasOpen: boolean): void;
}

interface Pending {
  resolve(result: any): void;
  reject(error: Error): void;
}

export class Connection {
  readonly #socket: WebSocket;
  readonly #receiver: Receiver;
  readonly #pending = new Map<number, Pending>();
  #lastId = 0;

  constructor(token: string, receiver: Receiver, opened: () => void) {
    this.#receiver = receiver;
    const url = new URL('/rpc', location.href);
    url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:';
    url.hash = '';
    // Browsers cannot set headers of a WebSocket, so a subprotocol carries the token.
    this.#socket = new WebSocket(url, ['acpipe', `acpipe.token.${token}`]);
    let wasOpen = false;
    this.#socket.addEventListener('open', () => {
      wasOpen = true;
      opened();
    });
    this.#socket.addEventListener('message', ({ data }) => this.#receive(data));
    this.#socket.addEventListener('close', () => {
      for (const { reject } of this.#pending.values()) {
        reject(new RpcError('the connection to acpipe was lost; try again when it is back', 'disconnected'));
      }
      this.#pending.clear();
      receiver.closed(wasOpen);
    });
  }

  call<T>(method: string, params: object): Promise<T> {
    if (this.#socket.readyState !== WebSocket.OPEN) {
      return Promise.reject(new RpcError('the page is not connected to acpipe; it tries again by itself', 'disconnected'));
    }
    const id = ++this.#lastId;
    return new Promise((resolve, reject) => {
      this.#pending.set(id, { resolve, reject });
      this.#send({ id, method, params });
    });
  }

  respond(id: string | number, result: object): void {
    this.#send({ id, result });
  }

  refuse(id: string | number, message: string): void {
    this.#send({ id, error: { code: -32601, message } });
  }

  close(): void {
    this.#socket.close();
  }

  #send(message: object): void {
    this.#socket.send(JSON.stringify({ jsonrpc: '2.0', ...message }));
  }

  #receive(data: unknown): void {
    if (typeof data !== 'string') return;
    const message = JSON.parse(data);
    if (typeof message.method === 'string') {
      if (message.id === undefined) this.#receiver.notified(message.method, message.params);
      else this.#receiver.requested(message.id, message.method, message.params);
      return;
    }
    const pending = this.#pending.get(message.id);
    if (!pending) return;
    this.#pending.delete(message.id);
    const { error, result } = message;
    if (error) pending.reject(new RpcError(error.message, error.data?.kind ?? 'unknown'));
    else pending.resolve(result);
  }
}
