#!/usr/bin/env node
// Two prompts in one session, and how their chunks build what a UI shows. Node 20+, no dependencies.
//
//   node examples/chat.mjs                     the built-in demo agent answers
//   node examples/chat.mjs opencode acp        an agent of your own
//
// With the AI SDK (npm install ai) the same streams become whole messages, or the answer to a browser's useChat:
//
//   import { readUIMessageStream, createUIMessageStreamResponse } from 'ai';
//   for await (const message of readUIMessageStream({ stream: prompt('hello') })) render(message.parts);
//   return createUIMessageStreamResponse({ stream: prompt('hello') });
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';

const calls = new Map(); // id of a request → its promise
const turns = new Map(); // id of a turn → the stream that receives its chunks

// A process group of its own (detached): Ctrl-C reaches this program only. acpipe exits with it, as its stdin closes.
const child = spawn('acpipe', ['serve'], { stdio: ['pipe', 'pipe', 'inherit'], detached: true });
const lost = (why) => calls.forEach(({ reject }) => reject(why));
child.on('error', lost).on('close', () => lost(new Error('acpipe has exited')));
child.stdin.on('error', lost);
process.stdout.on('error', () => process.exit(1)); // the reader of stdout has exited, as in | head -1

let rest = '';
child.stdout.setEncoding('utf8').on('data', (text) => {
  const lines = (rest + text).split('\n'); // node:readline splits at U+2028 too since Node 24; JSON may contain it
  rest = lines.pop();
  for (const line of lines) {
    try {
      receive(JSON.parse(line));
    } catch (error) { // such as a line of a wrapper: the next ones are read
      console.error(`cannot use a line of acpipe: ${error.message}: ${JSON.stringify(line.slice(0, 200))}`);
    }
  }
});

function receive({ id, method, params, result, error }) {
  if (method === 'session/chunk') turns.get(params.turnId)?.enqueue(params.chunk);
  if (method) return; // agent/state, session/state and session/activity are ignored
  if (error) calls.get(id)?.reject(Object.assign(new Error(error.message), error.data)); // data.kind is for programs
  else calls.get(id)?.resolve(result);
  calls.delete(id);
}

let lastId = 0;
function call(method, params = {}) {
  return new Promise((resolve, reject) => {
    calls.set(++lastId, { resolve, reject });
    child.stdin.write(JSON.stringify({ jsonrpc: '2.0', id: lastId, method, params }) + '\n');
  });
}

/** Runs one turn; returns a stream of AI SDK chunks. A reader that stops cancels the turn. */
function prompt(message, sessionId = 'default') {
  const turnId = randomUUID();
  const done = (end) => turns.delete(turnId) && end();
  return new ReadableStream({
    start(stream) {
      turns.set(turnId, stream);
      call('session/prompt', { sessionId, turnId, message }).then(
        (_summary) => done(() => stream.close()), // text, stop reason, tools, usage, errors …
        (error) => done(() => stream.error(error)),
      );
    },
    cancel() {
      turns.delete(turnId);
      return call('session/cancel', { sessionId, turnId });
    },
  });
}

/** Applies a chunk to the parts of a message, in order of appearance: it begins a part or changes one. */
function apply(parts, chunk) {
  const { type, id, toolCallId: call } = chunk;
  if (type === 'text-start') parts.set(id, { type: 'text', text: '' });
  if (type === 'text-delta') parts.get(id).text += chunk.delta;
  if (type === 'tool-input-available') parts.set(call, { type: 'tool', title: chunk.title, state: 'running' });
  if (type === 'tool-output-available' && !chunk.preliminary) parts.get(call).state = 'done';
  if (type === 'tool-output-error') parts.get(call).state = `failed: ${chunk.errorText}`;
  if (type === 'tool-output-denied') parts.get(call).state = 'refused';
  if (type === 'error') parts.set('error', { type: 'error', text: chunk.errorText });
}

try {
  const [command, ...args] = process.argv.slice(2);
  // Calls are sent at once: acpipe opens the session when the agent is ready.
  await Promise.all([
    call('initialize', { protocolVersion: 1, clientInfo: { name: 'chat.mjs' } }),
    call('agent/connect', command ? { command, args } : {}),
    call('session/ensure'),
  ]);
  for (const question of ['hello', 'list the files here']) {
    console.log(`\n> ${question}\n`);
    const parts = new Map();
    for await (const chunk of prompt(question)) {
      apply(parts, chunk); // a UI would render all parts again; a terminal prints the new text
      if (chunk.type === 'text-delta') process.stdout.write(chunk.delta);
      if (chunk.type === 'text-end') process.stdout.write('\n');
    }
    console.log('\nparts:', [...parts.values()]);
  }
  await call('shutdown');
} catch (error) {
  console.error(error.message);
  process.exit(1);
}
