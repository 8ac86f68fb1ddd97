// A server with the interface of acpipe's HTTP gateway, for the tests of the page. Its agent follows scripts
// (scenarios.mjs), which pause at gates until the test opens them.
//
//   node test/mock-server.mjs        starts it alone, to look at the page; every gate is open

import { createServer } from 'node:http';
import { readFile } from 'node:fs/promises';
import { pathToFileURL } from 'node:url';
import { serveChat } from './mock/chat.mjs';
import { addStoredSessions, RpcClient } from './mock/rpc.mjs';
import { deferred } from './mock/turn.mjs';
import { WebSocketConnection } from './mock/websocket.mjs';
import { scenarioOf } from './scenarios.mjs';

const DIST = new URL('../dist/', import.meta.url);
const FILES = { '/': ['index.html', 'text/html'], '/app.js': ['app.js', 'text/javascript'], '/app.css': ['app.css', 'text/css'] };
const SECURITY = {
  'content-security-policy': "default-src 'self'; img-src 'self' data:; media-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
};

class Gates {
  #gates = new Map();

  constructor(areOpen) {
    this.areOpen = areOpen;
  }

  #gate(name) {
    if (!this.#gates.has(name)) this.#gates.set(name, deferred());
    return this.#gates.get(name);
  }

  open(name) {
    this.#gate(name).resolve();
  }

  passed(name) {
    return this.areOpen ? Promise.resolve() : this.#gate(name).promise;
  }
}

function bearer({ headers }) {
  return headers.authorization?.replace(/^Bearer /, '');
}

/** Starts the server on a port of the loopback address. */
export async function startMock({ port = 0, token = 'controller-token', observerToken = 'observer-token', areGatesOpen = false } = {}) {
  const state = { sessions: new Map(), lastClient: 0, cwd: '/home/me/project', gates: new Gates(areGatesOpen), scenario: scenarioOf };
  addStoredSessions(state);
  const sockets = new Set();
  let isReachable = true;

  const server = createServer(async (request, response) => {
    const { pathname } = new URL(request.url, 'http://localhost');
    const file = FILES[pathname];
    if (file) {
      response.writeHead(200, { 'content-type': `${file[1]}; charset=utf-8`, ...SECURITY });
      return response.end(await readFile(new URL(file[0], DIST)));
    }
    const given = bearer(request);
    if (given !== token && given !== observerToken) return response.writeHead(401).end('the token is not valid');
    if (pathname === '/rpc') return response.writeHead(426).end('upgrade to a WebSocket');
    return serveChat(state, request, response, pathname, given === observerToken);
  });
  server.on('connection', (socket) => {
    if (!isReachable) return socket.destroy();
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
  });
  server.on('upgrade', (request, socket) => {
    const protocols = request.headers['sec-websocket-protocol']?.split(/, */) ?? [];
    const given = protocols.find((name) => name.startsWith('acpipe.token.'))?.slice('acpipe.token.'.length);
    if (!protocols.includes('acpipe') || (given !== token && given !== observerToken)) {
      return socket.end('HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n');
    }
    new RpcClient(state, new WebSocketConnection(request, socket, 'acpipe'), given === observerToken);
  });
  await new Promise((resolve) => server.listen(port, '127.0.0.1', resolve));

  const drop = () => sockets.forEach((socket) => socket.destroy());
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    token,
    observerToken,
    cwd: state.cwd,
    openGate: (name) => state.gates.open(name),
    /** Ends all connections, and refuses new ones until `reach`. */
    cutOff() {
      isReachable = false;
      drop();
    },
    reach: () => (isReachable = true),
    stop() {
      drop();
      return new Promise((resolve) => server.close(resolve));
    },
  };
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const { url, token } = await startMock({ port: Number(process.env.PORT ?? 0), areGatesOpen: true });
  console.log(`${url}/#token=${token}`);
}
