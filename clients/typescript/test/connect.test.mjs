// A client over the WebSocket of an acpipe that listens, with a network that fails.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Acpipe, connect } from 'acpipe';
import { createChatHandler } from 'acpipe/ai';
import { all, ASK, atEnd, end, Network, say, textOf, until, untilState, WAIT, within, World } from './support.mjs';

const waiting = { if: { params: 'go', then: [say('a'), WAIT, say('b'), end()], else: [{ default: true }] } };

async function open(world, ...args) {
  const place = await world.listen('--allow-host', '127.0.0.1', ...args);
  const network = await Network.open(place.url);
  const dial = async (url, options = {}) => {
    const client = await connect({ url, token: place.token, ...options });
    atEnd(() => client.close());
    return client;
  };
  return { network, token: place.token, far: (options) => dial(network.url, options), near: (options) => dial(place.url, options) };
}

test('turn continues after the connection is lost', async () => {
  const world = new World({ 'session/prompt': [[waiting]] });
  const { network, far } = await open(world);
  const client = await far();
  const session = await client.session({ sessionId: 's', cwd: world.cwd });
  const turn = session.prompt('go');
  const chunks = turn[Symbol.asyncIterator]();
  const first = await until(chunks, ({ type }) => type === 'text-delta');
  const back = untilState(client, 'connected');
  network.cut();
  await back;
  // The agent continues once it gets another session.
  await client.session({ sessionId: 'other', cwd: world.cwd });
  const rest = await until(chunks, ({ type }) => type === 'finish');
  assert.equal(textOf([...first, ...rest]), 'ab');
  assert.equal((await within(turn.summary())).text, 'ab');
  assert.deepEqual(await all(turn), [...first, ...rest]);
  assert.equal(world.received('session/prompt').length, 1);
});

test('turn that ended while the network was down is complete', async () => {
  const world = new World({ 'session/prompt': [[waiting]] });
  const { network, far, near } = await open(world);
  const client = await far();
  const session = await client.session({ sessionId: 's', cwd: world.cwd });
  const turn = session.prompt('go');
  await until(turn[Symbol.asyncIterator](), ({ type }) => type === 'text-delta');
  const lost = untilState(client, 'reconnecting');
  network.goDown();
  assert.equal((await lost).error.kind, 'disconnected');
  // Another client sees the turn from its beginning, and makes it end.
  const other = await near();
  const same = await other.session({ sessionId: 's', cwd: world.cwd });
  const followed = await same.running();
  await other.session({ sessionId: 'other', cwd: world.cwd });
  const whole = await within(all(followed));
  assert.equal(textOf(whole), 'ab');
  assert.equal(await same.running(), undefined);
  network.comeBack();
  assert.equal((await within(turn.summary())).text, 'ab');
  assert.deepEqual(await all(turn), whole);
  assert.equal(world.received('session/prompt').length, 1);
});

test('followed turn and the chunks of a session continue after the connection is lost', async () => {
  const world = new World({ 'session/prompt': [[waiting]] });
  const { network, far, near } = await open(world);
  const one = await near();
  const session = await one.session({ sessionId: 's', cwd: world.cwd });
  assert.equal(await session.prompt('before').text(), 'before');
  const turn = session.prompt('go');
  await until(turn[Symbol.asyncIterator](), ({ type }) => type === 'text-delta');
  const two = await far();
  const same = await two.session({ sessionId: 's', cwd: world.cwd });
  const followed = (await same.running())[Symbol.asyncIterator]();
  const stored = same.chunks({ afterSeq: 0 });
  const first = await until(followed, ({ type }) => type === 'text-delta');
  const early = await until(stored, ({ chunk }) => chunk.delta === 'a');
  const back = untilState(two, 'connected');
  network.cut();
  await back;
  await one.session({ sessionId: 'other', cwd: world.cwd });
  const rest = await until(followed, ({ type }) => type === 'finish');
  assert.deepEqual([...first, ...rest], await all(turn));
  const late = await until(stored, ({ chunk }) => chunk.delta === 'b');
  const numbers = [...early, ...late].map(({ seq }) => seq);
  assert.deepEqual(numbers, numbers.map((_, index) => index + 1));
  await stored.return();
});

test('permission request is asked again after the connection is lost', async () => {
  const world = new World({ 'session/prompt': [[ASK, { echoAnswer: true }, end()]] });
  const { network, far } = await open(world, '--permissions', 'ask');
  const requests = [];
  const aborted = [];
  let isAsked;
  const asked = new Promise((resolve) => (isAsked = resolve));
  const client = await far({
    onPermission(request, { signal }) {
      requests.push(request.questionId);
      isAsked();
      if (requests.length > 1) return request.allow();
      return new Promise((_resolve, reject) => signal.addEventListener('abort', () => {
        aborted.push(request.questionId);
        reject(signal.reason);
      }));
    },
  });
  const turn = (await client.session({ sessionId: 's', cwd: world.cwd })).prompt('go');
  await within(asked);
  network.cut();
  const { text } = await within(turn.summary());
  assert.equal(JSON.parse(text).result.outcome.optionId, 'yes');
  assert.equal(requests.length, 2);
  assert.equal(requests[0], requests[1]);
  assert.deepEqual(aborted, [requests[0]]);
});

test('client that is closed while it reconnects fails its turns', async () => {
  const world = new World({ 'session/prompt': [[waiting]] });
  const { network, far, near } = await open(world);
  const client = await far();
  const turn = (await client.session({ sessionId: 's', cwd: world.cwd })).prompt('go');
  await until(turn[Symbol.asyncIterator](), ({ type }) => type === 'text-delta');
  const lost = untilState(client, 'reconnecting');
  network.goDown();
  await lost;
  await client.close();
  await assert.rejects(within(turn.summary()), { kind: 'disconnected' });
  // The turn itself goes on.
  const other = await near();
  assert.notEqual(await (await other.session({ sessionId: 's', cwd: world.cwd })).running(), undefined);
});

test('wrong token and wrong address are refused', async () => {
  const { near, network } = await open(new World());
  await assert.rejects(near({ token: 'wrong' }), { kind: 'disconnected', message: /check that acpipe listens there, and the token/ });
  network.goDown();
  await assert.rejects(connect({ url: `${network.url}/#token=x` }), { kind: 'disconnected' });
});

test('approval that is sent while the network is down is delivered afterwards', async () => {
  const world = new World({ 'session/prompt': [[ASK, { echoAnswer: true }, end()]] });
  const { network, far } = await open(world, '--permissions', 'ask');
  const client = await far();
  const handler = createChatHandler(client, { session: () => ({ cwd: world.cwd }) });
  const send = async (messages) => {
    const headers = { 'content-type': 'application/json' };
    const response = await handler(new Request('http://app.test/api/chat', { method: 'POST', headers, body: JSON.stringify({ id: 'x', messages }) }));
    return within(response.text());
  };
  const user = { id: 'u', role: 'user', parts: [{ type: 'text', text: 'go' }] };
  const events = (await send([user])).split('\n\n').filter((event) => event.startsWith('data: {')).map((event) => JSON.parse(event.slice(6)));
  const { approvalId: id, toolCallId } = events.find(({ type }) => type === 'tool-approval-request');
  const part = { type: 'dynamic-tool', toolCallId, state: 'approval-responded', approval: { id, approved: true } };
  const lost = untilState(client, 'reconnecting');
  network.goDown();
  await lost;
  const rest = send([user, { id: 'm', role: 'assistant', metadata: events.at(-1).messageMetadata, parts: [part] }]);
  network.comeBack();
  assert.match(await rest, /optionId[^]*yes/);
});

test('followed turn that ends before its stored chunks are read is complete', async () => {
  // An acpipe that reports a running turn once, and then the end of the turn.
  const chunk = (seq, type) => ({ seq, turnId: 't', chunk: { type, id: 'x', delta: 'a' } });
  const running = { turnId: 't', messageId: 'm', afterSeq: 6, clientId: null };
  let attached = 0;
  const results = {
    initialize: () => ({ protocolVersion: 1, defaultAgent: { name: 'default' } }),
    'session/ensure': () => ({ sessionId: 's' }),
    'session/attach': () => ((attached += 1) === 1 ? { running, lastSeq: 8 } : { running: null, lastSeq: 9 }),
    'session/replay': ({ afterSeq }) => ({ entries: [chunk(7, 'start'), chunk(8, 'text-delta'), chunk(9, 'finish')].filter(({ seq }) => seq > afterSeq), next: null }),
  };
  const client = await Acpipe.open(async (events) => ({
    send(text) {
      const { id, method, params } = JSON.parse(text);
      const receive = (message) => setImmediate(() => events.message(JSON.stringify(message)));
      // The last chunk comes live before the second report.
      if (attached === 1) receive({ method: 'session/chunk', params: { sessionId: 's', ...chunk(9, 'finish') } });
      receive({ id, result: results[method](params) });
    },
    close: async () => {},
  }), {});
  const turn = await (await client.session({ sessionId: 's' })).running();
  assert.deepEqual((await within(all(turn))).map(({ type }) => type), ['start', 'text-delta', 'finish']);
});
