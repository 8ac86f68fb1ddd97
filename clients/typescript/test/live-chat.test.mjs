// Tabs of one chat that follow each other: each major version of the AI SDK, over every way to acpipe.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { ClientChatTransport, createChatHandler, HttpChatTransport, LiveChat, openRequests } from 'acpipe/ai';
import { said, shows, State } from '../../../tests/ai-sdk/state.mjs';
import { ASK, atEnd, end, say, serve, WAIT, World } from './support.mjs';

const SDKS = { 7: await import('ai'), 6: await import('ai6'), 5: await import('ai5') };

/** Ways to acpipe: functions that create the transport of a tab. */
const WAYS = {
  async 'route handler'(world, chunkProfile) {
    const api = await serve(createChatHandler(await world.start({ chunkProfile, permissions: 'ask' })));
    return () => new HttpChatTransport({ api });
  },
  async 'acpipe that listens'(world, major) {
    const { url, token } = await world.listen('--permissions', 'ask');
    return () => new HttpChatTransport({ api: `${url}/api/chat`, token, major });
  },
  async 'client in the same process'(world, chunkProfile) {
    const client = await world.start({ chunkProfile, permissions: 'ask' });
    return () => new ClientChatTransport(client);
  },
};

/** State that records the numbers of messages that were shown, one after the other. */
class RecordedState extends State {
  counts = [];
  get messages() { return super.messages; }
  set messages(messages) {
    super.messages = messages;
    this.counts.push(messages.length);
  }
}

/** Opens a tab. */
function open(transport, major = 7, id = randomUUID()) {
  class Chat extends SDKS[major].AbstractChat {}
  const inner = transport();
  const state = new RecordedState();
  const live = new LiveChat(inner, (now) => {
    live.now = now;
    state.changed();
  });
  const chat = new Chat({ id, state, transport: live.transport, generateId: randomUUID, onError: () => {} });
  const tab = Object.assign(chat, {
    live: Object.assign(live, { now: { isLoaded: false } }),
    inner,
    counts: state.counts,
    until: (test) => state.until(() => test(chat)),
    requests: () => openRequests(chat.messages),
  });
  tab.leave = live.follow(chat);
  atEnd(tab.leave);
  return tab;
}

const isReady = ({ status }) => status === 'ready';
const showsAll = (...lines) => (tab) => isReady(tab) && JSON.stringify(said(tab.messages)) === JSON.stringify(lines);
const runs = (...steps) => ({ 'session/prompt': [steps, [{ default: true }]] });
const decisionOf = ({ messages }) => messages.at(-1).parts.find(({ type, data }) => type === 'data-permission' && data.approved !== undefined)?.data;
/** The agent continues once it gets another session. */
const continueAgent = (transport, major) => open(transport, major).sendMessage({ text: 'other' });

const SCENARIOS = {
  'prompt and answer of a tab appear in the other one while they run': [
    runs(say('a'), WAIT, say('b'), end()),
    async (transport, major) => {
      const a = open(transport, major);
      const b = open(transport, major, a.id);
      await b.until(({ live }) => live.now.isLoaded);
      const sent = a.sendMessage({ text: 'go' });
      await b.until((tab) => tab.status === 'streaming' && shows('a')(tab));
      assert.deepEqual(said(b.messages), ['user: go', 'assistant: a']);
      const late = open(transport, major, a.id);
      await late.until((tab) => tab.status === 'streaming' && shows('a')(tab));
      await continueAgent(transport, major);
      await sent;
      for (const tab of [a, b, late]) await tab.until(showsAll('user: go', 'assistant: ab'));
      await b.sendMessage({ text: 'again' });
      for (const tab of [a, b, late]) await tab.until(showsAll('user: go', 'assistant: ab', 'user: again', 'assistant: again'));
      // No message was hidden for a while.
      for (const { counts } of [a, b, late]) assert.deepEqual(counts, counts.toSorted((one, other) => one - other));
    },
  ],

  'approval that a tab answered goes in the other one': [
    runs(say('before '), ASK, { echoAnswer: true }, end()),
    async (transport, major) => {
      const a = open(transport, major);
      const b = open(transport, major, a.id);
      const sent = a.sendMessage({ text: 'go' });
      for (const tab of [a, b]) await tab.until(() => tab.requests().length === 1);
      const [{ id, kind, data }] = a.requests();
      assert.deepEqual([kind, data.options.length, b.requests()[0].id], ['permission', 3, id]);
      assert.equal(await a.inner.approve(a.id, { approvalId: id, approved: false }), true);
      await b.until(() => b.requests().length === 0);
      assert.match(decisionOf(b).reason, /^refused by the client/);
      assert.equal(decisionOf(b).approved, false);
      assert.equal(await b.inner.approve(b.id, { approvalId: id, approved: true }), false);
      await sent;
      for (const tab of [a, b]) await tab.until((tab) => isReady(tab) && /^assistant: before .*"no"/.test(said(tab.messages).at(-1)));
    },
  ],

  'message instead of an answer refuses the call in all tabs': [
    runs(say('before '), ASK, say('after'), end()),
    async (transport, major) => {
      const a = open(transport, major);
      const b = open(transport, major, a.id);
      const sent = a.sendMessage({ text: 'go' });
      await b.until(() => b.requests().length === 1);
      await b.live.leave();
      await b.sendMessage({ text: 'never mind' });
      await sent;
      for (const tab of [a, b]) {
        await tab.until(showsAll('user: go', 'assistant: before after', 'user: never mind', 'assistant: never mind'));
        const { by } = tab.messages[1].parts.find(({ type }) => type === 'data-permission').data;
        assert.equal(by, 'message');
      }
    },
  ],

  'stop of a tab ends the answer in the other one': [
    runs(say('a'), { wait: 'session/cancel' }, end('cancelled')),
    async (transport, major) => {
      const a = open(transport, major);
      const b = open(transport, major, a.id);
      const sent = a.sendMessage({ text: 'go' });
      await b.until(shows('a'));
      assert.equal(await b.inner.cancel(b.id), true);
      await sent;
      for (const tab of [a, b]) {
        await tab.until((tab) => showsAll('user: go', 'assistant: a')(tab) && tab.messages.at(-1).metadata.acp.stopReason === 'cancelled');
      }
    },
  ],

  'deleted chat is empty in all tabs, and can be used again': [
    runs(say('a'), { wait: 'session/cancel' }, end('cancelled')),
    async (transport, major) => {
      const a = open(transport, major);
      const b = open(transport, major, a.id);
      const sent = a.sendMessage({ text: 'go' });
      await b.until(shows('a'));
      await b.live.delete();
      await sent;
      for (const tab of [a, b]) await tab.until(showsAll());
      assert.deepEqual(await a.inner.messages(a.id), []);
      await a.sendMessage({ text: 'again' });
      for (const tab of [a, b]) await tab.until(showsAll('user: again', 'assistant: again'));
    },
  ],
};

for (const major of [7, 6, 5]) {
  for (const [name, make] of Object.entries(WAYS)) {
    for (const [scenario, [script, play]] of Object.entries(SCENARIOS)) {
      test(`ai ${major}, ${name}: ${scenario}`, async () => {
        const world = new World(script);
        await play(await make(world, major), major, world);
      });
    }
  }
}
