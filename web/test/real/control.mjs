// Starts acpipe with the agent of the scenarios, for the tests of the page. Environment: ACPIPE, the program.

import { spawn } from 'node:child_process';
import { accessSync, constants, mkdtempSync, readFileSync, rmSync, writeFileSync, mkdirSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const AGENT = fileURLToPath(new URL('agent.mjs', import.meta.url));
const ACPIPE = process.env.ACPIPE ?? fileURLToPath(new URL('../../../target/debug/acpipe', import.meta.url));

function listen(server) {
  return new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(server.address().port)));
}

/** Opens gates in all agent processes, also those that start later. */
class Gates {
  #opened = [];
  #agents = new Set();
  #server = createServer((socket) => {
    this.#agents.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => this.#agents.delete(socket));
    for (const name of this.#opened) socket.write(`${name}\n`);
  });

  start() {
    return listen(this.#server);
  }

  open(name) {
    this.#opened.push(name);
    for (const agent of this.#agents) agent.write(`${name}\n`);
  }

  stop() {
    for (const agent of this.#agents) agent.destroy();
    this.#server.close();
  }
}

/** Tunnel between the browser and acpipe, which can be cut. */
class Tunnel {
  target = 0;
  isOpen = true;
  #sockets = new Set();
  #server = createServer((browser) => {
    if (!this.isOpen) return browser.destroy();
    const acpipe = connect(this.target, '127.0.0.1');
    for (const [from, to] of [[browser, acpipe], [acpipe, browser]]) {
      this.#sockets.add(from);
      from.setNoDelay(true);
      from.on('error', () => {});
      from.on('close', () => (this.#sockets.delete(from), to.destroy()));
      from.pipe(to);
    }
  });

  start() {
    return listen(this.#server);
  }

  cut() {
    for (const socket of this.#sockets) socket.destroy();
  }

  stop() {
    this.cut();
    this.#server.close();
  }
}

/** Makes the home of a user on whose machine two agents are installed. */
function makeHome() {
  const home = mkdtempSync(join(tmpdir(), 'acpipe-page-'));
  for (const folder of ['bin', 'project', 'state']) mkdirSync(join(home, folder), { mode: 0o700 });
  writeFileSync(join(home, 'bin/claude'), '#!/bin/sh\nexit 1\n', { mode: 0o755 });
  return home;
}

/** Waits for the URL that acpipe prints. */
function urlOf(acpipe) {
  const lines = [];
  return new Promise((resolve, reject) => {
    const read = (line) => {
      lines.push(line);
      const url = line.match(/https?:\/\/\S+#token=\S+/)?.[0];
      if (url) resolve(new URL(url));
    };
    for (const input of [acpipe.stdout, acpipe.stderr]) createInterface({ input }).on('line', read);
    acpipe.on('exit', (code) => reject(new Error(`acpipe exited with ${code}:\n${lines.join('\n')}`)));
  });
}

/** Starts acpipe, and returns what `startMock` returns. */
export async function start() {
  accessSync(ACPIPE, constants.X_OK);
  const home = makeHome();
  const [gates, tunnel] = [new Gates(), new Tunnel()];
  const [gatesPort, port] = [await gates.start(), await tunnel.start()];
  const options = ['--listen', '127.0.0.1:0', '--allow-host', `127.0.0.1:${port}`, '--permissions', 'ask', '--state-dir', join(home, 'state')];
  const acpipe = spawn(ACPIPE, ['serve', ...options, '--', process.execPath, AGENT], {
    cwd: join(home, 'project'),
    env: { HOME: home, PATH: join(home, 'bin'), PAGE_GATES: String(gatesPort) },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  const exited = new Promise((resolve) => acpipe.on('exit', resolve));
  const printed = await urlOf(acpipe);
  tunnel.target = Number(printed.port);
  return {
    url: `http://127.0.0.1:${port}`,
    token: new URLSearchParams(printed.hash.slice(1)).get('token'),
    observerToken: readFileSync(join(home, 'state/token.observer'), 'utf8').trim(),
    cwd: join(home, 'project'),
    openGate: (name) => gates.open(name),
    cutOff() {
      tunnel.isOpen = false;
      tunnel.cut();
    },
    reach: () => (tunnel.isOpen = true),
    async stop() {
      tunnel.stop();
      acpipe.kill();
      await exited;
      gates.stop();
      rmSync(home, { recursive: true });
    },
  };
}
