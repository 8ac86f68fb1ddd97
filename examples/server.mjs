#!/usr/bin/env node
// The chat endpoint of an AI SDK app, with any agent behind it: `useChat` in the browser, `acpipe run` here.
// Node 20+, no dependencies. In the app, let /api/chat (the default of useChat) lead to the address it prints.
//
//   node examples/server.mjs                                    the built-in demo agent answers
//   PORT=3001 node examples/server.mjs --chunk-profile 6 -- opencode acp
//
// Arguments are those of `acpipe run`. Every message is a session of its own; an agent that is to remember
// the one before is driven by `acpipe serve`, see chat.mjs.
import { spawn } from 'node:child_process';
import { createServer } from 'node:http';
import { json } from 'node:stream/consumers';

const HEADERS = {
  'content-type': 'text/event-stream',
  'cache-control': 'no-cache',
  connection: 'keep-alive',
  'x-vercel-ai-ui-message-stream': 'v1',
  'x-accel-buffering': 'no', // nginx would hold the stream back
};

async function promptOf(request) {
  const { messages } = await json(request);
  const texts = messages.at(-1).parts.filter(({ type }) => type === 'text');
  return texts.map(({ text }) => text).join('\n').trim();
}

const server = createServer(async (request, response) => {
  // Any page in the browser can send us text, but JSON only if we allowed it: the agent acts on what it reads.
  const isJson = request.headers['content-type']?.startsWith('application/json');
  const prompt = isJson && (await promptOf(request).catch(() => ''));
  if (!prompt) return response.writeHead(400).end('no message with a text, as JSON');

  // The prompt goes through stdin: as an argument it could be taken for an option.
  const acpipe = spawn('acpipe', ['run', '-o', 'sse', ...process.argv.slice(2)], { stdio: ['pipe', 'pipe', 'inherit'] });
  acpipe.on('error', (why) => response.writeHead(500).end(why.message));
  acpipe.stdin.on('error', () => {}).end(prompt);
  acpipe.on('spawn', () => acpipe.stdout.pipe(response.writeHead(200, HEADERS)));
  response.on('close', () => {
    acpipe.kill('SIGINT'); // the browser left or pressed stop: this cancels the turn; after its end it does nothing
    acpipe.stdout.unpipe().resume(); // and what it still says about that goes nowhere, but it goes
  });
});
server.listen(process.env.PORT ?? 3000, '127.0.0.1', () => console.log(`http://127.0.0.1:${server.address().port}`));
