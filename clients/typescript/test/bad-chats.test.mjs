// Chats whose server sends what acpipe does not send, and servers whose browser does.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { connect as connectTcp } from 'node:net';
import { test } from 'node:test';
import { ClientChatTransport, createChatHandler, HttpChatTransport } from 'acpipe/ai';
import { State } from '../../../tests/ai-sdk/state.mjs';
import { CASES, message, Peer } from './bad-peers.mjs';
import { serve, within } from './support.mjs';

const SDKS = { 7: await import('ai'), 6: await import('ai6'), 5: await import('ai5') };

/** A chat of the AI SDK. */
function open(transport, major, id = 's') {
  class Chat extends SDKS[major].AbstractChat {}
  // Without `sendAutomaticallyWhen`: a server whose answers have decided approvals makes the AI SDK ask again for ever.
  return new Chat({ id, state: new State(), transport, generateId: randomUUID, onError: () => {} });
}

const events = (chunks) => chunks.map((chunk) => `data: ${message(chunk)}\n`).join('') + 'data: [DONE]\n\n';
const answering = (body) => ({ fetch: async () => new Response(body, { headers: { 'content-type': 'text/event-stream' } }) });

/** Sends a message to a peer in place of acpipe. The client attaches to the session and opens it before the prompt. */
const peerOf = (chunks) => {
  const attached = message({ id: 3, result: { lastSeq: 0, running: null } });
  const peer = new Peer().read().answer(2, 'session/ensure').read().write(attached).read();
  const lines = chunks.map((chunk, index) => message({ method: 'session/chunk', params: { sessionId: 's', turnId: 't', seq: index + 1, chunk } }));
  return peer.write(lines.join('') + message({ id: 4, result: CASES.results['session/prompt'] }));
};

for (const major of [7, 6, 5]) {
  for (const { name, chunks } of CASES.turns) {
    test(`ai ${major}: bad chunk does not end the program: ${name}`, async (t) => {
      t.mock.method(console, 'error', () => {}); // of the AI SDK
      t.mock.method(console, 'warn', () => {});
      const client = await peerOf(chunks).start();
      const chats = [
        open(new ClientChatTransport(client), major),
        open(new HttpChatTransport(answering(events(chunks))), major),
      ];
      for (const chat of chats) {
        await within(chat.sendMessage({ id: 't', role: 'user', parts: [{ type: 'text', text: 'hi' }] }));
        assert.ok(['ready', 'error'].includes(chat.status), chat.status);
        if (chat.status === 'error') assert.ok(chat.error instanceof Error);
      }
      assert.equal({}.polluted, undefined);
      assert.equal(Object.polluted, undefined);
    });
  }
}

const START = { type: 'start', messageId: 'm' };
const FINISH = { type: 'finish', finishReason: 'stop' };
const read = async (body) => {
  const chunks = [];
  const stream = await new HttpChatTransport(answering(body)).reconnectToStream({ chatId: 'x' });
  for await (const chunk of stream) chunks.push(chunk.type);
  return chunks;
};

test('bad event is logged and others are read', async (t) => {
  const warned = t.mock.method(console, 'warn', () => {});
  const bad = ['data: nonsense', 'data: null', 'data: 7', 'data: []', 'data: {}', 'data: {"type":7}', 'event: ping', ': comment', 'nonsense'];
  const body = `data: ${JSON.stringify(START)}\n\n${bad.join('\n\n')}\n\ndata: ${JSON.stringify(FINISH)}\n\ndata: [DONE]\n\n`;
  assert.deepEqual(await read(body), ['start', 'finish']);
  assert.deepEqual(await read(body.replaceAll('\n', '\r\n')), ['start', 'finish']);
  assert.deepEqual(await read(body.replaceAll('data: ', 'data:')), ['start', 'finish']);
  assert.equal(warned.mock.calls.length, 18);
});

test('stream that ends early is a lost connection', async () => {
  const cut = `data: ${JSON.stringify(START)}\n\ndata: {"type":"text-st`;
  await assert.rejects(read(cut), { kind: 'disconnected', message: /ended before the answer.*resumeStream/ });
  await assert.rejects(read(''), { kind: 'disconnected' });
});

test('event over the limit is an error', async () => {
  const part = new Uint8Array(2 ** 22).fill(120);
  let parts = 0;
  const body = new ReadableStream({ pull: (controller) => controller.enqueue((parts += 1, part)) });
  await assert.rejects(read(body), { kind: 'invalidMessage', message: /more than 128 MiB/ });
  assert.ok(parts < 40);
});

test('error that a server gives in another form is an error', async () => {
  for (const body of ['null', '7', '[]', '{', '"why"', '{"kind":7,"message":{}}']) {
    const response = () => new Response(body, { status: 500, headers: { 'content-type': 'application/json' } });
    const transport = new HttpChatTransport({ fetch: async () => response() });
    await assert.rejects(transport.reconnectToStream({ chatId: 'x' }), (error) => error instanceof Error && error.message === body);
  }
  const empty = new HttpChatTransport({ fetch: async () => new Response(null) });
  await assert.rejects(empty.reconnectToStream({ chatId: 'x' }).then((stream) => stream.getReader().read()), { kind: 'disconnected' });
});

test('request that is not valid HTTP for a handler is refused, and the server goes on', async () => {
  const api = await serve(createChatHandler(() => { throw new Error('no client'); }));
  const { port } = new URL(api);
  const send = (text) =>
    within(new Promise((resolve) => {
      let answer = '';
      const socket = connectTcp(Number(port), '127.0.0.1', () => socket.write(text));
      socket.on('data', (data) => (answer += data)).on('error', () => {}).on('close', () => resolve(answer.split('\r\n')[0]));
    }));
  const end = 'connection: close\r\n\r\n';
  assert.match(await send(`GET // HTTP/1.1\r\nhost: x\r\n${end}`), / 400 /);
  assert.match(await send(`GET /api/chat HTTP/1.1\r\nhost: a b:c:d\r\n${end}`), / 400 /);
  assert.match(await send(`TRACE /api/chat HTTP/1.1\r\nhost: x\r\n${end}`), / 40[04] /); // Bun has requests of this method
  assert.match(await send(`GET /api/chat/%E0%A4%A/messages HTTP/1.1\r\nhost: x\r\n${end}`), / 400 /);
  const cut = connectTcp(Number(port), '127.0.0.1', () => {
    cut.end('POST /api/chat HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{');
  });
  await within(new Promise((resolve) => cut.on('error', () => {}).on('close', resolve).resume()));
  assert.match(await send(`GET /api/chat HTTP/1.1\r\nhost: x\r\n${end}`), / 404 /);
});

// Bun's fetch repeats a request whose connection is closed.
test('chunk that cannot be sent ends its response alone', { skip: 'bun' in process.versions }, async (t) => {
  const chunk = '{"type":"data-x","data":[]}';
  const attached = message({ id: 4, result: { lastSeq: 0, running: null } });
  const line = `{"method":"session/chunk","params":{"sessionId":"s","turnId":"t","seq":2,"chunk":${chunk}}}\n`;
  const start = message({ method: 'session/chunk', params: { sessionId: 's', turnId: 't', seq: 1, chunk: START } });
  // The second line of the client declares that it answers permission requests.
  const peer = new Peer().read().answer(2, 'initialize').read().answer(3, 'session/ensure').read().write(attached);
  const client = await peer.read().write(start + line).start();
  // Some versions of Node encode each depth of nesting, others do not.
  const { stringify } = JSON;
  t.mock.method(JSON, 'stringify', (value, ...rest) => {
    if (value?.type === 'data-x') throw new RangeError('Maximum call stack size exceeded');
    return stringify(value, ...rest);
  });
  const keptAlive = new Set();
  t.mock.method(globalThis, 'setInterval', () => {
    const timer = setTimeout(() => {}, 0);
    keptAlive.add(timer);
    return timer;
  });
  t.mock.method(globalThis, 'clearInterval', (timer) => keptAlive.delete(timer));
  const api = await serve(createChatHandler(client));
  const body = JSON.stringify({ id: 's', messages: [{ id: 't', role: 'user', parts: [{ type: 'text', text: 'hi' }] }] });
  const response = fetch(api, { method: 'POST', headers: { 'content-type': 'application/json' }, body });
  await assert.rejects(within(response.then((answer) => answer.text())));
  assert.equal(keptAlive.size, 0);
});
