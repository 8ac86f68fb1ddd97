// The React hook: two tabs of one chat.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { createElement, StrictMode } from 'react';
import { create } from 'react-test-renderer';
import { createChatHandler } from 'acpipe/ai';
import { useAcpipeChat } from 'acpipe/react';
import { said } from '../../../tests/ai-sdk/state.mjs';
import { ASK, atEnd, end, say, serve, within, World } from './support.mjs';

/** Renders a tab in strict mode, which mounts it twice; `chat` is the last result of the hook. */
function open(t, options) {
  // React reports that the renderer is deprecated; there is none without a DOM in its place.
  t.mock.method(console, 'error', () => {});
  const tab = { chat: undefined, waiting: new Set() };
  function Tab() {
    tab.chat = useAcpipeChat(options);
    for (const check of [...tab.waiting]) check();
    return null;
  }
  const root = create(createElement(StrictMode, null, createElement(Tab)));
  atEnd(() => root.unmount());
  tab.until = (test) =>
    within(
      new Promise((resolve) => {
        const check = () => {
          if (!tab.chat || !test(tab.chat)) return;
          tab.waiting.delete(check);
          resolve();
        };
        tab.waiting.add(check);
        check();
      }),
      () => `hung: ${tab.chat?.status} ${tab.chat?.error} ${JSON.stringify(tab.chat?.messages)}`,
    );
  return tab;
}

const isShown = (...lines) => ({ isRunning, messages }) => !isRunning && JSON.stringify(said(messages)) === JSON.stringify(lines);

test('hook shows what the other tab does, and a request goes in both when one answers', async (t) => {
  const world = new World({ 'session/prompt': [[say('before '), ASK, say('after'), end()], [{ default: true }]] });
  const api = await serve(createChatHandler(await world.start({ permissions: 'ask' })));
  const id = randomUUID();
  const [a, b] = [open(t, { id, api }), open(t, { id, api })];
  await b.until(({ isLoaded }) => isLoaded);
  const sent = a.chat.sendMessage({ text: 'go' });
  for (const tab of [a, b]) await tab.until(({ requests, isRunning }) => isRunning && requests.length === 1);
  assert.equal(await b.chat.approve(b.chat.requests[0].id, { approved: true }), true);
  await a.until(({ requests }) => requests.length === 0);
  await sent;
  for (const tab of [a, b]) await tab.until(isShown('user: go', 'assistant: before after'));
  const { reason } = a.chat.messages[1].parts.find(({ type }) => type === 'data-permission').data;
  assert.match(reason, /^approved by the client/);
  const late = open(t, { id, api });
  await late.until(isShown('user: go', 'assistant: before after'));
  await late.chat.deleteChat();
  for (const tab of [a, b, late]) await tab.until(isShown());
});
