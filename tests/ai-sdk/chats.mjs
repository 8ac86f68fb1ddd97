// Uses a chat server as an app does, with the AI SDK's AbstractChat.
//
// stdin: one JSON object a line, {"scenario", "profile": 7 | 6 | 5, "api": address of the server}.
// stdout: the result of each scenario, one line each.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { text } from 'node:stream/consumers';
import { said, shows, State } from './state.mjs';

const SDKS = { 7: await import('ai7'), 6: await import('ai6'), 5: await import('ai5') };

/** One browser tab with a chat. */
function open({ profile, api }, id) {
  const sdk = SDKS[profile];
  class Chat extends sdk.AbstractChat {}
  const state = new State();
  const chat = new Chat({ id, state, transport: new sdk.DefaultChatTransport({ api }), generateId: randomUUID });
  chat.until = test => state.until(test);
  chat.post = (action, body = {}) => fetch(`${api}/${id}/${action}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  chat.stored = async () => (await fetch(`${api}/${id}/messages`)).json();
  return chat;
}

const SCENARIOS = {
  /** Two chats, one of which is opened again. */
  async conversation(server) {
    const [one, two] = [open(server, randomUUID()), open(server, randomUUID())];
    await one.sendMessage({ text: 'a' });
    await two.sendMessage({ text: 'b' });
    await one.sendMessage({ text: 'c' });
    const nobody = open(server, randomUUID());
    return {
      one: said(one.messages),
      two: said(two.messages),
      stored: said(await one.stored()),
      nobody: await nobody.stored(),
      refused: await Promise.all([
        ['application/json', { id: 'x', messages: [] }],
        ['application/json', { messages: one.messages }],
        // A request that any page in the browser can send.
        ['text/plain', { id: 'x', messages: one.messages }],
      ].map(async ([type, body]) => {
        const headers = { 'content-type': type };
        return (await fetch(server.api, { method: 'POST', headers, body: JSON.stringify(body) })).status;
      })),
    };
  },

  /** A tab is closed while the answer runs, and another tab resumes it. */
  async resume(server) {
    const id = randomUUID();
    const first = open(server, id);
    const sent = first.sendMessage({ text: 'go' });
    await first.until(shows('a'));
    const busy = await fetch(server.api, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ id, messages: first.messages, trigger: 'submit-message' }),
    });
    const second = open(server, id);
    second.messages = await second.stored();
    const before = said(second.messages);
    const resumed = second.resumeStream();
    await second.until(shows('a'));
    await first.stop();
    await sent;
    // The agent continues once it receives another session.
    await open(server, randomUUID()).sendMessage({ text: 'other' });
    await resumed;
    const third = open(server, id);
    await third.resumeStream();
    return {
      busy: busy.status,
      before,
      after: said(second.messages),
      stored: said(await second.stored()),
      status: second.status,
      third: third.messages,
    };
  },

  /** The stop button. */
  async stop(server) {
    const chat = open(server, randomUUID());
    const sent = chat.sendMessage({ text: 'go' });
    await chat.until(shows('a'));
    const stopped = await (await chat.post('stop')).json();
    await sent;
    const late = await (await chat.post('stop')).json();
    await chat.sendMessage({ text: 'again' });
    return { stopped, late, said: said(chat.messages), status: chat.status };
  },

  /** The user approves a tool call, then refuses one. */
  async approval(server) {
    const sdk = SDKS[server.profile];
    const chat = open(server, randomUUID());
    const states = [];
    const statuses = [];
    for (const approved of [true, false]) {
      const sent = chat.sendMessage({ text: 'go' });
      let approvalId;
      await chat.until(state => {
        const parts = state.messages.at(-1)?.parts ?? [];
        // Majors 7 and 6 have a tool state for it; in 5 only the data part has it.
        const tool = parts.find(part => part.state === 'approval-requested');
        const data = parts.find(part => part.type === 'data-permission' && part.data.approved === undefined);
        approvalId = server.profile > 5 ? tool?.approval.id : data?.id;
        return approvalId !== undefined;
      });
      if (server.profile === 6) await chat.addToolApprovalResponse({ id: approvalId, approved });
      statuses.push((await chat.post('approval', { approvalId, approved })).status);
      statuses.push((await chat.post('approval', { approvalId, approved })).status);
      await sent;
      states.push(chat.messages.at(-1).parts.find(part => part.type === 'dynamic-tool').state);
    }
    const checked = await sdk.safeValidateUIMessages({ messages: chat.messages });
    return { states, statuses, valid: checked.success };
  },
};

for (const line of (await text(process.stdin)).split('\n').filter(Boolean)) {
  const server = JSON.parse(line);
  assert(SCENARIOS[server.scenario], line);
  process.stdout.write(`${JSON.stringify(await SCENARIOS[server.scenario](server))}\n`);
}
