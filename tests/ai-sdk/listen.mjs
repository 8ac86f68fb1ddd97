// Uses `acpipe serve --listen` as an app does that knows nothing of acpipe: the AI SDK's AbstractChat over its
// DefaultChatTransport, with the server's address and headers.
//
// stdin: one JSON object a line, {"scenario", "profile": 7 | 6, "api": address of the endpoint, "token"}.
// stdout: the result of each scenario, one line each.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { text } from 'node:stream/consumers';
import { said, shows, State } from './state.mjs';

const SDKS = { 7: await import('ai7'), 6: await import('ai6') };

/** One browser tab with a chat. */
function open({ profile, api, token }, id = randomUUID(), messages = []) {
  const sdk = SDKS[profile];
  class Chat extends sdk.AbstractChat {}
  const headers = { authorization: `Bearer ${token}`, 'x-ai-sdk-major': String(profile) };
  // What a network does to the requests of the tab.
  const network = new AbortController();
  const send = (url, init) => fetch(url, { ...init, signal: AbortSignal.any([network.signal, ...(init?.signal ? [init.signal] : [])]) });
  const state = new State();
  state.messages = messages;
  const chat = new Chat({
    id,
    state,
    transport: new sdk.DefaultChatTransport({ api, headers, fetch: send }),
    generateId: randomUUID,
    sendAutomaticallyWhen: sdk.lastAssistantMessageIsCompleteWithApprovalResponses,
    onError: () => {},
  });
  return Object.assign(chat, {
    until: test => state.until(test),
    loseNetwork: () => network.abort(new TypeError('network lost')),
    async stored() {
      return (await (await fetch(`${api}/${id}/messages`, { headers })).json()).messages;
    },
    async cancel() {
      const json = { ...headers, 'content-type': 'application/json' };
      return (await fetch(`${api}/${id}/cancel`, { method: 'POST', headers: json, body: '{}' })).json();
    },
    /** Checks the messages with the SDK. */
    async isValid() {
      return (await sdk.safeValidateUIMessages({ messages: chat.messages })).success;
    },
  });
}

const toolOf = ({ messages }) => messages.at(-1)?.parts.find(part => part.type === 'dynamic-tool');

const SCENARIOS = {
  /** Two messages, then the chat is opened again with the stored messages, and the last answer is made again. */
  async conversation(server) {
    const chat = open(server);
    await chat.sendMessage({ text: 'a' });
    await chat.sendMessage({ text: 'b' });
    const again = open(server, chat.id, await chat.stored());
    const before = said(again.messages);
    await again.sendMessage({ text: 'c' });
    await again.regenerate();
    const strange = open({ ...server, token: 'wrong' });
    await strange.sendMessage({ text: 'a' });
    return {
      first: said(chat.messages),
      before,
      after: said(again.messages),
      stored: said(await again.stored()),
      status: again.status,
      valid: await again.isValid(),
      refused: [strange.status, strange.error.message],
    };
  },

  /** A tab loses its connection in the middle of the answer, and resumes it; another tab does so, too. */
  async resume(server) {
    const first = open(server);
    const sent = first.sendMessage({ text: 'go' });
    await first.until(shows('a'));
    first.loseNetwork();
    await sent;
    const lost = first.status;
    const tabs = [open(server, first.id, await first.stored()), open(server, first.id, await first.stored())];
    const resumed = tabs.map(tab => tab.resumeStream());
    await Promise.all(tabs.map(tab => tab.until(shows('a'))));
    // The agent continues once it receives another session.
    await open(server).sendMessage({ text: 'other' });
    await Promise.all(resumed);
    const late = open(server, first.id, await first.stored());
    await late.resumeStream();
    return {
      lost,
      tabs: tabs.map(tab => said(tab.messages)),
      ids: new Set(tabs.map(tab => tab.messages.at(-1).id)).size,
      statuses: tabs.map(tab => tab.status),
      late: said(late.messages),
      valid: await tabs[0].isValid(),
    };
  },

  /** The stop button. */
  async stop(server) {
    const chat = open(server);
    const sent = chat.sendMessage({ text: 'go' });
    await chat.until(shows('a'));
    const stopped = await chat.cancel();
    await sent;
    const late = await chat.cancel();
    await chat.sendMessage({ text: 'again' });
    return { stopped, late, said: said(chat.messages), status: chat.status };
  },

  /** The user approves a tool call, then refuses one; the next request sends the answer by itself. */
  async approval(server) {
    const chat = open(server);
    const turns = [];
    for (const approved of [true, false]) {
      await chat.sendMessage({ text: 'go' });
      const asked = toolOf(chat);
      await chat.addToolApprovalResponse({ id: asked.approval.id, approved });
      await chat.until(state => state.status === 'ready' && !toolOf(state).state.startsWith('approval-'));
      turns.push([asked.state, toolOf(chat).state, said(chat.messages).at(-1)]);
    }
    const roles = messages => messages.map(message => message.role);
    return { turns, roles: roles(chat.messages), stored: roles(await chat.stored()), valid: await chat.isValid() };
  },
};

for (const line of (await text(process.stdin)).split('\n').filter(Boolean)) {
  const server = JSON.parse(line);
  assert(SCENARIOS[server.scenario], line);
  process.stdout.write(`${JSON.stringify(await SCENARIOS[server.scenario](server))}\n`);
}
