#!/usr/bin/env node
// The chat endpoints of an AI SDK app, with any agent behind them: `useChat` in the browser, `acpipe serve` here.
// Node 20+, no dependencies. In the app, let /api/chat (the default of useChat) lead to the address it prints.
//
//   node examples/server.mjs                                              the built-in demo agent answers
//   PORT=3001 node examples/server.mjs --permissions ask -- opencode acp  the user approves tool calls
//   node examples/server.mjs --chunk-profile 6                            for ai@6; 5 for ai@5
//
// Arguments are those of `acpipe serve`. Each chat is a session, stored under the chat's id.
//
//   POST /api/chat                {id, messages, trigger}             prompts the agent, streams its answer
//   GET  /api/chat/ID/stream                                          the running answer, from its beginning; or 204
//   GET  /api/chat/ID/messages                                        the stored messages, for a reopened chat
//   POST /api/chat/ID/stop                                            cancels the running answer
//   POST /api/chat/ID/approval    {approvalId, approved, reason?}     answers a tool-approval-request or data-permission
//
// A browser that disconnects stops nothing: it can resume (`useChat({ resume: true })`). Its stop button calls `stop()`
// and posts to /stop. docs/reference/chunks.md#approvals-in-a-client has the component that posts to /approval.
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { json } from 'node:stream/consumers';
import { Acpipe } from './acpipe.mjs';

const HEADERS = {
  'content-type': 'text/event-stream',
  'cache-control': 'no-cache',
  connection: 'keep-alive',
  'x-vercel-ai-ui-message-stream': 'v1',
  'x-accel-buffering': 'no', // else nginx buffers the stream
};
const MOST_UNREAD = 16 * 1024 * 1024; // bytes queued for one browser
const STATUS = { invalidParams: 400, sessionNotFound: 404, busy: 409, sessionLocked: 409, overloaded: 503 };

const turns = new Map(); // chat → its running turn: { turnId, before, readers }
const questions = new Map(); // question → the request from acpipe

const acpipe = new Acpipe(process.argv.slice(2));
acpipe.on('end', ({ message }) => {
  console.error(message);
  process.exit(1);
});
acpipe.on('session/chunk', ({ sessionId, turnId, seq, chunk }) => {
  const turn = turns.get(sessionId);
  if (turn?.turnId !== turnId) return; // output outside of a turn is in /messages
  turn.before ??= seq - 1;
  for (const reader of turn.readers) reader.chunk(seq, chunk);
});
acpipe.on('permission/request', (params, id) => questions.set(params.questionId, { id, ...params }));
acpipe.on('$/cancelRequest', ({ id }) => {
  for (const [questionId, asked] of questions) if (asked.id === id) questions.delete(questionId);
});

/** A browser that receives an answer as server-sent events. */
class Reader {
  #response;
  #held; // live chunks, queued until the stored chunks before them are sent
  #end; // how the turn ended meanwhile

  constructor(response, { catchesUp = false } = {}) {
    this.#response = response;
    this.#held = catchesUp ? [] : undefined;
    const pulse = setInterval(() => response.headersSent && response.write(': keep-alive\n\n'), 15_000);
    response.on('close', () => clearInterval(pulse));
  }

  chunk(seq, chunk) {
    if (this.#held) this.#held.push({ seq, chunk });
    else this.#send(chunk);
  }

  end(error) {
    if (this.#held) this.#end = { error };
    else if (error && !this.#response.headersSent) refuse(this.#response, error);
    else {
      if (error) this.#send({ type: 'error', errorText: error.message });
      this.#response.end('data: [DONE]\n\n');
    }
  }

  /** Sends the stored chunks of a turn, then the live ones received meanwhile. */
  async catchUp(sessionId, { turnId, before }) {
    let last = before;
    for (let afterSeq = before; afterSeq !== null; ) {
      const { entries, next } = await acpipe.call('session/replay', { sessionId, afterSeq });
      for (const entry of entries) {
        last = entry.seq;
        if (entry.turnId === turnId) this.#send(entry.chunk);
      }
      afterSeq = next;
    }
    for (const { seq, chunk } of this.#held) if (seq > last) this.#send(chunk);
    this.#held = undefined;
    if (this.#end) this.end(this.#end.error);
  }

  #send(chunk) {
    if (!this.#response.headersSent) this.#response.writeHead(200, HEADERS);
    this.#response.write(`data: ${JSON.stringify(chunk)}\n\n`);
    if (this.#response.writableLength > MOST_UNREAD) this.#response.destroy(); // the browser can resume
  }
}

function refuse(response, { kind, message }) {
  response.writeHead(STATUS[kind] ?? 502, { 'content-type': 'text/plain; charset=utf-8' }).end(message);
}

const refusal = (kind, message) => Object.assign(new Error(message), { kind });

async function prompt({ id: sessionId, messages, trigger }, response) {
  if (typeof sessionId !== 'string' || !messages?.length) throw refusal('invalidParams', 'id and messages are needed');
  if (turns.has(sessionId)) throw refusal('busy', 'this chat already has a running answer');
  const message = messages.at(-1);
  // The message's id as turn id: a request that is sent twice prompts the agent once and gets the same answer.
  const turnId = trigger === 'submit-message' ? message.id : randomUUID();
  const turn = { turnId, before: undefined, readers: new Set([new Reader(response)]) };
  turns.set(sessionId, turn);
  let failure;
  try {
    await acpipe.call('agent/connect'); // responds at once if the agent runs
    await acpipe.call('session/ensure', { sessionId });
    await acpipe.call('session/prompt', { sessionId, turnId, message });
  } catch (error) {
    failure = error;
  }
  turns.delete(sessionId);
  for (const reader of turn.readers) reader.end(failure);
}

async function resume(sessionId, response) {
  const turn = turns.get(sessionId);
  if (!turn) return response.writeHead(204).end();
  const reader = new Reader(response, { catchesUp: turn.before !== undefined });
  turn.readers.add(reader);
  if (turn.before !== undefined) await reader.catchUp(sessionId, turn);
}

async function stop(sessionId) {
  const turnId = turns.get(sessionId)?.turnId;
  return turnId ? acpipe.call('session/cancel', { sessionId, turnId }) : { cancelled: false };
}

function answer(sessionId, { approvalId, approved, reason }) {
  const asked = questions.get(approvalId);
  if (asked?.sessionId !== sessionId) throw refusal('sessionNotFound', 'this question is not open');
  questions.delete(approvalId);
  const kind = approved === true ? 'allow' : 'reject';
  const option =
    asked.options.find((option) => option.kind === `${kind}_once`) ??
    asked.options.find((option) => option.kind.startsWith(kind));
  const chosen = { outcome: 'selected', optionId: option?.optionId, message: reason };
  acpipe.answer(asked.id, { outcome: option ? chosen : { outcome: 'cancelled' } });
  return { approved: approved === true && option !== undefined };
}

async function messages(sessionId) {
  const all = [];
  try {
    for (let page = { more: true }; page.more; all.push(...page.messages)) {
      page = await acpipe.call('message/list', { sessionId, after: all.at(-1)?.id });
    }
  } catch (error) {
    if (error.kind !== 'sessionNotFound') throw error; // the chat has no messages yet
  }
  // /stream sends the whole running answer.
  if (turns.has(sessionId) && all.at(-1)?.role === 'assistant') all.pop();
  return all;
}

async function serve(request, response) {
  const { pathname } = new URL(request.url, 'http://localhost');
  const [, chat, action = 'prompt'] = pathname.match(/^\/api\/chat(?:\/([^/]+)\/([a-z]+))?$/) ?? [];
  const sessionId = chat && decodeURIComponent(chat);
  const reply = (value) => response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(value));
  // A page of another site can post text, but not JSON without permission of this server. Agents act on what is posted.
  const isJson = request.headers['content-type']?.startsWith('application/json');
  switch (`${request.method} ${action}`) {
    case 'GET stream':
      return resume(sessionId, response);
    case 'GET messages':
      return reply(await messages(sessionId));
    case 'POST stop':
      if (isJson) return reply(await stop(sessionId));
      break;
    case 'POST approval':
      if (isJson) return reply(answer(sessionId, await json(request)));
      break;
    case 'POST prompt':
      if (isJson) return prompt(await json(request), response);
  }
  throw refusal(isJson ? 'sessionNotFound' : 'invalidParams', 'no such endpoint, or the body is not JSON');
}

const server = createServer((request, response) => {
  serve(request, response).catch((error) => (response.headersSent ? response.destroy() : refuse(response, error)));
});
await acpipe.call('initialize', {
  protocolVersion: 1,
  clientInfo: { name: 'server.mjs' },
  capabilities: { permissions: true },
});
server.listen(process.env.PORT ?? 3000, '127.0.0.1', () => {
  console.log(`http://127.0.0.1:${server.address().port}/api/chat`);
});
