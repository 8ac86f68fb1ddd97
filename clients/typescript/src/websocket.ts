// Channel over the WebSocket of `acpipe daemon start --listen`.
import { LINE_LIMIT, tooLong, type Connector } from './connection.js';
import { AcpipeError } from './errors.js';

/** The part of a WebSocket that this package uses. */
export interface WebSocketLike {
  send(text: string): void;
  close(code?: number): void;
  addEventListener(type: 'open', listener: () => void): void;
  addEventListener(type: 'message', listener: (event: { data: unknown }) => void): void;
  addEventListener(type: 'close', listener: (event: { code: number; reason: string }) => void): void;
  addEventListener(type: 'error', listener: () => void): void;
}

/** Time in which the other side must agree to the end of the connection. */
const CLOSE_LIMIT_MS = 2_000;

export type WebSocketClass = new (url: string, protocols: string[]) => WebSocketLike;

export function webSocketConnector(url: string, token: string, implementation: WebSocketClass): Connector {
  const address = new URL('/rpc', url);
  address.protocol = address.protocol.replace('http', 'ws');
  return (events) =>
    new Promise((resolve, reject) => {
      // A browser cannot set headers of a WebSocket: a subprotocol carries the token.
      const socket = new implementation(address.href, ['acpipe', `acpipe.token.${token}`]);
      let isOpen = false;
      let closed: () => void;
      const hasClosed = new Promise<void>((done) => (closed = done));
      const refused = () => {
        const advice = 'check that acpipe listens there, and the token';
        reject(new AcpipeError('disconnected', `cannot connect to acpipe at ${address.href}; ${advice}`));
      };
      // Some runtimes report a refused handshake by 'error' alone.
      socket.addEventListener('error', () => isOpen || refused());
      socket.addEventListener('message', ({ data }) => {
        const text = String(data);
        if (text.length <= LINE_LIMIT) return events.message(text);
        events.closed(tooLong('acpipe sent a message'));
        socket.close(1009);
      });
      socket.addEventListener('close', ({ code, reason }) => {
        closed();
        if (!isOpen) return refused();
        events.closed(new AcpipeError('disconnected', `the connection to acpipe was lost (${reason || `code ${code}`})`, { code }));
      });
      socket.addEventListener('open', () => {
        isOpen = true;
        resolve({
          send: (text) => socket.send(text),
          close: () => {
            socket.close(1000);
            const limit = setTimeout(closed, CLOSE_LIMIT_MS);
            return hasClosed.finally(() => clearTimeout(limit));
          },
        });
      });
    });
}
