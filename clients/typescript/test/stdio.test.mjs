// A client with a subprocess.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { connect, start } from 'acpipe';
import { all, ASK, end, programs, say, textOf, until, untilState, WAIT, within, World } from './support.mjs';

const prompt = (...runs) => ({ 'session/prompt': runs });

test('turn streams chunks and ends with a summary', async () => {
  const world = new World(prompt([say('a\u2028'), say('b'), end()]));
  const client = await world.start();
  const session = await client.session({ sessionId: 's' });
  const turn = session.prompt('hi');
  const chunks = await all(turn);
  assert.equal(textOf(chunks), 'a\u2028b');
  assert.equal(chunks[0].type, 'start');
  assert.equal(chunks.at(-1).type, 'finish');
  const summary = await turn.summary();
  assert.equal(summary.text, 'a\u2028b');
  assert.equal(summary.stopReason, 'end_turn');
  // A second reader gets the same.
  assert.deepEqual(await all(turn), chunks);
  assert.deepEqual(await all(turn.stream()), chunks);
  const [user, assistant] = await session.messages();
  assert.equal(user.parts[0].text, 'hi');
  assert.equal(assistant.role, 'assistant');
});

test('sessions run side by side and do not mix', async () => {
  const client = await new World().start();
  const sessions = await Promise.all(['one', 'two'].map((sessionId) => client.session({ sessionId })));
  const texts = await Promise.all(sessions.map((session) => session.prompt(session.id).text()));
  assert.deepEqual(texts, ['one', 'two']);
});

test('reader that leaves the loop cancels the turn', async () => {
  const world = new World(prompt([say('a'), { wait: 'session/cancel' }, end('cancelled')]));
  const session = await (await world.start()).session();
  const turn = session.prompt('hi');
  for await (const chunk of turn) if (chunk.type === 'text-delta') break;
  assert.equal((await within(turn.summary())).stopReason, 'cancelled');
  assert.equal(world.received('session/cancel').length, 1);
});

test('signal cancels the turn', async () => {
  const world = new World(prompt([say('a'), { wait: 'session/cancel' }, end('cancelled')]));
  const session = await (await world.start()).session();
  const controller = new AbortController();
  const turn = session.prompt('hi', { signal: controller.signal });
  const chunks = turn[Symbol.asyncIterator]();
  await until(chunks, ({ type }) => type === 'text-delta');
  controller.abort();
  await until(chunks, ({ type }) => type === 'abort');
  assert.equal((await turn.summary()).stopReason, 'cancelled');
});

test('failed turn throws an error with its kind and summary', async () => {
  const world = new World(prompt([say('before'), { error: { code: -32000, message: 'Authentication required' } }]));
  const session = await (await world.start()).session();
  const turn = session.prompt('hi');
  const chunks = [];
  await assert.rejects(
    async () => {
      for await (const chunk of turn) chunks.push(chunk);
    },
    (error) => error.name === 'AcpipeError' && error.kind === 'authRequired' && error.summary.text === 'before',
  );
  assert.equal(chunks.at(-1).type, 'error');
  await assert.rejects(turn.summary(), { kind: 'authRequired' });
  // A stream for the AI SDK ends with the chunk.
  assert.deepEqual(await all(turn.stream()), chunks);
});

test('refused call throws an error with its kind and data', async () => {
  const client = await new World().start();
  await assert.rejects(client.call('session/get', { sessionId: 'none' }), { kind: 'sessionNotFound' });
  await assert.rejects(client.session({ sessionId: 's', bogus: 1 }), (error) => error.kind === 'invalidParams' && error.data.field === 'bogus');
  const session = await client.session({ sessionId: 's' });
  await assert.rejects(all(session.prompt('hi', { timeoutMs: 0 })), { kind: 'invalidParams' });
  await assert.rejects(session.prompt('hi', { timeoutMs: 0 }).summary(), { kind: 'invalidParams' });
});

test('session without an id is a new one, with an id that one, handed over to the agent of the client', async () => {
  const world = new World();
  const [demo, other] = [await world.start({ agent: 'demo' }), await world.start()];
  const session = await demo.session();
  assert.notEqual((await demo.session()).id, session.id);
  await session.prompt('hello').summary();
  await session.close();
  const continued = await other.session({ sessionId: session.id });
  assert.equal(continued.opened.recovery.handedOverFrom, 'demo');
  assert.match(await continued.prompt('next').text(), /hello[^]*next/);
  assert.equal((await continued.messages()).length, 4);
});

test('execute answers without a session', async () => {
  const client = await new World().start();
  const turn = client.execute('question');
  assert.equal(textOf(await all(turn)), 'question');
  assert.equal(await turn.text(), 'question');
  assert.deepEqual((await client.call('session/list')).sessions, []);
});

test('permission handler allows, denies with a reason, and chooses', async () => {
  const world = new World(prompt([ASK, { echoAnswer: true }, end()]));
  const answers = [(request) => request.allow(), (request) => request.deny({ message: 'why' }), (request) => request.choose('always')];
  const asked = [];
  const client = await world.start({
    onPermission(request) {
      asked.push([request.toolCall.title, request.command]);
      return answers[asked.length - 1](request);
    },
  });
  const session = await client.session();
  const texts = [];
  for (const _ of answers) texts.push(await session.prompt('go').text());
  assert.deepEqual(texts.map((text) => JSON.parse(text).result.outcome.optionId), ['yes', 'no', 'always']);
  assert.deepEqual(asked, Array(3).fill(['ls', 'ls']));
});

test('permission handler that throws leaves the decision to the policy', async () => {
  const world = new World(prompt([ASK, { echoAnswer: true }, end()]));
  const client = await world.start({
    onPermission() {
      throw new Error('no user');
    },
  });
  const text = await (await client.session()).prompt('go').text();
  assert.equal(JSON.parse(text).result.outcome.optionId, 'no');
});

test('permission request is withdrawn when its turn is cancelled', async () => {
  const world = new World(prompt([ASK, end('cancelled')]));
  let open;
  const asked = new Promise((resolve) => (open = resolve));
  let withdrawn;
  const aborted = new Promise((resolve) => (withdrawn = resolve));
  const client = await world.start({
    onPermission: (_request, { signal }) =>
      new Promise((_resolve, reject) => {
        signal.addEventListener('abort', () => {
          withdrawn();
          reject(signal.reason);
        });
        open();
      }),
  });
  const turn = (await client.session()).prompt('go');
  await within(asked);
  assert.equal(await turn.cancel(), true);
  await within(aborted);
  assert.equal((await within(turn.summary())).stopReason, 'cancelled');
});

test('question handler answers a form', async () => {
  const form = { mode: 'form', message: 'Which?', requestedSchema: { type: 'object', properties: { db: { type: 'string' } }, required: ['db'] } };
  const world = new World(prompt([{ ask: { method: 'elicitation/create', params: form } }, { echoAnswer: true }, end()]));
  const client = await world.start({
    onQuestion: (question) => ({ action: 'accept', content: { db: question.message } }),
  });
  const text = await (await client.session()).prompt('go').text();
  assert.deepEqual(JSON.parse(text).result, { action: 'accept', content: { db: 'Which?' } });
});

test('file handler serves the agent', async () => {
  const read = { ask: { method: 'fs/read_text_file', params: { path: '/unsaved.txt' } } };
  const world = new World(prompt([read, { echoAnswer: true }, end()]));
  const client = await world.start({ handlers: { 'fs/readTextFile': ({ path }) => ({ content: `of ${path}` }) } });
  const text = await (await client.session()).prompt('go').text();
  assert.equal(JSON.parse(text).result.content, 'of /unsaved.txt');
});

test('notifications are typed events that can be removed', async () => {
  const client = await new World().start();
  const states = [];
  const stop = client.on('agent/state', ({ state }) => states.push(state));
  await client.session({ sessionId: 'a' });
  assert.deepEqual(states, ['starting', 'ready']);
  stop();
  await client.call('agent/disconnect');
  assert.equal(states.length, 2);
});

test('default agent starts by opening a session', async () => {
  const world = new World();
  // No agent is chosen, and none is installed: the demo agent answers.
  const client = await world.start({ agent: undefined, env: { ...world.env, PATH: programs } });
  assert.match(await (await client.session()).prompt('hello').text(), /hello/);
});

test('session of a killed acpipe continues, and its turn is not run twice', async () => {
  const world = new World(prompt([{ if: { params: 'first', then: [say('a'), { hang: true }], else: [{ default: true }] } }]));
  const { binary, kill } = world.killable();
  const client = await world.start({ binary });
  const mcpServers = [{ name: 'own', command: '/bin/true' }];
  const session = await client.session({ sessionId: 's', mcpServers });
  const everything = session.chunks({ afterSeq: 0 });
  const turn = session.prompt('first', { turnId: 't1' });
  await until(turn[Symbol.asyncIterator](), ({ type }) => type === 'text-delta');
  const back = untilState(client, 'connected');
  kill();
  await back;
  await assert.rejects(within(turn.summary()), { kind: 'turnUnfinished' });
  assert.equal(await session.prompt('second').text(), 'second');
  const chunks = await until(everything, ({ chunk }) => chunk.type === 'finish');
  // All chunks of both turns, each once.
  assert.deepEqual(chunks.map(({ seq }) => seq), chunks.map((_, index) => index + 1));
  assert.deepEqual(chunks.filter(({ chunk }) => ['error', 'finish'].includes(chunk.type)).map(({ turnId }) => turnId).indexOf('t1'), 0);
  await everything.return();
  assert.deepEqual(world.received('session/prompt').map(({ params }) => params.prompt[0].text), ['first', 'second']);
  // acpipe does not store the servers: the client passes them again.
  assert.deepEqual(world.received('session/new').map(({ params }) => params.mcpServers.map(({ name }) => name)), [['own'], ['own']]);
});

test('calls fail after close, and close is idempotent', async () => {
  const client = await new World().start();
  const session = await client.session();
  await client.close();
  await client.close();
  await assert.rejects(session.prompt('hi').summary(), { kind: 'disconnected', message: 'the client was closed' });
  assert.equal(client.state, 'closed');
});

test('start reports why acpipe exited', async () => {
  await assert.rejects(new World().start({ args: ['--bogus'] }), (error) => error.kind === 'invalidParams' && error.message.includes('--bogus'));
  const world = new World();
  const binary = join(world.dir, 'broken');
  writeFileSync(binary, '#!/bin/sh\necho no library >&2\nexit 1\n', { mode: 0o755 });
  await assert.rejects(world.start({ binary }), { kind: 'acpipeExited', message: 'acpipe exited with the code 1: no library' });
  await assert.rejects(new World().start({ binary: '/none' }), { kind: 'binaryNotFound', message: /cannot start acpipe: .*ENOENT/ });
  await assert.rejects(new World().start({ cwd: '/none' }), { kind: 'invalidParams', message: /cwd is "\/none", which is not a directory/ });
  await assert.rejects(new World().start({ agent: 'no-such-agent' }), { kind: 'agentNotFound', message: /agent "no-such-agent" not found/ });
  // As acpipe answers a call with this name.
  const ambiguous = { kind: 'agentNotFound', message: /agent "claud" is ambiguous; use one of claude, claude-acp/ };
  await assert.rejects(new World().start({ agent: 'claud' }), ambiguous);
  await assert.rejects((await new World().start()).call('agent/connect', { agent: 'claud' }), ambiguous);
});

test('acpipe exits with the program that started it', async () => {
  const world = new World(prompt([say('a'), WAIT, end()]));
  const file = join(world.dir, 'program.mjs');
  writeFileSync(file, `
    import { start } from ${JSON.stringify(import.meta.resolve('acpipe'))};
    const client = await start(${JSON.stringify({ agent: world.agent, cwd: world.cwd })});
    const session = await client.session();
    for await (const chunk of session.prompt('hi')) {
      if (chunk.type === 'text-delta') console.log((await client.call('agent/status')).pid);
    }
  `);
  const program = spawn(process.execPath, [file], { env: world.env, stdio: ['ignore', 'pipe', 'inherit'] });
  const pid = await within(new Promise((resolve) => program.stdout.setEncoding('utf8').once('data', (text) => resolve(Number(text)))));
  const exited = new Promise((resolve) => program.once('exit', resolve));
  program.kill('SIGKILL');
  await exited;
  const isAlive = () => {
    try {
      return process.kill(pid, 0);
    } catch {
      return false;
    }
  };
  const limit = Date.now() + 15_000;
  while (isAlive() && Date.now() < limit) await new Promise((resolve) => setTimeout(resolve, 50));
  assert.equal(isAlive(), false, 'the agent still runs');
});

test('misspelt option of a program without types is an error', async () => {
  await assert.rejects(start({ permision: 'ask' }), { kind: 'invalidParams', message: /^start has no option "permision"; it has agent, / });
  await assert.rejects(start('demo'), { kind: 'invalidParams', message: 'start takes an object: start({ agent: … })' });
  await assert.rejects(connect({ adress: 'x' }), { kind: 'invalidParams', message: /^connect has no option "adress"/ });
  await assert.rejects(start({ agent: 'gemini --acp' }), { kind: 'invalidParams', message: /agent: \['gemini', '--acp'\]$/ });
});

test('stack of an error has the line of the call', async () => {
  const client = await new World().start();
  const error = await client.call('session/get', { sessionId: 'none' }).catch((error) => error);
  assert.match(error.stack, /^AcpipeError: session "none"/);
  assert.match(error.stack, /stdio\.test\.mjs/);
});

test('fault of a handler is reported, and the agent is refused', async (t) => {
  const reported = t.mock.method(console, 'error', () => {});
  const handlers = [
    () => { throw new Error('my fault'); },
    () => true,
    (request) => request.choose('none'),
  ];
  for (const [index, onPermission] of handlers.entries()) {
    const client = await new World(prompt([ASK, end()])).start({ onPermission });
    await (await client.session()).prompt('hi').summary();
    await client.close();
    const [message, error] = reported.mock.calls[index].arguments;
    assert.equal(message, 'acpipe: the handler of permission/request failed');
    assert.match(error.message, /my fault|must return request\.allow\(\)|"none" is not offered; use one of/);
  }
});

test('handler whose answer is not needed any more is no fault', async (t) => {
  const reported = t.mock.method(console, 'error', () => {});
  let ask;
  const asked = new Promise((resolve) => (ask = resolve));
  const onPermission = (_request, { signal }) =>
    new Promise((_resolve, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason));
      ask();
    });
  const client = await new World(prompt([ASK, end('cancelled')])).start({ onPermission });
  const turn = (await client.session()).prompt('hi');
  await within(asked);
  await turn.cancel();
  await turn.summary();
  await client.close();
  assert.deepEqual(reported.mock.calls.map(({ arguments: [message] }) => message), []);
});

test('policy that asks is warned about once if nothing answers', async (t) => {
  const warned = t.mock.method(console, 'warn', () => {});
  const client = await new World(prompt([ASK, end()], [{ default: true }])).start({ permissions: 'ask' });
  const session = await client.session();
  for (const text of ['one', 'two']) await session.prompt(text).summary();
  assert.deepEqual(warned.mock.calls.map(({ arguments: [message] }) => message), [
    'acpipe: permissions is "ask", but this program answers no permission requests: tool calls are refused unless another client answers; ' +
      'pass onPermission to start, or prompt through createChatHandler',
  ]);
  const answering = await new World().start({ permissions: 'reads', onPermission: (request) => request.allow() });
  await (await answering.session()).prompt('hi').summary();
  assert.equal(warned.mock.calls.length, 1);
});

test('stored sessions are listed beyond a page', async () => {
  const client = await new World().start();
  for (let number = 0; number < 101; number += 1) await client.call('session/create', { sessionId: `s${number}` });
  const ids = [];
  for await (const { sessionId } of client.sessions()) ids.push(sessionId);
  assert.equal(new Set(ids).size, 101);
  assert.equal(ids[0], 's100');
});
