// An app's server that is killed in the middle of a turn, and started again: no answer that was cut looks complete.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { createChatHandler, HttpChatTransport, LiveChat } from 'acpipe/ai';
import { said, shows, State } from '../../../tests/ai-sdk/state.mjs';
import { atEnd, end, Network, programs, say, serve, WAIT, within, World } from './support.mjs';

const SDKS = { 7: await import('ai'), 6: await import('ai6') };
const SERVER = fileURLToPath(new URL('app-server.mjs', import.meta.url));

/** An app's server in a process of its own, which can be killed and started again at the same address. */
class App {
  #port = '0';
  constructor(world, options) {
    this.world = world;
    this.options = { agent: world.agent, cwd: world.cwd, ...options };
  }

  async start() {
    const args = [SERVER, this.#port, JSON.stringify(this.options)];
    const child = spawn(process.execPath, args, { env: this.world.env, stdio: ['ignore', 'pipe', 'inherit'] });
    const exited = once(child, 'exit');
    this.kill = async () => {
      child.kill('SIGKILL');
      await exited;
    };
    atEnd(this.kill);
    const [line] = await within(once(child.stdout, 'data'), () => 'the server does not listen');
    this.#port = String(line).trim();
    this.api = `http://127.0.0.1:${this.#port}/api/chat`;
  }

  /** Reads the stored messages. */
  async stored(id) {
    const { messages } = await (await fetch(`${this.api}/${id}/messages`)).json();
    return messages;
  }
}

async function startApp(script, options) {
  const app = new App(new World({ 'session/prompt': [script, [{ default: true }]] }), options);
  await app.start();
  return app;
}

function open(api, major = 7, live = false) {
  class Chat extends SDKS[major].AbstractChat {}
  const state = new State();
  const inner = new HttpChatTransport({ api });
  const follower = live && new LiveChat(inner);
  const chat = new Chat({ id: randomUUID(), state, transport: follower ? follower.transport : inner, generateId: randomUUID, onError: () => {} });
  if (follower) atEnd(follower.follow(chat));
  return Object.assign(chat, { until: (test) => state.until(() => test(chat)) });
}

const CANCELLED = [say('a'), { wait: 'session/cancel' }, end('cancelled')];

for (const major of [7, 6]) {
  test(`ai ${major}: resumed chat of a killed server has the stored end of the answer`, async () => {
    const app = await startApp(CANCELLED, { chunkProfile: major });
    const chat = open(app.api, major);
    const sent = chat.sendMessage({ text: 'go' });
    await chat.until(shows('a'));
    await app.kill();
    await sent;
    assert.deepEqual([chat.status, chat.error.kind], ['error', 'disconnected']);
    await app.start();
    await chat.resumeStream();
    assert.deepEqual([chat.status, said(chat.messages)], ['ready', ['user: go', 'assistant: a']]);
    const { metadata, parts } = chat.messages.at(-1);
    assert.equal(metadata.acp.stopReason, 'cancelled');
    assert.equal(parts.at(-1).state, 'done');
    assert.deepEqual(JSON.parse(JSON.stringify(chat.messages.at(-1))), (await app.stored(chat.id)).at(-1));
    // It is complete now.
    await chat.resumeStream();
    assert.equal(chat.status, 'ready');
  });
}

test('resumed chat of a killed server whose acpipe was killed, too, ends with an error', async () => {
  const world = new World({ 'session/prompt': [[say('a'), { hang: true }]] });
  const { binary, kill } = world.killable();
  const app = new App(world, { binary });
  await app.start();
  const chat = open(app.api);
  const sent = chat.sendMessage({ text: 'go' });
  await chat.until(shows('a'));
  // Stopped first, since acpipe ends the turn when its client is gone.
  kill('SIGSTOP');
  await app.kill();
  kill('SIGKILL');
  await sent;
  await app.start();
  await chat.resumeStream();
  assert.deepEqual([chat.status, chat.error.kind, said(chat.messages)], ['error', 'turnUnfinished', ['user: go', 'assistant: a']]);
  assert.equal(chat.messages.at(-1).metadata.acp.error.kind, 'turnUnfinished');
});

test('resumed chat of a killed server with a daemon has the answer to its end', async () => {
  const app = await startApp([say('a'), WAIT, say('b'), end()], { args: ['--daemon'] });
  atEnd(async () => once(spawn(join(programs, 'acpipe'), ['daemon', 'stop'], { env: app.world.env, stdio: 'ignore' }), 'exit'));
  const chat = open(app.api);
  const sent = chat.sendMessage({ text: 'go' });
  await chat.until(shows('a'));
  await app.kill();
  await sent;
  await app.start();
  const resumed = chat.resumeStream();
  await chat.until(({ status }) => status === 'streaming');
  // The agent continues once it gets another session.
  await open(app.api).sendMessage({ text: 'other' });
  await resumed;
  assert.deepEqual([chat.status, said(chat.messages)], ['ready', ['user: go', 'assistant: ab']]);
});

test('live chat of a killed server shows the stored end by itself', async () => {
  const app = await startApp(CANCELLED);
  const chat = open(app.api, 7, true);
  const sent = chat.sendMessage({ text: 'go' });
  await chat.until(shows('a'));
  await app.kill();
  await sent;
  assert.equal(chat.error.kind, 'disconnected');
  await app.start();
  await chat.until(({ status }) => status === 'ready');
  assert.deepEqual(said(chat.messages), ['user: go', 'assistant: a']);
  assert.equal(chat.messages.at(-1).metadata.acp.stopReason, 'cancelled');
  assert.equal(chat.error, undefined);
});

test('answer that ended while the network was lost is complete after it is resumed', async () => {
  const world = new World({ 'session/prompt': [[say('a'), WAIT, say('b'), end()], [{ default: true }]] });
  const direct = await serve(createChatHandler(await world.start()));
  const network = await Network.open(direct);
  const chat = open(`${network.url}/api/chat`);
  const sent = chat.sendMessage({ text: 'go' });
  await chat.until(shows('a'));
  network.goDown();
  await sent;
  await open(direct).sendMessage({ text: 'other' });
  // A prompt waits for the end of the turn before it.
  const next = { id: chat.id, messages: [{ id: randomUUID(), role: 'user', parts: [{ type: 'text', text: 'next' }] }] };
  await (await fetch(direct, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(next) })).text();
  network.comeBack();
  await chat.resumeStream();
  assert.deepEqual([chat.status, said(chat.messages)], ['ready', ['user: go', 'assistant: ab']]);
});

test('answer that was cut and is not stored does not look complete', async () => {
  const world = new World({ 'session/prompt': [CANCELLED] });
  const handler = createChatHandler(await world.start());
  const direct = await serve(handler);
  const network = await Network.open(direct);
  const chat = open(`${network.url}/api/chat`);
  const sent = chat.sendMessage({ text: 'go' });
  await chat.until(shows('a'));
  network.goDown();
  await sent;
  await handler.delete(chat.id);
  network.comeBack();
  await chat.resumeStream();
  assert.deepEqual([chat.status, chat.error.kind], ['error', 'messageNotFound']);
});
