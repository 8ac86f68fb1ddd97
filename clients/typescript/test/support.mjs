// Scripted agents, state directories and servers for the tests.
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { createServer as createHttpServer } from 'node:http';
import { createServer, connect as connectTcp } from 'node:net';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { afterEach } from 'node:test';
import { start } from 'acpipe';
import { toNodeHandler } from 'acpipe/ai';

/** Time after which a wait counts as hung. */
export const LIMIT_MS = 20_000;

const found = process.env.PATH.split(delimiter).map((dir) => join(dir, 'acpipe')).find((file) => existsSync(file));
/** Directory of acpipe and the scripted agents. */
export const programs = found && dirname(realpathSync(found));
if (!programs || !existsSync(join(programs, 'fake-agent'))) {
  throw new Error('no acpipe with fake-agent beside it in PATH: run cargo build --bins --features fake-agent, and prepend target/debug to PATH');
}

/** Steps of the scripted agent; tests/fake_agent.rs describes all. */
export const say = (text) => ({ update: { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } } });
/** An update of a tool call. */
export const tool = (kind, toolCallId, fields) => ({ update: { sessionUpdate: kind, toolCallId, ...fields } });
export const end = (stopReason = 'end_turn') => ({ reply: { stopReason } });
/** Waits until the agent gets another session. */
export const WAIT = { wait: 'session/new' };
export const ASK = {
  ask: {
    method: 'session/request_permission',
    params: {
      toolCall: { toolCallId: 't', title: 'ls', kind: 'execute', rawInput: { command: 'ls' } },
      options: [
        { optionId: 'always', name: 'Always', kind: 'allow_always' },
        { optionId: 'yes', name: 'Yes', kind: 'allow_once' },
        { optionId: 'no', name: 'No', kind: 'reject_once' },
      ],
    },
  },
};

const closing = [];
/** Runs an action at the end of the test: the last one first. */
export const atEnd = (action) => void closing.unshift(action);
afterEach(async () => {
  for (const action of closing.splice(0)) await action();
});

/** A directory for one test, with an agent that follows a script. */
export class World {
  constructor(script = {}) {
    this.dir = realpathSync(mkdtempSync(join(tmpdir(), 'acpipe-ts-')));
    atEnd(() => rmSync(this.dir, { recursive: true, force: true }));
    this.cwd = join(this.dir, 'project');
    mkdirSync(this.cwd);
    writeFileSync(join(this.dir, 'script.json'), JSON.stringify(script));
    this.env = {
      ...process.env,
      ACPIPE_STATE_DIR: join(this.dir, 'state'),
      XDG_CONFIG_HOME: join(this.dir, 'config'),
      FAKE_AGENT_LOG: join(this.dir, 'agent.log'),
      ACPIPE_NO_PATH_PROBE: '1',
    };
  }

  get agent() {
    return [join(programs, 'fake-agent'), join(this.dir, 'script.json')];
  }

  /** Starts a client with a subprocess. */
  async start(options = {}) {
    const client = await start({ agent: this.agent, cwd: this.cwd, env: this.env, ...options });
    atEnd(() => client.close());
    return client;
  }

  /** A program for `start` that runs acpipe, which can be killed. */
  killable() {
    const [binary, pidFile] = [join(this.dir, 'wrapper'), join(this.dir, 'pid')];
    writeFileSync(binary, `#!/bin/sh\necho $$ > '${pidFile}'\nexec '${join(programs, 'acpipe')}' "$@"\n`, { mode: 0o755 });
    return { binary, kill: (signal = 'SIGKILL') => process.kill(Number(readFileSync(pidFile, 'utf8')), signal) };
  }

  /** Starts `acpipe serve --listen`; returns its address and token. */
  async listen(...args) {
    const command = ['serve', '--listen', '127.0.0.1:0', ...args, '--', ...this.agent];
    const server = spawn(join(programs, 'acpipe'), command, { cwd: this.cwd, env: this.env, stdio: ['ignore', 'ignore', 'pipe'] });
    const exited = new Promise((resolve) => server.once('close', resolve));
    atEnd(async () => {
      server.kill();
      await exited;
    });
    let stderr = '';
    const place = await within(
      new Promise((resolve) => {
        server.stderr.setEncoding('utf8').on('data', (text) => {
          stderr += text;
          const [, url, token] = /(http:\S+)\/#token=(\w+)/.exec(stderr) ?? [];
          if (token) resolve({ url, token });
        });
      }),
      () => `acpipe does not listen: ${stderr}`,
    );
    return place;
  }

  /** The messages that the agent received. */
  received(method) {
    const log = join(this.dir, 'agent.log');
    const lines = existsSync(log) ? readFileSync(log, 'utf8').split('\n').filter(Boolean) : [];
    return lines.map((line) => JSON.parse(line)).filter((message) => message.method === method);
  }
}

/** Fails if the promise takes too long. */
export async function within(promise, what = () => 'hung') {
  let timer;
  const limit = new Promise((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(what())), LIMIT_MS);
  });
  try {
    return await Promise.race([promise, limit]);
  } finally {
    clearTimeout(timer);
  }
}

/** Waits until a client has this state. */
export function untilState(client, state) {
  return within(
    new Promise((resolve) => {
      const stop = client.on('connection', (change) => {
        if (change.state !== state) return;
        stop();
        resolve(change);
      });
    }),
    () => `the client does not become ${state}`,
  );
}

/** Reads all items. */
export async function all(items) {
  const read = [];
  for await (const item of items) read.push(item);
  return read;
}

/** Reads items until one passes the test; returns those read, with the iterator for the rest. */
export async function until(iterator, test) {
  const read = [];
  for (;;) {
    const { done, value } = await within(iterator.next());
    if (done) throw new Error(`ended after ${JSON.stringify(read)}`);
    read.push(value);
    if (test(value)) return read;
  }
}

export const textOf = (chunks) => chunks.map(({ type, delta }) => (type === 'text-delta' ? delta : '')).join('');

/** A network in front of a server, whose connections can be cut. */
export class Network {
  #sockets = new Set();
  #isDown = false;

  static async open(url) {
    const network = new Network();
    const { port } = new URL(url);
    const server = createServer((near) => {
      if (network.#isDown) return near.destroy();
      const far = connectTcp(Number(port), '127.0.0.1');
      for (const [one, other] of [[near, far], [far, near]]) {
        network.#sockets.add(one);
        one.on('error', () => {}).on('close', () => other.destroy()).pipe(other);
      }
    });
    await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
    atEnd(() => {
      network.cut();
      return new Promise((resolve) => server.close(resolve));
    });
    network.url = `http://127.0.0.1:${server.address().port}`;
    return network;
  }

  /** Cuts all connections. */
  cut() {
    for (const socket of this.#sockets) socket.destroy();
    this.#sockets.clear();
  }

  /** Cuts all connections and refuses new ones. */
  goDown() {
    this.#isDown = true;
    this.cut();
  }

  comeBack() {
    this.#isDown = false;
  }
}

/** Serves a chat handler with node:http; returns the address of its endpoints. */
export async function serve(handler) {
  const server = createHttpServer(toNodeHandler(handler));
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  atEnd(() => {
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  });
  return `http://127.0.0.1:${server.address().port}/api/chat`;
}
