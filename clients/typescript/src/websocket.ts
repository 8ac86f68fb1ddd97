// Channel over the WebSocket of `acpipe daemon start --listen`.
import type { Connector } from './connection.js';
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
      // Some runtimes report a refused handshake by 'error' alone.
      socket.addEventListener('error', () => {
        const advice = 'check that acpipe listens there, and the token';
        if (!isOpen) reject(new AcpipeError('disconnected', `cannot connect to acpipe at ${address.href}; ${advice}`));
      });
      socket.addEventListener('message', ({ data }) => events.message(String(data)));
      socket.addEventListener('close', ({ code, reason }) => {
        closed();
        if (!isOpen) return;
        events.closed(new AcpipeError('disconnected', `the connection to acpipe was lost (${reason || `code ${code}`})`, { code }));
      });
      socket.addEventListener('open', () => {
        isOpen = true;
        resolve({
          send: (text) => socket.send(text),
          close: () => {
            socket.close(1000);
            return hasClosed;
          },
        });
      });
    });
}
