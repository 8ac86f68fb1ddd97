// Serves real AI SDK endpoints (streamText with a scripted model, and createUIMessageStream) of each major, prompts
// them through acpipe, and compares the message that the SDK's reader builds from acpipe's stream with the one that
// it builds from the endpoint's own.
//
// stdin: one JSON object {"acpipe": program, "state": directory}
// stdout: one line for each major, {"major", "problems", "prompts": roles of the messages of each request}.
import { execFile } from 'node:child_process';
import { createServer } from 'node:http';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { z } from 'zod';

const run = promisify(execFile);

/** Time after which a run counts as hung. */
const LIMIT = 30_000;

const SDKS = { 7: await import('ai7'), 6: await import('ai6'), 5: await import('ai5') };
const MOCKS = {
  7: (await import('ai7/test')).MockLanguageModelV4,
  6: (await import('ai6/test')).MockLanguageModelV3,
  5: (await import('ai5/test')).MockLanguageModelV2,
};

const usage = major =>
  major === 5
    ? { inputTokens: 1, outputTokens: 2, totalTokens: 3 }
    : { inputTokens: { total: 1, noCache: 1 }, outputTokens: { total: 2, text: 2 } };
const finish = (major, reason) => ({
  type: 'finish',
  usage: usage(major),
  finishReason: major === 5 ? reason : { unified: reason, raw: reason },
});

let prompted = 0;

/** Model that thinks, calls a tool, and answers in the second step. The calls of each prompt have ids of their own. */
function model(sdk, major) {
  const prompt = ++prompted;
  let step = 0;
  const steps = [
    [
      { type: 'stream-start', warnings: [] },
      { type: 'reasoning-start', id: 'r' },
      { type: 'reasoning-delta', id: 'r', delta: 'let me see' },
      { type: 'reasoning-end', id: 'r', providerMetadata: { mock: { signature: 's' } } },
      { type: 'tool-input-start', id: `c1-${prompt}`, toolName: 'add' },
      { type: 'tool-input-delta', id: `c1-${prompt}`, delta: '{"a":1,' },
      { type: 'tool-input-delta', id: `c1-${prompt}`, delta: '"b":2}' },
      { type: 'tool-input-end', id: `c1-${prompt}` },
      { type: 'tool-call', toolCallId: `c1-${prompt}`, toolName: 'add', input: '{"a":1,"b":2}' },
      { type: 'tool-call', toolCallId: `c2-${prompt}`, toolName: 'fail', input: '{}' },
      finish(major, 'tool-calls'),
    ],
    [
      { type: 'stream-start', warnings: [] },
      { type: 'source', sourceType: 'url', id: 's1', url: 'https://example.com/', title: 'Example' },
      { type: 'text-start', id: 't' },
      { type: 'text-delta', id: 't', delta: 'It is ' },
      { type: 'text-delta', id: 't', delta: 'three \u{1f600}' },
      { type: 'text-end', id: 't' },
      finish(major, 'stop'),
    ],
  ];
  return new MOCKS[major]({
    doStream: async () => ({ stream: sdk.simulateReadableStream({ chunks: steps[step++] }) }),
  });
}

function stream(sdk, major, messages) {
  const tools = {
    add: sdk.tool({
      inputSchema: z.object({ a: z.number(), b: z.number() }),
      async *execute({ a, b }) {
        yield { state: 'adding' };
        yield { sum: a + b };
      },
    }),
    fail: sdk.tool({ inputSchema: z.object({}), execute: () => { throw new Error('cannot'); } }),
  };
  return sdk.createUIMessageStream({
    async execute({ writer }) {
      // A later start with another id would make readUIMessageStream drop the parts before it.
      writer.write({ type: 'start', messageId: 'own', messageMetadata: { model: 'mock' } });
      writer.write({ type: 'data-weather', id: 'w', data: { t: 1 } });
      writer.write({ type: 'data-progress', data: 50, transient: true });
      const result = sdk.streamText({
        model: model(sdk, major),
        messages: await sdk.convertToModelMessages(messages),
        tools,
        stopWhen: sdk.stepCountIs(3),
      });
      writer.merge(result.toUIMessageStream({
        sendStart: false,
        sendSources: true,
        messageMetadata: ({ part }) => (part.type === 'finish' ? { tokens: { total: 3 } } : undefined),
      }));
      await result.consumeStream();
      writer.write({ type: 'data-weather', id: 'w', data: { t: 2 } });
    },
    onError: error => String(error?.message ?? error),
  });
}

async function folded(sdk, chunks) {
  const stream = new ReadableStream({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(chunk);
      controller.close();
    },
  });
  let last;
  for await (const message of sdk.readUIMessageStream({ stream, terminateOnError: true })) last = message;
  return last;
}

/** Removes what acpipe adds to each message: its id, its own metadata, its receipt of a restore and a first step. */
function plain(message) {
  const copy = structuredClone(message);
  delete copy.id;
  if (copy.metadata) delete copy.metadata['ui-stream'];
  if (copy.parts[0]?.type === 'step-start') copy.parts.shift();
  copy.parts = copy.parts.filter(part => part.type !== 'data-recovery');
  const sorted = value =>
    Array.isArray(value) ? value.map(sorted)
      : value && typeof value === 'object'
        ? Object.fromEntries(Object.keys(value).sort().filter(key => value[key] !== undefined).map(key => [key, sorted(value[key])]))
        : value;
  return JSON.stringify(sorted(copy), null, 1);
}

const { acpipe, state } = JSON.parse(await text(process.stdin));
for (const major of [5, 6, 7]) {
  const sdk = SDKS[major];
  const problems = [];
  const prompts = [];
  let own = [];
  const server = createServer(async (request, response) => {
    const body = JSON.parse(await text(request));
    prompts.push(body.messages.map(message => message.role));
    const [toClient, toUs] = stream(sdk, major, body.messages).tee();
    own = [];
    const read = (async () => { for await (const chunk of toUs) own.push(JSON.parse(JSON.stringify(chunk))); })();
    sdk.pipeUIMessageStreamToResponse({ response, stream: toClient });
    await read;
  });
  await new Promise(resolve => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${server.address().port}/api/chat`;
  const args = ['run', '--state-dir', state, '--session', `chat-${major}`, '-o', 'chunks', '--chunk-profile', String(major), '--protocol', 'ui-stream'];
  for (const prompt of ['one', 'two']) {
    const running = run(acpipe, [...args, prompt, '--', url], { timeout: LIMIT });
    // acpipe reads the rest of the prompt from stdin.
    running.child.stdin.end();
    const { stdout } = await running;
    const chunks = stdout.trim().split('\n').map(line => JSON.parse(line));
    const [ours, theirs] = [await folded(sdk, chunks), await folded(sdk, own)].map(plain);
    if (ours !== theirs) {
      problems.push(`${prompt}: acpipe's message is\n${ours}\nthe endpoint's is\n${theirs}`);
    }
    if (!chunks.some(chunk => chunk.type === 'data-progress')) problems.push('transient data is missing');
  }
  server.close();
  server.closeAllConnections();
  console.log(JSON.stringify({ major, problems, prompts }));
}
