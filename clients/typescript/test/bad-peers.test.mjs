// What the client does if the program that it started does not behave as acpipe does.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { Acpipe } from 'acpipe';
import { bytesOf, CASES, message, Peer } from './bad-peers.mjs';
import { all, programs, within, World } from './support.mjs';

/** Calls a method; resolves with `result`, or the error. */
async function outcomeOf(client) {
  return within(client.call('agent/list').then(() => 'result', (error) => error));
}

/** Compares an outcome with that of a case, in which the message is a pattern. */
function check(outcome, expected) {
  if (expected === 'result') return assert.equal(outcome, expected);
  assert.equal(outcome.kind, expected.kind, outcome.message);
  assert.match(outcome.message, new RegExp(expected.message));
}

/** Records what the package prints. */
function recordLog(t) {
  const [warned, failed] = ['warn', 'error'].map((name) => t.mock.method(console, name, () => {}));
  return (logged) => {
    const texts = warned.mock.calls.map(({ arguments: [text] }) => text);
    if (logged) assert.ok(texts.some((text) => text.includes(logged)), `${logged}: ${texts}`);
    else assert.deepEqual(texts, []);
    assert.ok(texts.length <= 25);
    for (const text of texts) assert.match(text, /^[^\p{C}\u2028\u2029]{1,2000}$/u);
    assert.deepEqual(failed.mock.calls, []);
    assert.equal({}.polluted, undefined);
  };
}

for (const { name, write, answered, outcome, after, logged } of CASES.lines) {
  test(`bad line is logged and others are read: ${name}`, async (t) => {
    const checkLog = recordLog(t);
    const peer = new Peer().read().write(bytesOf(write));
    if (answered) peer.answer(2, 'agent/list');
    const client = await peer.read().answer(3, 'agent/list').start();
    const notified = [];
    for (const event of ['agent/state', 'session/chunk']) client.on(event, (params) => notified.push(params));
    check(await outcomeOf(client), outcome);
    check(await outcomeOf(client), after);
    assert.deepEqual(notified, []);
    checkLog(logged);
  });
}

for (const { name, do: steps, message: pattern } of CASES.ends) {
  test(`end of the stream settles all calls: ${name}`, async (t) => {
    recordLog(t);
    const peer = new Peer().read().read();
    for (const step of steps) peer.do(step);
    const client = await peer.start({ onStderr() { throw new Error('of the program'); } });
    const outcomes = await Promise.all([outcomeOf(client), outcomeOf(client)]);
    for (const error of outcomes) {
      check(error, { kind: 'disconnected', message: pattern });
      assert.ok(error.message.length < 2 ** 21);
    }
    await client.close();
  });
}

for (const { name, write, answers, logged } of CASES.requests) {
  test(`bad request is refused: ${name}`, async (t) => {
    const checkLog = recordLog(t);
    const peer = new Peer().read().write(bytesOf(write));
    for (const _ of answers) peer.read();
    const client = await peer.answer(2, 'agent/list').read().answer(3, 'agent/list').start({
      onPermission: (request) => (request.questionId === 'wait' ? new Promise(() => {}) : request.allow()),
      onQuestion: () => ({ action: 'cancel' }),
      handlers: { 'fs/readTextFile': ({ path }) => ({ content: path }) },
    });
    assert.equal(await outcomeOf(client), 'result');
    assert.equal(await outcomeOf(client), 'result');
    const sent = peer.received().filter(({ method }) => method === undefined);
    assert.deepEqual(sent.map(({ id, error, result }) => (error ? { id, code: error.code } : { id, option: result.outcome.optionId })), answers);
    checkLog(logged);
  });
}

for (const { name, chunks } of CASES.turns) {
  test(`bad chunk does not end the turn: ${name}`, async (t) => {
    recordLog(t);
    const client = await new Peer().turn(chunks, CASES.results['session/prompt']).start();
    const session = await client.session({ sessionId: 's' });
    const turn = session.prompt('hi', { turnId: 't' });
    await within(all(turn));
    assert.equal(await turn.text(), 'done');
    assert.equal(await outcomeOf(client), 'result');
    assert.equal({}.polluted, undefined);
  });
}

for (const { name, summary } of CASES.summaries) {
  test(`bad summary is an error of the turn: ${name}`, async () => {
    const client = await new Peer().turn([], summary).start();
    const turn = (await client.session({ sessionId: 's' })).prompt('hi', { turnId: 't' });
    const expected = { kind: 'invalidMessage', message: /the response to `session\/prompt`/ };
    await assert.rejects(within(all(turn)), expected);
    await assert.rejects(turn.text(), expected);
    assert.equal(await outcomeOf(client), 'result');
  });
}

test('start fails if the answer to initialize is not valid', async () => {
  const connector = (write) => async (events) => ({ send: () => queueMicrotask(() => events.message(write)), close: async () => {} });
  await assert.rejects(Acpipe.open(connector('{"id":1,"result":null}'), {}), { kind: 'invalidMessage', message: /the response to `initialize`/ });
});

test('result that is nested too deeply is an error of its call', async (t) => {
  const checkLog = recordLog(t);
  const deep = '['.repeat(100_000) + ']'.repeat(100_000);
  const client = await new Peer().read().write(`${deep}\n{"id":2,"result":${deep}}\n`).read().answer(3, 'agent/list').start();
  check(await outcomeOf(client), { kind: 'invalidMessage', message: 'the response to `agent/list`' });
  assert.equal(await outcomeOf(client), 'result');
  checkLog('is not an object');
});

test('pages that do not advance are an error', async () => {
  const page = { sessions: [{ sessionId: 's' }], nextCursor: 'same' };
  const messages = { messages: [{ id: 'm' }], more: true };
  const entries = { entries: [], next: 0 };
  const answers = (results) => {
    let peer = new Peer().read().answer(2, 'session/ensure');
    for (const [index, result] of results.entries()) peer = peer.read().write(message({ id: index + 3, result }));
    return peer;
  };
  const expected = { kind: 'invalidMessage', message: /does not advance/ };
  const listing = await answers([page, page]).start();
  await listing.session({ sessionId: 's' });
  await assert.rejects(within(all(listing.sessions())), expected);
  const reading = await (await answers([messages, messages]).start()).session({ sessionId: 's' });
  await assert.rejects(within(reading.messages()), expected);
  const replaying = await (await answers([{ lastSeq: 0, running: null }, entries]).start()).session({ sessionId: 's' });
  await assert.rejects(within(all(replaying.chunks({ afterSeq: 0 }))), expected);
});

test('listener that fails stops neither the others nor the program', async (t) => {
  const reported = t.mock.method(console, 'error', () => {});
  const state = message({ method: 'agent/state', params: { state: 'ready' } });
  const client = await new Peer().read().write(state).answer(2, 'agent/list').read().do({ exit: 0 }).start();
  const states = [];
  client.on('agent/state', () => { throw new Error('one'); });
  client.on('agent/state', async () => { throw new Error('two'); });
  client.on('agent/state', ({ state }) => states.push(state));
  client.on('connection', () => { throw new Error('three'); });
  assert.equal(await outcomeOf(client), 'result');
  assert.deepEqual(states, ['ready']);
  check(await outcomeOf(client), { kind: 'disconnected', message: 'code 0' });
  await client.close();
  const errors = reported.mock.calls.map(({ arguments: [, error] }) => error.message);
  assert.deepEqual(['one', 'two', 'three'].filter((text) => !errors.includes(text)), []);
});

test('fault of a handler is answered', async (t) => {
  const reported = t.mock.method(console, 'error', () => {});
  const params = JSON.parse(bytesOf(CASES.requests[0].write)).params;
  const faults = [
    () => { throw undefined; },
    async () => { throw new Error('why'); },
    () => undefined,
    () => ({ outcome: { big: 1n } }),
    () => { const outcome = {}; return { outcome: Object.assign(outcome, { outcome }) }; },
  ];
  for (const onPermission of faults) {
    const peer = new Peer().read().write(message({ id: 'q', method: 'permission/request', params })).read().answer(2, 'agent/list');
    const client = await peer.start({ onPermission });
    assert.equal(await outcomeOf(client), 'result');
    assert.deepEqual(peer.received().filter(({ id }) => id === 'q').map(({ error }) => error.code), [-32603]);
  }
  assert.equal(reported.mock.calls.length, faults.length);
});

/** The command line that repeats the tape of a bad agent. */
function tapeIn(dir) {
  const tape = join(dir, 'bad.tape');
  writeFileSync(tape, CASES.tape.map((record) => `${JSON.stringify(record)}\n`).join(''));
  return [join(programs, 'acpipe'), 'replay', '--at-once', tape];
}

test('repeated tape of a bad agent ends its turn', async (t) => {
  const checkLog = recordLog(t);
  const world = new World();
  const asked = [];
  const onPermission = (request) => {
    asked.push(request);
    return request.deny();
  };
  const client = await world.start({ agent: tapeIn(world.dir), onPermission });
  const turn = (await client.session()).prompt('hi');
  await within(all(turn));
  assert.match(await turn.text(), /b$/);
  assert.equal(asked.length, 1);
  await client.call('agent/list');
  checkLog(null);
});

test('repeated tape in place of acpipe fails the start', async () => {
  const world = new World();
  const binary = join(world.dir, 'replay');
  writeFileSync(binary, `#!/bin/sh\nexec ${tapeIn(world.dir).join(' ')}\n`, { mode: 0o755 });
  await assert.rejects(within(world.start({ binary })), { kind: 'invalidMessage', message: /the response to `initialize`/ });
});

test('handler may close the client', async () => {
  const params = JSON.parse(bytesOf(CASES.requests[0].write)).params;
  const client = await new Peer().read().write(message({ id: 'q', method: 'permission/request', params })).start({
    onPermission: async (request) => {
      await client.close();
      return request.allow();
    },
  });
  check(await outcomeOf(client), { kind: 'disconnected', message: '' });
  assert.equal(client.state, 'closed');
});
