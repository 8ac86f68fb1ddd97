// Chats of the AI SDK, each major version, over every way to acpipe.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { ClientChatTransport, createChatHandler, HttpChatTransport } from 'acpipe/ai';
import { said, shows, State } from '../../../tests/ai-sdk/state.mjs';
import { ASK, end, say, serve, WAIT, World } from './support.mjs';

const SDKS = { 7: await import('ai'), 6: await import('ai6'), 5: await import('ai5') };

/** Ways to acpipe: their transports, and requests beside them. */
const WAYS = {
  async 'route handler and DefaultChatTransport'(world, major) {
    const api = await serve(createChatHandler(await world.start({ chunkProfile: major, permissions: 'ask' })));
    return { ...endpoints(api), transport: (fetch) => new SDKS[major].DefaultChatTransport({ api, fetch }) };
  },
  async 'route handler and HttpChatTransport'(world, major) {
    const api = await serve(createChatHandler(() => world.start({ chunkProfile: major, permissions: 'ask' })));
    return { ...endpoints(api), transport: (fetch) => new HttpChatTransport({ api, fetch }), cancelsByStop: true };
  },
  async 'acpipe that listens and HttpChatTransport'(world, major) {
    const { url, token } = await world.listen('--permissions', 'ask');
    const api = `${url}/api/chat`;
    const headers = { authorization: `Bearer ${token}`, 'x-ai-sdk-major': String(major) };
    return { ...endpoints(api, headers), transport: (fetch) => new HttpChatTransport({ api, token, major, fetch }), cancelsByStop: true };
  },
  async 'client in the same process'(world, major) {
    const client = await world.start({ chunkProfile: major, permissions: 'ask' });
    return { transport: () => new ClientChatTransport(client), cancelsByStop: true };
  },
};

/** Requests of a page beside those of its transport. */
function endpoints(api, headers = {}) {
  const json = { ...headers, 'content-type': 'application/json' };
  return {
    get: async (id, action) => (await fetch(`${api}/${id}/${action}`, { headers })).json(),
    post: (id, action, body = {}) => fetch(`${api}/${id}/${action}`, { method: 'POST', headers: json, body: JSON.stringify(body) }),
  };
}

/** One browser tab. */
function open(way, major, { id = randomUUID(), messages = [] } = {}) {
  const sdk = SDKS[major];
  class Chat extends sdk.AbstractChat {}
  const network = new AbortController();
  const send = (url, init) => fetch(url, { ...init, signal: AbortSignal.any([network.signal, ...(init?.signal ? [init.signal] : [])]) });
  const state = new State();
  const notices = [];
  state.messages = messages;
  const chat = new Chat({
    id,
    state,
    transport: way.transport(send),
    generateId: randomUUID,
    sendAutomaticallyWhen: sdk.lastAssistantMessageIsCompleteWithApprovalResponses,
    onData: ({ type, data }) => type === 'data-notice' && notices.push(data),
    onError: () => {},
  });
  return Object.assign(chat, {
    notices,
    until: (test) => state.until(test),
    loseNetwork: () => network.abort(new TypeError('network lost')),
    isValid: async () => (await sdk.safeValidateUIMessages({ messages: chat.messages })).success,
  });
}

const toolOf = ({ messages }) => messages.at(-1)?.parts.find(({ type }) => type === 'dynamic-tool');
const runs = (...steps) => ({ 'session/prompt': [steps, [{ default: true }]] });

const SCENARIOS = {
  async 'messages are answered, stored and regenerated'(way, major) {
    const chat = open(way, major);
    await chat.sendMessage({ text: 'a' });
    await chat.sendMessage({ text: 'b' });
    assert.deepEqual(said(chat.messages), ['user: a', 'assistant: a', 'user: b', 'assistant: b']);
    if (way.get) assert.deepEqual(said((await way.get(chat.id, 'messages')).messages), said(chat.messages));
    await chat.regenerate();
    assert.deepEqual(said(chat.messages), ['user: a', 'assistant: a', 'user: b', 'assistant: b']);
    assert.equal(chat.status, 'ready');
    assert.ok(await chat.isValid());
    if (way.get) assert.deepEqual(await way.get(randomUUID(), 'messages'), { messages: [], running: null });
  },

  async 'answer is resumed by another tab'(way, major, world) {
    const first = open(way, major);
    const sent = first.sendMessage({ text: 'go' });
    await first.until(shows('a'));
    first.loseNetwork();
    const second = open(way, major, { id: first.id, messages: first.messages.slice(0, 1) });
    const resumed = second.resumeStream();
    await second.until(shows('a'));
    // The agent continues once it gets another session.
    await open(way, major).sendMessage({ text: 'other' });
    await Promise.all([sent, resumed]);
    assert.deepEqual(said(second.messages), ['user: go', 'assistant: ab']);
    assert.equal(second.status, 'ready');
    const late = open(way, major, { id: first.id });
    await late.resumeStream();
    assert.deepEqual(late.messages, []);
    assert.equal(world.received('session/cancel').length, 0);
    assert.equal(world.received('session/prompt').length, 2);
  },

  async 'stop cancels the turn'(way, major, world) {
    const chat = open(way, major);
    const sent = chat.sendMessage({ text: 'go' });
    await chat.until(shows('a'));
    if (way.cancelsByStop) await chat.stop();
    else assert.deepEqual(await (await way.post(chat.id, 'cancel')).json(), { cancelled: true });
    await sent;
    assert.equal(chat.status, 'ready');
    await chat.sendMessage({ text: 'again' });
    assert.deepEqual(said(chat.messages), ['user: go', 'assistant: a', 'user: again', 'assistant: again']);
    assert.equal(world.received('session/cancel').length, 1);
  },

  async 'error has its kind'(way, major) {
    const chat = open(way, major);
    await chat.sendMessage({ text: 'go' });
    assert.deepEqual(said(chat.messages), ['user: go', 'assistant: before ']);
    assert.match(chat.error.message, /exited|ended/);
    assert.equal(chat.error.kind, way.cancelsByStop ? 'agentExited' : undefined);
    assert.equal(chat.status, 'error');
    const refused = open(way, major, { id: 'x'.repeat(2000) });
    await refused.sendMessage({ text: 'go' });
    assert.equal(refused.error.kind, way.cancelsByStop ? 'invalidParams' : undefined);
  },

  async 'approvals are sent with the next request'(way, major) {
    // Major 5 has no approvals: its page answers the data part.
    if (major === 5) return approveData(way);
    const chat = open(way, major);
    const states = [];
    for (const approved of [true, false]) {
      await chat.sendMessage({ text: 'go' });
      const asked = toolOf(chat);
      await chat.addToolApprovalResponse({ id: asked.approval.id, approved });
      await chat.until((state) => state.status === 'ready' && !toolOf(state).state.startsWith('approval-'));
      states.push([asked.state, toolOf(chat).state, said(chat.messages).at(-1)]);
    }
    assert.deepEqual(states, [
      ['approval-requested', 'output-available', 'assistant: before after'],
      ['approval-requested', 'output-denied', 'assistant: before after'],
    ]);
    assert.ok(await chat.isValid());
  },

  async 'answer of another tab is shown after the own one'(way, major) {
    const chat = open(way, major);
    await chat.sendMessage({ text: 'go' });
    const { id } = toolOf(chat).approval;
    const answer = { approvalId: id, approved: true };
    assert.equal(await chat.transport.approve(chat.id, { ...answer, approved: false }), true);
    assert.equal(await chat.transport.approve(chat.id, answer), false);
    await chat.addToolApprovalResponse({ id, approved: true });
    await chat.until((state) => state.status === 'ready' && /^output-(denied|error)$/.test(toolOf(state).state));
    assert.match(said(chat.messages).at(-1), /^assistant: before .*"no"/);
    const { data } = chat.messages.at(-1).parts.find((part) => part.type === 'data-permission' && part.id === id);
    assert.equal(data.approved, false);
  },

  async 'message instead of an answer refuses the call'(way, major) {
    const chat = open(way, major);
    const sent = chat.sendMessage({ text: 'go' });
    // The page of major 5 has no approvals, and its stream stays open.
    if (major === 5) await chat.until(({ messages }) => messages.at(-1)?.parts.some(({ type }) => type === 'data-permission'));
    else await sent;
    const late = toolOf(chat).approval?.id;
    const next = open(way, major, { id: chat.id, messages: structuredClone(chat.messages) });
    await next.sendMessage({ text: 'never mind' });
    await sent;
    assert.deepEqual(said(next.messages).slice(-2), ['user: never mind', 'assistant: never mind']);
    assert.equal(next.status, 'ready');
    if (major === 5) return;
    // The tab of before still has its buttons.
    if (way.post) {
      const response = await way.post(chat.id, 'approval', { approvalId: late, approved: true });
      assert.equal(response.status, 409);
      assert.match(await response.text(), /not open any more: refused because the user sent a new message/);
    }
    await chat.addToolApprovalResponse({ id: late, approved: true });
    await chat.until((state) => state.status === 'ready' && /^output-(denied|error)$/.test(toolOf(state).state));
    assert.deepEqual(chat.notices.map(({ title }) => title), ['The answer came too late']);
  },

  async 'cancel ends an answer that waits for the user'(way, major) {
    const chat = open(way, major);
    await chat.sendMessage({ text: 'go' });
    assert.equal(chat.status, 'ready');
    assert.equal(await chat.transport.cancel(chat.id), true);
    await chat.addToolApprovalResponse({ id: toolOf(chat).approval.id, approved: false });
    await chat.until((state) => state.status === 'ready' && /^output-(denied|error)$/.test(toolOf(state).state));
    assert.equal(await chat.transport.cancel(chat.id), false);
  },

  async 'cancel ends the answer of another tab'(way, major) {
    const first = open(way, major);
    const sent = first.sendMessage({ text: 'go' });
    await first.until(shows('a'));
    const second = open(way, major, { id: first.id, messages: first.messages.slice(0, 1) });
    const resumed = second.resumeStream();
    await second.until(shows('a'));
    assert.equal(await second.transport.cancel(second.id), true);
    await Promise.all([sent, resumed]);
    assert.deepEqual([first.status, second.status], ['ready', 'ready']);
  },

  async 'option of the agent is chosen'(way, major) {
    const chat = open(way, major);
    await chat.sendMessage({ text: 'go' });
    const { id } = toolOf(chat).approval;
    const { options } = chat.messages.at(-1).parts.find((part) => part.type === 'data-permission' && part.id === id).data;
    const { optionId } = options.find(({ kind }) => kind === 'allow_always');
    const { transport } = chat;
    await assert.rejects(transport.approve(chat.id, { approvalId: id, approved: true, optionId: 'maybe' }), /not offered/);
    await transport.approve(chat.id, { approvalId: id, approved: true, optionId });
    await chat.addToolApprovalResponse({ id, approved: true });
    await chat.until((state) => state.status === 'ready' && /always/.test(said(state.messages).at(-1)));
    assert.match(said(chat.messages).at(-1), /^assistant: before .*"always"/);
  },
};

async function approveData(way) {
  const chat = open(way, 5);
  const sent = chat.sendMessage({ text: 'go' });
  const asked = ({ messages }) => messages.at(-1)?.parts.find(({ type, data }) => type === 'data-permission' && data.approved === undefined);
  await chat.until((state) => asked(state) !== undefined);
  const answer = { approvalId: asked(chat).id, approved: true };
  assert.equal((await way.post(chat.id, 'approval', answer)).status, 200);
  assert.equal((await way.post(chat.id, 'approval', answer)).status, 409);
  await sent;
  assert.equal(said(chat.messages).at(-1), 'assistant: before after');
}

test('turn of a killed acpipe ends with an error that has its kind', async () => {
  const world = new World(runs(say('a'), WAIT, end()));
  const { binary, kill } = world.killable();
  const api = await serve(createChatHandler(() => world.start({ binary })));
  const chat = open({ transport: (fetch) => new HttpChatTransport({ api, fetch }) }, 7);
  const sent = chat.sendMessage({ text: 'go' });
  await chat.until(shows('a'));
  kill();
  await sent;
  assert.equal(chat.error.kind, 'turnUnfinished');
  const { messages } = await endpoints(api).get(chat.id, 'messages');
  assert.deepEqual(said(messages), ['user: go', 'assistant: a']);
  for (const all of [chat.messages, messages]) {
    const { error } = all.at(-1).metadata.acp;
    assert.deepEqual([error.kind, error.message], ['turnUnfinished', chat.error.message]);
  }
});

test('lost connection is an error with a kind', async () => {
  const broken = new ReadableStream({ pull: (controller) => controller.error(new TypeError('terminated')) });
  const answers = [() => new Response(broken), () => Promise.reject(new TypeError('fetch failed'))];
  const transport = new HttpChatTransport({ fetch: async () => answers.shift()() });
  const stream = await transport.reconnectToStream({ chatId: 'x' });
  await assert.rejects(stream.getReader().read(), { kind: 'disconnected', message: /terminated.*resumeStream/ });
  await assert.rejects(transport.reconnectToStream({ chatId: 'x' }), { kind: 'disconnected', message: /fetch failed/ });
});

const settled = (status) => ({ update: { sessionUpdate: 'tool_call_update', toolCallId: 't', status } });
const turn = (status) => [say('before '), ASK, settled(status), say('after'), end()];
const SCRIPTS = {
  'error has its kind': runs(say('before '), { exit: 3 }),
  'answer of another tab is shown after the own one': runs(say('before '), ASK, { echoAnswer: true }, end()),
  'option of the agent is chosen': runs(say('before '), ASK, { echoAnswer: true }, end()),
  'answer is resumed by another tab': runs(say('a'), WAIT, say('b'), end()),
  'message instead of an answer refuses the call': runs(say('before '), ASK, { echoAnswer: true }, end()),
  'cancel ends an answer that waits for the user': runs(say('before '), ASK, end('cancelled')),
  'cancel ends the answer of another tab': runs(say('a'), { wait: 'session/cancel' }, end('cancelled')),
  'stop cancels the turn': runs(say('a'), { wait: 'session/cancel' }, end('cancelled')),
  'approvals are sent with the next request': { 'session/prompt': [turn('completed'), turn('failed')] },
};

test('message that waits for an answer says so', async () => {
  // The message comes before the question, so it is no answer to it.
  const world = new World(runs(say('a'), WAIT, ASK, say('b'), end()));
  const client = await world.start({ permissions: 'ask' });
  const way = { transport: () => new ClientChatTransport(client) };
  const first = open(way, 7);
  const sent = first.sendMessage({ text: 'go' });
  await first.until(shows('a'));
  const isQueued = new Promise((resolve) => client.on('session/state', ({ queue }) => queue.length > 0 && resolve()));
  const second = open(way, 7, { id: first.id });
  const waits = second.sendMessage({ text: 'next' });
  await isQueued;
  // The agent continues once it gets another session.
  await open(way, 7).sendMessage({ text: 'other' });
  await sent;
  await first.addToolApprovalResponse({ id: toolOf(first).approval.id, approved: true });
  await waits;
  assert.deepEqual(said(second.messages), ['user: next', 'assistant: next']);
  assert.deepEqual(second.notices.map(({ title }) => title), ['The message waits']);
  assert.match(second.notices[0].description, /waiting for the client's answer to "/);
});

for (const major of [7, 6, 5]) {
  for (const [name, make] of Object.entries(WAYS)) {
    for (const [scenario, play] of Object.entries(SCENARIOS)) {
      const isOfHttp = ['option', 'answer of another', 'cancel'].some((begin) => scenario.startsWith(begin)); // a method of it
      if (isOfHttp && (major === 5 || !name.endsWith('HttpChatTransport'))) continue;
      // The page of major 5 posts the answer.
      const skip = major === 5 && name === 'client in the same process' && scenario.startsWith('approvals');
      test(`ai ${major}, ${name}: ${scenario}`, { skip }, async () => {
        const world = new World(SCRIPTS[scenario]);
        await play(await make(world, major), major, world);
      });
    }
  }
}
