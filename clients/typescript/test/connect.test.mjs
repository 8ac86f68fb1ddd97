// A client over the WebSocket of an acpipe that listens, with a network that fails.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connect } from 'acpipe';
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
  let isAsked;
  const asked = new Promise((resolve) => (isAsked = resolve));
  const client = await far({
    onPermission(request, { signal }) {
      requests.push(request.questionId);
      isAsked();
      if (requests.length > 1) return request.allow();
      return new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
    },
  });
  const turn = (await client.session({ sessionId: 's', cwd: world.cwd })).prompt('go');
  await within(asked);
  network.cut();
  const { text } = await within(turn.summary());
  assert.equal(JSON.parse(text).result.outcome.optionId, 'yes');
  assert.equal(requests.length, 2);
  assert.equal(requests[0], requests[1]);
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
