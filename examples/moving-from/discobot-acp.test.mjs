// discobot's flows (ACP generation) on acpipe, against a scripted agent: node --test discobot-acp.test.mjs
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { AcpipeAgent, createAgent } from './discobot-acp.mjs';
import { END, message, say, textOf, tool, World } from './fakes.mjs';

const RESUMES = { initialize: [[{ reply: { protocolVersion: 1, agentCapabilities: { sessionCapabilities: { resume: {} } } } }]] };
const LOADS = { initialize: [[{ reply: { protocolVersion: 1, agentCapabilities: { loadSession: true } } }]] };
const OPTIONS = ['reject_always', 'allow_always', 'allow_once', 'reject_once'].map((kind) => ({ optionId: kind, name: kind, kind }));

/** A connected agent with the default session. */
async function start(t, world, script, options = {}) {
  const agent = new AcpipeAgent({ ...world.agent(script), cwd: world.cwd, ...options });
  t.after(() => agent.close());
  await agent.connect();
  return agent;
}

/** Runs a turn; returns its chunks and its error or undefined. */
async function turn(agent, prompt = message('go'), session) {
  const chunks = [];
  agent.setUpdateCallback((chunk) => chunks.push(chunk), session);
  const error = await agent.prompt(prompt, session).then(() => undefined, (error) => error);
  return { chunks, error };
}

const types = (chunks) => chunks.map(({ type }) => type);

test('connection state follows connect and disconnect, and messages stay', async (t) => {
  const agent = await start(t, new World());
  assert.equal(agent.isConnected, true);
  await agent.ensureSession();
  await agent.prompt(message('one'));
  await agent.disconnect();
  assert.equal(agent.isConnected, false);
  assert.deepEqual((await agent.getMessages()).map(textOf), ['one', 'one']);
  await agent.connect();
  await agent.ensureSession();
  assert.equal(agent.isConnected, true);
});

test('calls before connect are errors', async () => {
  const world = new World();
  const agent = new AcpipeAgent({ ...world.agent(), cwd: world.cwd });
  assert.equal(agent.isConnected, false);
  await assert.rejects(agent.ensureSession(), /call connect\(\) first/);
  await agent.disconnect();
});

test('program that is not installed is named', async (t) => {
  const agent = new AcpipeAgent({ command: 'no-such-agent', cwd: new World().cwd });
  t.after(() => agent.close());
  await assert.rejects(agent.connect(), { kind: 'agentNotFound', message: /no-such-agent/ });
});

test('turn is one stream of chunks: text, tool, text', async (t) => {
  const called = tool('tool_call', 'call-1', { title: 'Read a', kind: 'read', status: 'in_progress', rawInput: { path: 'a' } });
  const done = tool('tool_call_update', 'call-1', { status: 'completed', rawOutput: 'alpha' });
  const agent = await start(t, new World(), { 'session/prompt': [[say('before'), called, done, say('after'), END]] });
  await agent.ensureSession();
  const { chunks, error } = await turn(agent);
  assert.equal(error, undefined);
  const shown = types(chunks).filter((type) => /^(start|text|tool|finish)/.test(type));
  assert.deepEqual(shown, ['start', 'start-step', 'text-start', 'text-delta', 'text-end', 'tool-input-available', 'tool-output-available',
    'text-start', 'text-delta', 'text-end', 'finish-step', 'finish']);
  const [first, second] = chunks.filter(({ type }) => type === 'text-start');
  assert.notEqual(first.id, second.id);
});

test('callback is called until it is removed, for its session alone', async (t) => {
  const agent = await start(t, new World());
  await agent.ensureSession();
  await agent.createSession('other');
  const other = [];
  agent.setUpdateCallback((chunk) => other.push(chunk), 'other');
  const { chunks } = await turn(agent);
  assert.equal(types(chunks).at(-1), 'finish');
  assert.deepEqual(other, []);
  agent.setUpdateCallback(null);
  const before = chunks.length;
  await agent.prompt(message('again'));
  assert.equal(chunks.length, before);
});

test('message is stored before its chunk arrives', async (t) => {
  const agent = await start(t, new World());
  await agent.ensureSession();
  const stored = [];
  agent.setUpdateCallback(({ type }) => type === 'text-delta' && stored.push(agent.getLastAssistantMessage()));
  await agent.prompt(message('hello'));
  const [last] = await Promise.all(stored);
  assert.equal(textOf(last), 'hello');
});

test('messages are added, changed, read and cleared', async (t) => {
  const agent = await start(t, new World());
  assert.equal(await agent.getLastAssistantMessage(), undefined);
  await agent.ensureSession();
  assert.equal(await agent.getLastAssistantMessage(), undefined);
  await agent.addMessage(message('note', 'note-1'));
  await agent.updateMessage('note-1', { parts: [{ type: 'text', text: 'changed' }] });
  await agent.prompt(message('hello', 'user-1'));
  const messages = await agent.getMessages();
  assert.deepEqual(messages.map(({ role }) => role), ['user', 'user', 'assistant']);
  assert.deepEqual(messages.map(textOf), ['changed', 'hello', 'hello']);
  assert.equal((await agent.getLastAssistantMessage()).id, messages[2].id);
  await agent.clearMessages();
  assert.deepEqual(await agent.getMessages(), []);
});

test('parts become blocks of the agent', async (t) => {
  const world = new World();
  const agent = await start(t, world, { 'session/prompt': [[say('ok'), END]] });
  await agent.ensureSession();
  const parts = [{ type: 'text', text: 'look' }, { type: 'file', url: 'https://example.com/a.txt', mediaType: 'text/plain' }, { type: 'step-start' }];
  await agent.prompt({ id: 'u', role: 'user', parts });
  const [{ params }] = world.log().filter(({ method }) => method === 'session/prompt');
  assert.deepEqual(params.prompt.map(({ type }) => type), ['text', 'resource_link']);
  assert.deepEqual([params.prompt[1].uri, params.prompt[1].name], ['https://example.com/a.txt', 'file']);
});

test('permission requests are approved once', async (t) => {
  const world = new World();
  const asks = { ask: { method: 'session/request_permission', params: { toolCall: { toolCallId: 'c', title: 'Run' }, options: OPTIONS } } };
  const agent = await start(t, world, { 'session/prompt': [[asks, { echoAnswer: true }, END]] });
  await agent.ensureSession();
  await turn(agent);
  assert.match(textOf(await agent.getLastAssistantMessage()), /"allow_once"/);
});

test('second prompt in a running turn is busy, and a cancel ends the turn', async (t) => {
  const agent = await start(t, new World(), { 'session/prompt': [[say('working'), { wait: 'session/cancel' }, { reply: { stopReason: 'cancelled' } }], [say('next'), END]] });
  await agent.ensureSession();
  const chunks = [];
  const working = new Promise((resolve) =>
    agent.setUpdateCallback((chunk) => {
      chunks.push(chunk);
      if (chunk.type === 'text-delta') resolve();
    }),
  );
  const running = agent.prompt(message('go'));
  await working;
  await assert.rejects(agent.prompt(message('too early')), { kind: 'busy' });
  await agent.cancel();
  await running;
  assert.equal(types(chunks).at(-1), 'abort');
  await agent.prompt(message('again'));
  assert.equal(textOf(await agent.getLastAssistantMessage()), 'next');
  await agent.cancel(); // nothing runs
});

test('failed turn delivers its text and an error chunk, then rejects', async (t) => {
  const broken = { error: { code: -32603, message: 'it broke', data: { details: 'out of cake' } } };
  const agent = await start(t, new World(), { 'session/prompt': [[say('part'), broken], [say('fine'), END]] });
  await agent.ensureSession();
  const { chunks, error } = await turn(agent);
  assert.equal(types(chunks).at(-1), 'error');
  assert.match(chunks.at(-1).errorText, /it broke.*out of cake/);
  assert.match(error.message, /it broke/);
  assert.equal(textOf(await agent.getLastAssistantMessage()), 'part');
  assert.equal((await turn(agent)).error, undefined);
});

test('agent that exits is restarted by the next prompt', async (t) => {
  const world = new World();
  const crash = { once: { mark: world.mark(), steps: [say('part'), { exit: 1 }] } };
  const agent = await start(t, world, { ...RESUMES, 'session/resume': [[{ reply: {} }]], 'session/prompt': [[crash, say('back'), END]] });
  await agent.ensureSession();
  assert.equal((await turn(agent)).error.kind, 'agentExited');
  assert.equal(agent.isConnected, false);
  assert.equal((await turn(agent)).error, undefined);
  assert.equal(agent.isConnected, true);
});

test('stored session is resumed with its messages', async (t) => {
  const world = new World();
  const script = { ...RESUMES, 'session/resume': [[{ reply: {} }]] };
  const first = await start(t, world, script, { persistMessages: true });
  await first.ensureSession();
  await first.prompt(message('one'));
  await first.close();
  const second = await start(t, world, script, { persistMessages: true });
  await second.ensureSession();
  assert.deepEqual((await second.getMessages()).map(textOf), ['one', 'one']);
  assert.equal(world.log().filter(({ method }) => method === 'session/resume').length, 1);
  assert.equal(world.log().filter(({ method }) => method === 'session/new').length, 1);
});

test('agent that loads sessions replays their messages', async (t) => {
  const world = new World();
  const user = { update: { sessionUpdate: 'user_message_chunk', content: { type: 'text', text: 'one' } } };
  const script = { ...LOADS, 'session/load': [[user, say('one'), { reply: {} }]] };
  const first = await start(t, world, script, { persistMessages: true });
  await first.ensureSession();
  await first.prompt(message('one'));
  await first.close();
  const second = await start(t, world, script, { persistMessages: true });
  await second.ensureSession();
  assert.deepEqual((await second.getMessages()).map(textOf), ['one', 'one']);
  assert.equal(world.log().filter(({ method }) => method === 'session/load').length, 1);
});

test('new session of an agent that remembers nothing has no messages', async (t) => {
  const world = new World();
  const first = await start(t, world, {}, { persistMessages: true });
  await first.ensureSession();
  await first.prompt(message('one'));
  await first.close();
  const second = await start(t, world, {}, { persistMessages: true });
  await second.ensureSession();
  assert.deepEqual(await second.getMessages(), []);
});

test('messages are not stored unless the option or the variable says so', async () => {
  const world = new World();
  const options = { agentCommand: world.agent().command, agentArgs: world.agent().args, agentCwd: world.cwd };
  for (const [variable, kept] of [['false', 0], ['true', 1], [undefined, 2]]) {
    if (variable) process.env.PERSIST_MESSAGES = variable;
    else delete process.env.PERSIST_MESSAGES;
    const agent = createAgent(options);
    await agent.connect();
    await agent.createSession(`session-${variable}`);
    await agent.prompt(message('one'), `session-${variable}`);
    await agent.close();
    const next = createAgent({ ...options, persistMessages: true });
    await next.connect();
    assert.equal((await next.listSessions()).length, kept, variable);
    await next.close();
  }
});

test('environment is merged, and a connected agent restarts with it', async (t) => {
  const world = new World();
  const seen = world.mark();
  const { command, args } = world.agent({ ...RESUMES, 'session/resume': [[{ reply: {} }]] });
  const shell = ['-c', `echo "$A $B" >> ${seen}; exec ${command} ${args[0]}`];
  const agent = new AcpipeAgent({ command: 'sh', args: shell, cwd: world.cwd, env: { A: '1' } });
  t.after(() => agent.close());
  await agent.updateEnvironment({ B: '2' }); // not connected: it applies to the next connect
  await agent.connect();
  await agent.ensureSession();
  await agent.prompt(message('one'));
  await agent.updateEnvironment({ A: '3' });
  await agent.updateEnvironment({ A: '3' }); // no change, no restart
  assert.equal(readFileSync(seen, 'utf8'), '1 2\n3 2\n');
  const copy = agent.getEnvironment();
  copy.A = 'changed';
  assert.deepEqual(agent.getEnvironment(), { A: '3', B: '2' });
  await agent.prompt(message('two'));
  assert.deepEqual((await agent.getMessages()).map(textOf), ['one', 'one', 'two', 'two']);
  await agent.disconnect();
  await agent.updateEnvironment({ B: '4' });
  assert.equal(agent.isConnected, false);
  await agent.connect();
  assert.equal(readFileSync(seen, 'utf8'), '1 2\n3 2\n3 4\n');
});

test('sessions are created once, listed, independent and cleared', async (t) => {
  const agent = await start(t, new World());
  await agent.createSession('a');
  await agent.createSession('b');
  await assert.rejects(agent.createSession('a'), { kind: 'sessionExists' });
  await agent.prompt(message('one'), 'a');
  assert.equal((await agent.getMessages('a')).length, 2);
  assert.equal((await agent.getMessages('b')).length, 0);
  assert.deepEqual((await agent.listSessions()).sort(), ['a', 'b']);
  await agent.clearSession('a');
  await agent.clearSession('a');
  assert.deepEqual(await agent.listSessions(), ['b']);
  assert.deepEqual(await agent.getMessages('a'), []);
  await agent.cancel('never seen');
});
