import { Acpipe, type ClientOptions } from './client.js';
import { AcpipeError } from './errors.js';
import { checkOptions } from './options.js';
import { webSocketConnector, type WebSocketClass } from './websocket.js';

export interface ConnectOptions extends ClientOptions {
  /** Address of `acpipe daemon start --listen`, such as `http://127.0.0.1:4100`. */
  url: string;
  /** Token of the daemon. Default: the one after `#token=` in `url`. */
  token?: string;
  /** Class of the WebSocket, for Node 20, which has none: `WebSocket` of the package `ws`. */
  WebSocket?: WebSocketClass;
}

/** Connects to an acpipe that listens. If the connection is lost, the client reconnects and catches up. */
export async function connect(options: ConnectOptions): Promise<Acpipe> {
  checkOptions('connect', options, ['url', 'token', 'WebSocket']);
  const implementation = options.WebSocket ?? (globalThis as { WebSocket?: WebSocketClass }).WebSocket;
  if (!implementation) {
    const advice = 'use Node 22 or newer, or pass `WebSocket` of the package "ws"';
    throw new AcpipeError('disconnected', `cannot connect to acpipe: this runtime has no WebSocket; ${advice}`);
  }
  const url = new URL(options.url);
  const token = options.token ?? new URLSearchParams(url.hash.slice(1)).get('token') ?? '';
  url.hash = '';
  return Acpipe.open(webSocketConnector(url.href, token, implementation), options);
}
