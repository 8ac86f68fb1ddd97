// Reads streams with the AI SDK's DefaultChatTransport and compares their bytes with those that the SDK would send.
//
// stdin: one JSON object a line, {"name", "profile": 7 | 6 | 5} and either {"sse": output of a run}
// or {"api": address of a server, "prompt"}.
// stdout: one line for each, {"name", "problems", "text": [text of each part], "tools": [state of each], "errors"}.
import { randomUUID } from 'node:crypto';
import { text } from 'node:stream/consumers';

const SDKS = { 7: await import('ai7'), 6: await import('ai6'), 5: await import('ai5') };

/** Time after which a server counts as hung. */
const LIMIT = 30_000;

const DONE = 'data: [DONE]\n\n';

const words = error => String(error?.message ?? error).slice(0, 300);

function streamOf(items) {
  return new ReadableStream({
    start(controller) {
      for (const item of items) controller.enqueue(item);
      controller.close();
    },
  });
}

/** Cuts the text into pieces as a network does, without regard to lines and characters. */
function pieces(text, size = 7) {
  const bytes = new TextEncoder().encode(text);
  return Array.from({ length: Math.ceil(bytes.length / size) }, (_, n) => bytes.slice(n * size, (n + 1) * size));
}

const sorted = value => {
  if (Array.isArray(value)) return value.map(sorted);
  if (value === null || typeof value !== 'object') return value;
  return Object.fromEntries(Object.keys(value).sort().map(key => [key, sorted(value[key])]));
};

/** Sorts the keys of the JSON and removes its spacing: the SDK's schema changes the order of keys. */
const canonical = sse => {
  const chunk = line => (/^data: \{[^]*\}$/.test(line) ? `data: ${JSON.stringify(sorted(JSON.parse(line.slice(6))))}` : line);
  return sse.split('\n').map(chunk).join('\n');
};

/** Returns the SDK's response for these chunks. */
function response(sdk, chunks) {
  return sdk.createUIMessageStreamResponse({ stream: streamOf(chunks) });
}

function whereTheyPart(ours, theirs) {
  let at = 0;
  while (at < ours.length && ours[at] === theirs[at]) at += 1;
  const show = text => JSON.stringify(text.slice(Math.max(0, at - 20), at + 60));
  return `at ${at}: ${show(ours)} where the SDK writes ${show(theirs)}`;
}

/** Checks that the received bytes are those that the SDK writes for the chunks that its transport read. */
async function compare(sdk, sse, chunks, problems) {
  if (!`\n\n${sse}`.endsWith(`\n\n${DONE}`)) problems.push('end: the last event is not [DONE]');
  const theirs = canonical(await response(sdk, chunks).text());
  const ours = canonical(sse);
  if (ours !== theirs) {
    problems.push(`framing: ${whereTheyPart(ours, theirs)}`);
    return;
  }
  const events = sse.slice(0, -DONE.length).split('\n\n').slice(0, -1);
  const again = await response(sdk, events.map(event => JSON.parse(event.slice('data: '.length)))).text();
  if (sse !== again) problems.push(`bytes: ${whereTheyPart(sse, again)}`);
}

/** Returns the message that the SDK's reader builds, and the errors that it reports. */
async function show(sdk, chunks) {
  const errors = [];
  let message;
  const snapshots = sdk.readUIMessageStream({ stream: streamOf(chunks), onError: error => errors.push(words(error)) });
  for await (const snapshot of snapshots) message = snapshot;
  const parts = message?.parts ?? [];
  return {
    text: parts.filter(part => part.type === 'text').map(part => part.text),
    tools: parts.filter(part => part.type === 'dynamic-tool').map(part => part.state),
    errors,
  };
}

async function judge({ name, profile, sse, api, prompt = 'hello' }) {
  const sdk = SDKS[profile];
  const problems = [];
  const chunks = [];
  let bytes;
  const request = async (url, init) => {
    const answer = sse === undefined ? await fetch(url, init) : new Response(streamOf(pieces(sse)));
    if (!answer.ok) return answer;
    if (sse === undefined) {
      for (const [header, value] of response(sdk, []).headers) {
        const theirs = answer.headers.get(header);
        if (theirs !== value) problems.push(`header ${header}: ${theirs} where the SDK sends ${value}`);
      }
    }
    const [read, kept] = answer.body.tee();
    bytes = new Response(kept).text().catch(() => undefined);
    return new Response(read, answer);
  };
  try {
    const transport = new sdk.DefaultChatTransport({ api, fetch: request });
    const stream = await transport.sendMessages({
      trigger: 'submit-message',
      chatId: randomUUID(),
      messageId: undefined,
      messages: [{ id: randomUUID(), role: 'user', parts: [{ type: 'text', text: prompt }] }],
      abortSignal: AbortSignal.timeout(LIMIT),
    });
    for await (const chunk of stream) chunks.push(chunk);
  } catch (error) {
    problems.push(`transport: ${words(error)}`);
  }
  const came = await bytes;
  if (came !== undefined && problems.length === 0) await compare(sdk, came, chunks, problems);
  return { name, problems, ...(await show(sdk, chunks)) };
}

// All at once: node:readline also splits at U+2028, which JSON may contain.
const lines = (await text(process.stdin)).split('\n').filter(Boolean);
for (const line of lines) process.stdout.write(`${JSON.stringify(await judge(JSON.parse(line)))}\n`);
