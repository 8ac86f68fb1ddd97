// The route handler: statuses, sessions of chats, approvals in special situations.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { execFileSync } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { test } from 'node:test';
import { AcpipeError as Own } from 'acpipe';
import { createChatHandler, sharedClient, toNodeHandler } from 'acpipe/ai';
import { ASK, atEnd, end, programs, say, textOf, tool, WAIT, within, World } from './support.mjs';

const BASE = 'http://app.test/api/chat';
const JSON_TYPE = { 'content-type': 'application/json' };

const post = (path, body, headers = JSON_TYPE) =>
  new Request(`${BASE}${path}`, { method: 'POST', headers, body: typeof body === 'string' ? body : JSON.stringify(body) });
const get = (path) => new Request(`${BASE}${path}`);
const user = (text, id = randomUUID()) => ({ id, role: 'user', parts: [{ type: 'text', text }] });
const prompt = (id, message) => post('', { id, messages: [message], trigger: 'submit-message' });

/** The chunks of a response. */
async function chunksOf(response) {
  assert.equal(response.status, 200, await (response.ok ? '' : response.text()));
  assert.equal(response.headers.get('x-vercel-ai-ui-message-stream'), 'v1');
  const text = await within(response.text());
  assert.ok(text.endsWith('data: [DONE]\n\n'));
  const events = text.split('\n\n').filter((event) => event.startsWith('data: {'));
  return events.map((event) => JSON.parse(event.slice('data: '.length)));
}

/** The reason of a refusal: text where the AI SDK reads it, else an error with a kind. */
async function reasonOf(response) {
  if (!response.headers.get('content-type').startsWith('application/json')) return response.text();
  const { kind, message } = await response.json();
  assert.ok(kind);
  return message;
}

test('requests that are not valid are refused with a status and a reason', async () => {
  const handler = createChatHandler(await new World().start());
  const expected = [
    [post('', { id: 'x', messages: [] }), 400, /messages/],
    [post('', { id: 'x', messages: [{ role: 'assistant', parts: [] }] }), 400, /answers no approval/],
    [post('', 'not JSON'), 400, /not a JSON object/],
    // A request that any page in the browser can send.
    [post('', { id: 'x', messages: [user('a')] }, { 'content-type': 'text/plain' }), 415, /content-type/],
    [post('/x/approval', { approvalId: 'none', approved: true }), 409, /not open/],
    [post('/x/answer', { questionId: 'none', action: 'accept' }), 409, /not open/],
    [post('', { id: 'x', messages: [user('a')], approvals: 'inlined' }), 400, /^approvals: "inlined" .* nextRequest or inline$/],
    [post('', { id: 'x', messages: [user('a')], trigger: 'submit' }), 400, /^trigger: "submit" .* submit-message or regenerate-message$/],
    [get('/x/stream?approvals=inlined'), 400, /^approvals: /],
    [post('/x/approval', { approvalId: 'none' }), 400, /^approved: must be true or false/],
    [post('/x/approval', { approved: true }), 400, /^approvalId: /],
    [post('/x/answer', { questionId: 'none', action: 'yes' }), 400, /^action: .* accept or decline or cancel$/],
    [post('/x/cancel', 'turnId=1', {}), 415, /content-type/],
    [new Request(`${BASE}/x/cancel`, { method: 'POST', headers: { 'sec-fetch-site': 'cross-site' } }), 403, /another site/],
    [get(''), 404, /GET/],
    [new Request(`${BASE}/x/messages`, { headers: { 'x-ai-sdk-major': '6' } }), 400, /chunkProfile: 6/],
    [new Request(`${BASE}/x/messages`, { headers: { 'x-ai-sdk-major': '8' } }), 400, /must be 5, 6 or 7/],
    [get('/x/unknown'), 404, /GET .*; the chats are at \/api\/chat/],
    [post('/x', { id: 'x', messages: [user('a')] }), 404, /POST/],
    [new Request('http://app.test/x/messages'), 404, /GET/],
    [prompt('x'.repeat(2000), user('a')), 400, /session/i],
  ];
  for (const [request, status, reason] of expected) {
    const response = await handler(request);
    const text = await reasonOf(response);
    assert.equal(response.status, status, `${request.method} ${request.url.slice(0, 80)}: ${text}`);
    assert.match(text, reason);
  }
  assert.deepEqual(await (await handler(post('/none/cancel', {}))).json(), { cancelled: false });
  assert.deepEqual(await (await handler(new Request(`${BASE}/none/cancel`, { method: 'POST' }))).json(), { cancelled: false });
  assert.equal((await handler(get('/x/stream'))).status, 204);
  assert.deepEqual(await (await handler(get('/x/messages'))).json(), { messages: [], running: null });
});

test('acpipe that cannot start is reported, and started at the next request', async () => {
  const world = new World();
  let binary = '/none';
  const handler = createChatHandler(() => world.start({ binary }));
  const response = await handler(prompt('x', user('a')));
  assert.equal(response.status, 503);
  assert.match(await response.text(), /cannot start acpipe/);
  binary = join(programs, 'acpipe');
  assert.equal(textOf(await chunksOf(await handler(prompt('x', user('a'))))), 'a');
});

test('requests at the same time start one client', async () => {
  const world = new World();
  let starts = 0;
  const handler = createChatHandler(() => ((starts += 1), world.start()));
  await Promise.all([handler(get('/x/messages')), handler(get('/x/stream'))]);
  assert.equal(starts, 1);
});

test('chat is deleted in every state', async () => {
  const world = new World({ 'session/prompt': [[say('a'), end()], [say('a'), { wait: 'session/cancel' }, end('cancelled')], [say('before '), ASK, end('cancelled')]] });
  const handler = createChatHandler(await world.start({ permissions: 'ask' }));
  await handler.delete('none');
  await chunksOf(await handler(prompt('idle', user('a'))));
  const running = chunksOf(await handler(prompt('runs', user('a'))));
  await chunksOf(await handler(prompt('asks', user('a'))));
  for (const id of ['idle', 'runs', 'asks']) {
    assert.notDeepEqual(await handler.messages(id), [], id);
    await within(handler.delete(id));
    assert.deepEqual(await handler.messages(id), [], id);
  }
  assert.equal((await running).at(-1).type, 'abort');
});

test('error of a copy of the module is an instance of the class', async () => {
  const { AcpipeError } = createRequire(import.meta.url)('acpipe');
  assert.notEqual(AcpipeError, Own);
  assert.ok(new AcpipeError('busy', 'it runs') instanceof Own);
  assert.ok(!(new Error('it runs') instanceof Own));
});

test('copies of the module share a client and its questions', async () => {
  const copy = createRequire(import.meta.url)('acpipe/ai');
  assert.notEqual(copy.createChatHandler, createChatHandler);
  const world = new World(asking);
  const name = randomUUID();
  const failed = sharedClient(() => world.start({ binary: '/none' }), name);
  await assert.rejects(failed(), /cannot start acpipe/);
  const open = sharedClient(() => world.start({ permissions: 'ask' }), name);
  const client = await open();
  assert.equal(await copy.sharedClient(() => assert.fail('opened twice'), name)(), client);
  const { answer } = await ask(createChatHandler(open), 'x');
  assert.match(textOf(await chunksOf(await copy.createChatHandler(open)(answer))), /"yes"/);
  await client.close();
  assert.notEqual(await open(), client);
});

test('session option chooses the agent and refuses requests', async () => {
  const world = new World();
  const seen = [];
  const handler = createChatHandler(await world.start(), {
    session(chatId, request) {
      if (chatId === 'private') throw new Response('not your chat', { status: 403 });
      seen.push([chatId, request.method]);
      return { cwd: world.dir };
    },
  });
  await chunksOf(await handler(prompt('mine', user('a'))));
  assert.equal(world.received('session/new')[0].params.cwd, world.dir);
  const refused = [prompt('private', user('a')), get('/private/stream'), get('/private/messages'), post('/private/cancel', {}), post('/private/approval', {}), post('/private/answer', {})];
  for (const request of refused) {
    const response = await handler(request);
    assert.deepEqual([response.status, await response.text()], [403, 'not your chat'], request.url);
  }
  assert.deepEqual(seen, [['mine', 'POST']]);
});

test('sessions are listed if the app declares which', async () => {
  const world = new World();
  const handler = createChatHandler(await world.start(), {
    list(request) {
      if (request.headers.get('cookie') !== 'user=1') throw new Response('sign in', { status: 401 });
      return { cwd: world.cwd };
    },
  });
  for (const id of ['one', 'two']) await chunksOf(await handler(prompt(id, user('a'))));
  assert.equal((await handler(get(''))).status, 401);
  const list = async (query) => (await handler(new Request(BASE + query, { headers: { cookie: 'user=1' } }))).json();
  const { sessions, nextCursor } = await list('?limit=1&cwd=/');
  const rest = await list(`?cursor=${encodeURIComponent(nextCursor)}`);
  assert.deepEqual([...sessions, ...rest.sessions].map(({ sessionId }) => sessionId).sort(), ['one', 'two']);
  // Nothing of the machine, such as the command line of the agent.
  const fields = ['sessionId', 'title', 'agentName', 'state', 'activity', 'createdAt', 'updatedAt'];
  assert.deepEqual(Object.keys(sessions[0]), fields);
  const unknown = await handler(get('/x'));
  assert.deepEqual([unknown.status, (await unknown.json()).kind], [404, 'methodNotFound']);
});

test('endpoints are at the path of the option api', async () => {
  const handler = createChatHandler(await new World().start(), { api: '/chats' });
  const read = (path) => handler(new Request(`http://app.test${path}`));
  assert.deepEqual(await (await read('/base/chats/x/messages/')).json(), { messages: [], running: null });
  assert.equal((await read('/api/chat/x/messages')).status, 404);
});

test('messages are read without a request', async () => {
  const world = new World({ 'session/prompt': [[say('a'), end()], [say('b'), { hang: true }]] });
  const handler = createChatHandler(() => world.start());
  assert.deepEqual(await handler.messages('x'), []);
  await chunksOf(await handler(prompt('x', user('one'))));
  await (await handler(prompt('x', user('two')))).body.cancel();
  // The running answer is that of the stream.
  const texts = (await handler.messages('x')).map(({ role, parts }) => `${role}: ${parts.at(-1).text}`);
  assert.deepEqual(texts, ['user: one', 'assistant: a', 'user: two']);
});

test('messages of a session that another process has open are refused with a kind', async () => {
  const world = new World();
  const [owner, other] = [createChatHandler(await world.start()), createChatHandler(await world.start())];
  await chunksOf(await owner(prompt('x', user('a'))));
  const response = await other(get('/x/messages'));
  assert.deepEqual([response.status, (await response.json()).kind], [409, 'sessionLocked']);
  await assert.rejects(other.messages('x'), { kind: 'sessionLocked', message: /in use by another process/ });
});

test('request that is sent twice runs the turn once', async () => {
  const world = new World({ 'session/prompt': [[say('a'), WAIT, say('b'), end()], [{ default: true }]] });
  const handler = createChatHandler(await world.start());
  const message = user('go');
  const [first, second] = await Promise.all([handler(prompt('x', message)), handler(prompt('x', message))]);
  await chunksOf(await handler(prompt('other', user('other'))));
  const [one, two] = await Promise.all([chunksOf(first), chunksOf(second)]);
  assert.equal(textOf(one), 'ab');
  assert.deepEqual(two, one);
  assert.deepEqual(await chunksOf(await handler(prompt('x', message))), one);
  assert.equal(world.received('session/prompt').length, 2);
});

test('turn that fails before its first chunk has a status, a later failure a chunk', async () => {
  const world = new World({ 'session/prompt': [[say('a'), { exit: 3 }]] });
  const handler = createChatHandler(await world.start());
  const chunks = await chunksOf(await handler(prompt('x', user('go'))));
  assert.equal(chunks.at(-1).type, 'error');
  const missing = createChatHandler(await new World().start({ agent: ['no-such-agent'] }));
  const response = await missing(prompt('x', user('go')));
  assert.equal(response.status, 502);
  assert.match(await response.text(), /no-such-agent/);
});

/** Prompts until the agent asks; returns the chunks, and the request that answers. */
async function ask(handler, chat) {
  const message = user('go');
  const chunks = await chunksOf(await handler(prompt(chat, message)));
  const { approvalId, toolCallId } = chunks.find(({ type }) => type === 'tool-approval-request');
  const metadata = chunks.at(-1).messageMetadata;
  const part = { type: 'dynamic-tool', toolCallId, state: 'approval-responded', approval: { id: approvalId, approved: true } };
  const parts = [{ type: 'step-start' }, part];
  return { chunks, approvalId, answer: post('', { id: chat, messages: [message, { id: 'm', role: 'assistant', metadata, parts }] }) };
}

const asking = { 'session/prompt': [[say('before '), ASK, { echoAnswer: true }, end()], [{ default: true }]] };

test('answer of another window leaves the rest of the turn for this one', async () => {
  const handler = createChatHandler(await new World(asking).start({ permissions: 'ask' }));
  const { chunks, approvalId, answer } = await ask(handler, 'x');
  assert.equal(textOf(chunks), 'before ');
  const inline = await handler(get('/x/stream?approvals=inline'));
  assert.equal((await handler(post('/x/approval', { approvalId, approved: false, reason: 'why' }))).status, 200);
  const whole = await chunksOf(inline);
  assert.match(textOf(whole), /^before .*"no"/);
  // The turn has ended, since another one has run: the rest comes from the store.
  await chunksOf(await handler(prompt('x', user('next'))));
  const rest = await chunksOf(await handler(answer));
  assert.equal(textOf(chunks) + textOf(rest), textOf(whole));
  assert.equal(rest.at(-1).type, 'finish');
  assert.notEqual(rest[0].type, 'start');
});

test('option that is not offered, or that contradicts the answer, leaves the question open', async (t) => {
  const warned = t.mock.method(console, 'warn', () => {});
  const handler = createChatHandler(await new World(asking).start({ permissions: 'ask' }));
  const { approvalId, answer } = await ask(handler, 'x');
  const approve = async (fields) => {
    const response = await handler(post('/x/approval', { approvalId, ...fields }));
    return [response.status, response.ok || (await reasonOf(response))];
  };
  assert.deepEqual(await approve({ approved: true, optionId: 'maybe' }), [400, 'optionId: "maybe" is not offered; use one of always, yes, no']);
  assert.deepEqual(await approve({ approved: false, optionId: 'yes' }), [400, 'optionId: "yes" is of the kind allow_once, but approved is false']);
  assert.equal((await approve({ approved: true, optionId: 'always' }))[0], 200);
  assert.match(textOf(await chunksOf(await handler(answer))), /"always"/);
  assert.equal(warned.mock.calls.length, 0); // the page answers
});

test('stream ends 3 s after a question while another call runs', async () => {
  const world = new World({ 'session/prompt': [[tool('tool_call', 'u', { title: 'slow', status: 'in_progress' }), ASK, end()]] });
  const handler = createChatHandler(await world.start({ permissions: 'ask' }));
  const begin = Date.now();
  const { chunks } = await ask(handler, 'x');
  assert.ok(Date.now() - begin >= 2_900);
  assert.equal(chunks.at(-1).type, 'message-metadata');
});

test('turn of a daemon is resumed and approved after a restart of the app', async () => {
  const world = new World({ 'session/prompt': [[say('before '), ASK, { echoAnswer: true }, end()]] });
  const options = { args: ['--daemon'], permissions: 'ask' };
  atEnd(() => execFileSync(join(programs, 'acpipe'), ['daemon', 'stop'], { env: world.env, stdio: 'ignore' }));
  const first = await world.start(options);
  const { chunks, answer } = await ask(createChatHandler(first), 'x');
  await first.close();
  const handler = createChatHandler(await world.start(options));
  const resumed = await chunksOf(await handler(get('/x/stream')));
  assert.deepEqual(resumed.map(({ type }) => type), chunks.map(({ type }) => type));
  const second = createChatHandler(await world.start(options));
  const rest = await chunksOf(await second(answer));
  assert.match(textOf(rest), /"yes"/);
  assert.equal(world.received('session/prompt').length, 1);
});

test('silent stream gets a comment before the 10 s after which Bun ends a request', { timeout: 20_000 }, async () => {
  const world = new World({ 'session/prompt': [[say('a'), WAIT, end()], [{ default: true }]] });
  const handler = createChatHandler(await world.start());
  const response = await handler(prompt('x', user('go')));
  const begin = Date.now();
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  for (let text = ''; !text.includes('\n: '); ) text += (await within(reader.read())).value;
  assert.ok(Date.now() - begin < 9_000);
  await reader.cancel();
  await chunksOf(await handler(prompt('other', user('other'))));
});

test('question is answered by the page if the app declares it', async () => {
  const form = { mode: 'form', message: 'Which?', requestedSchema: { type: 'object', properties: { db: { type: 'string' } } } };
  const world = new World({ 'session/prompt': [[{ ask: { method: 'elicitation/create', params: form } }, { echoAnswer: true }, end()]] });
  const handler = createChatHandler(await world.start(), { questions: true });
  const response = await handler(prompt('x', user('go')));
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  while (!text.includes('data-question')) text += (await within(reader.read())).value;
  const { id } = JSON.parse(/data: (\{"type":"data-question".*)/.exec(text)[1]);
  const answer = { questionId: id, action: 'accept', content: { db: 'x' } };
  assert.equal((await handler(post('/x/answer', answer))).status, 200);
  assert.equal((await handler(post('/x/answer', answer))).status, 409);
  for (let part; !(part = await within(reader.read())).done; ) text += part.value;
  assert.match(text, /accept/);
});

test('Express request with a parsed body and a mounted path is handled', async () => {
  const handler = toNodeHandler(createChatHandler(await new World().start()));
  const send = async (request) => {
    const written = [];
    const response = Object.assign(new EventEmitter(), {
      destroyed: false,
      writeHead: (status) => written.push(status),
      flushHeaders() {},
      write: (bytes) => written.push(Buffer.from(bytes).toString()) > 0,
      end: () => response.emit('end'),
    });
    const ended = once(response, 'end');
    await handler(request, response);
    await within(ended);
    return written.join('');
  };
  const body = { id: 'x', messages: [user('a')] };
  const headers = { host: 'app.test', 'content-type': 'application/json; charset=utf-8', 'content-length': '1' };
  assert.match(await send({ method: 'POST', url: '/', originalUrl: '/api/chat', headers, body }), /^200[^]*"delta":"a"/);
  const stored = { method: 'GET', url: '/messages', originalUrl: '/api/chat/x/messages', headers: { host: 'app.test' } };
  assert.match(await send(stored), /^200[^]*"text":"a"/);
});

