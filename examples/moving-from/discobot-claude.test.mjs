// discobot's flows (Claude SDK generation) on acpipe, against a scripted Claude Code: node --test discobot-claude.test.mjs
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createAgent } from './discobot-claude.mjs';
import { message, textOf, World } from './fakes.mjs';

/** A connected agent. */
async function start(t, world, options = {}) {
  const agent = createAgent({ cwd: world.cwd, ...options });
  t.after(() => agent.close());
  await agent.connect();
  return agent;
}

const steps = (...list) => message(JSON.stringify(list));

async function collect(stream) {
  const chunks = [];
  try {
    for await (const chunk of stream) chunks.push(chunk);
  } catch (error) {
    return { chunks, error };
  }
  return { chunks };
}

const types = (chunks) => chunks.map(({ type }) => type).filter((type) => !type.startsWith('data-') && type !== 'message-metadata');

test('connect finds the CLI, or names the variable for its path', async (t) => {
  const world = new World();
  const agent = await start(t, world);
  assert.equal(agent.isConnected, true);
  await agent.disconnect();
  assert.equal(agent.isConnected, false);
  process.env.CLAUDE_CLI_PATH = '/nonexistent/claude';
  const lost = createAgent({ cwd: world.cwd });
  t.after(() => lost.close());
  await assert.rejects(lost.connect(), { kind: 'agentNotFound', message: /CLAUDE_CLI_PATH/ });
});

test('prompt opens its session and is one stream', async (t) => {
  const agent = await start(t, new World());
  const { chunks, error } = await collect(agent.prompt(steps({ delta: 'a' }, { delta: 'b' })));
  assert.equal(error, undefined);
  assert.deepEqual(types(chunks), ['start', 'start-step', 'text-start', 'text-delta', 'text-delta', 'text-end', 'finish-step', 'finish']);
  assert.equal(chunks.at(-1).finishReason, 'stop');
});

test('tools run without a question to the user', async (t) => {
  const agent = await start(t, new World());
  const call = { tool_name: 'Bash', tool_use_id: 'toolu-1', input: { command: 'ls' } };
  const { chunks } = await collect(agent.prompt(steps({ ask: call })));
  const shown = types(chunks).filter((type) => type.startsWith('tool-'));
  assert.deepEqual([shown[0].startsWith('tool-input'), shown.at(-1)], [true, 'tool-output-available']);
  assert.match(textOf((await (await agent.getSession()).getMessages()).at(-1)), /"behavior":"allow"/);
});

test('session has the id that the caller gives, and a native id that is kept on disk', async (t) => {
  const world = new World();
  const first = await start(t, world);
  assert.equal(await first.ensureSession('mine'), 'mine');
  await collect(first.prompt(message('hello'), 'mine'));
  await first.close();
  const second = await start(t, world);
  await collect(second.prompt(message('again'), 'mine'));
  const [before, after] = world.processes();
  assert.ok(after.argv.includes(`--resume=${before.session}`), after.argv);
  const session = await second.getSession('mine');
  assert.deepEqual((await session.getMessages()).map(textOf), ['hello', 'hello', 'again', 'again']);
});

test('sessions are created once, listed, read, cleared', async (t) => {
  const agent = await start(t, new World());
  assert.equal(await agent.getSession('a'), undefined);
  const session = await agent.createSession('a');
  await agent.createSession('b');
  await assert.rejects(agent.createSession('a'), { kind: 'sessionExists' });
  await collect(agent.prompt(message('hello'), 'a'));
  assert.equal(session.id, 'a');
  assert.throws(() => (session.id = 'c'), TypeError);
  assert.deepEqual((await session.getMessages()).map(({ role }) => role), ['user', 'assistant']);
  await session.clearMessages();
  assert.deepEqual(await session.getMessages(), []);
  assert.deepEqual((await agent.listSessions()).sort(), ['a', 'b']);
  await agent.clearSession('a');
  assert.equal(await agent.getSession('a'), undefined);
});

test('directory, model and environment reach the CLI', async (t) => {
  const world = new World();
  const agent = await start(t, world, { model: 'anthropic:haiku', env: { CLAUDE_TEST: 'one' } });
  await collect(agent.prompt(message('hello')));
  const [{ argv, cwd, env }] = world.processes();
  assert.ok(argv.includes('--model=haiku'), argv);
  assert.deepEqual([cwd, env.CLAUDE_TEST], [world.cwd, 'one']);
});

test('changed environment reaches the next prompt, in the same session', async (t) => {
  const world = new World();
  const agent = await start(t, world, { env: { CLAUDE_TEST: 'one' } });
  await collect(agent.prompt(message('hello')));
  await agent.updateEnvironment({ CLAUDE_TEST: 'two' });
  assert.deepEqual(agent.getEnvironment(), { CLAUDE_TEST: 'two' });
  await collect(agent.prompt(message('again')));
  const [before, after] = world.processes();
  assert.equal(after.env.CLAUDE_TEST, 'two');
  assert.ok(after.argv.includes(`--resume=${before.session}`), after.argv);
});

test('reader that stops cancels the turn, and the session stays usable', async (t) => {
  const world = new World();
  const agent = await start(t, world);
  for await (const { type } of agent.prompt(steps({ delta: 'working' }, { interrupted: true }))) {
    if (type === 'text-delta') break;
  }
  assert.ok(world.log().some(({ got }) => got?.request?.subtype === 'interrupt'));
  assert.equal((await collect(agent.prompt(message('next')))).error, undefined);
});

test('cancel ends the stream without an error', async (t) => {
  const agent = await start(t, new World());
  const chunks = [];
  for await (const chunk of agent.prompt(steps({ delta: 'working' }, { interrupted: true }))) {
    chunks.push(chunk);
    if (chunk.type === 'text-delta') await agent.cancel();
  }
  assert.equal(types(chunks).at(-1), 'abort');
  await agent.cancel(); // nothing runs
  await agent.cancel('never seen');
});

test('failed turn yields its text and an error chunk, then throws', async (t) => {
  const agent = await start(t, new World());
  const failed = { is_error: true, terminal_reason: 'api_error', result: 'API Error: 401 authentication_error' };
  for (const [list, kind] of [[[{ delta: 'part' }, { exit: 1 }], 'agentExited'], [[{ delta: 'part' }, { result: failed }], undefined]]) {
    const { chunks, error } = await collect(agent.prompt(steps(...list)));
    assert.equal(chunks.filter(({ type }) => type === 'text-delta').map(({ delta }) => delta).join(''), 'part');
    assert.equal(types(chunks).at(-1), 'error');
    assert.ok(error.kind === (kind ?? error.kind), error.kind);
  }
  assert.equal((await collect(agent.prompt(message('next')))).error, undefined);
});

test('slow reader slows the agent down and can cancel', { timeout: 30_000 }, async (t) => {
  const agent = await start(t, new World());
  const rounds = 30_000;
  let seen = 0;
  const read = agent.read;
  const paused = new Promise((resolve) => {
    agent.read = function (flows) {
      if (!flows) resolve();
      read.call(this, flows);
    };
  });
  for await (const { type } of agent.prompt(steps({ repeat: [rounds, [{ delta: 'x'.repeat(50) }]] }, { interrupted: true }))) {
    if (type !== 'text-delta') continue;
    seen += 1;
    await paused; // it does not read while chunks arrive
    await agent.getSession(); // calls are answered meanwhile
    break;
  }
  assert.equal(seen, 1);
  assert.equal((await collect(agent.prompt(message('next')))).error, undefined);
});
