// Judges streams of UIMessageChunks with the AI SDK itself, many in one process.
//
// stdin: one JSON object a line: {"name", "profile": 7 | 6 | 5, "chunks": [...], "expectError"?: true}.
// stdout: one line a stream, {"name", "profile", "ok", "problems", "message"}, then {"summary"}.
// Exit status: 0 all streams are right, 1 some are not, 2 the input cannot be read.
import { createInterface } from 'node:readline';
import { breaches } from './rules.mjs';

const SDKS = { 7: await import('ai7'), 6: await import('ai6'), 5: await import('ai5') };

// start-step, finish and the like do not publish the message: this part, taken off again, makes the
// reader hand over its last state.
const LAST = { type: 'data-judge-last', data: null };

const clip = text => (text.length > 300 ? `${text.slice(0, 300)}…` : text);
const show = value => clip(JSON.stringify(value) ?? 'undefined');
const words = error => clip(String(error?.message ?? error).replace(/\s+/g, ' '));

function streamOf(items) {
  return new ReadableStream({
    start(controller) {
      for (const item of items) controller.enqueue(item);
      controller.close();
    },
  });
}

/** The chunks as a client of the SDK's HTTP transport gets them. */
async function parse(sdk, chunks, problems) {
  const events = chunks.map(chunk => `data: ${JSON.stringify(chunk)}\n\n`).join('');
  const stream = streamOf([new TextEncoder().encode(events)]);
  const values = [];
  let n = 0;
  for await (const result of sdk.parseJsonEventStream({ stream, schema: sdk.uiMessageChunkSchema })) {
    if (result.success) values.push(result.value);
    else problems.push(`schema: chunk ${n}: ${whyRefused(result.error, chunks[n])}: ${show(chunks[n])}`);
    n += 1;
  }
  if (n !== chunks.length) problems.push(`schema: ${chunks.length} chunks went in, ${n} came out`);
  return values;
}

/** Of a union's many complaints, those of the branch that was meant. */
function whyRefused(error, chunk) {
  let cause = error;
  while (cause?.cause && !cause.issues) cause = cause.cause;
  const branches = cause?.issues?.flatMap(issue => issue.errors ?? []) ?? [];
  const meant = branches.find(issues => issues.every(issue => issue.path?.[0] !== 'type'));
  if (meant) return meant.map(issue => `${issue.path.join('.')}: ${issue.message}`).join('; ');
  if (branches.length > 0) return `the type ${JSON.stringify(chunk?.type)} is unknown`;
  return words(cause ?? error);
}

/** The message that the SDK's reader makes of them, as JSON. */
async function read(sdk, chunks, expectError, problems) {
  const errors = [];
  let message;
  const snapshots = sdk.readUIMessageStream({
    stream: streamOf([...chunks, LAST]),
    onError: error => errors.push(words(error)),
  });
  for await (const snapshot of snapshots) message = snapshot;
  const end = chunks.at(-1);
  const wanted = end?.type === 'error' ? [clip(end.errorText.replace(/\s+/g, ' '))] : [];
  if (show(errors) !== show(wanted)) problems.push(`reader: ${errors.join(' | ') || 'told no error'}`);
  if (expectError !== undefined && expectError !== wanted.length > 0) {
    problems.push(`end: the turn ${expectError ? 'failed' : 'did not fail'}, but the last chunk is ${end?.type}`);
  }
  if (message?.parts.at(-1)?.type !== LAST.type) {
    problems.push('reader: it did not read to the end');
    return message && JSON.parse(JSON.stringify(message));
  }
  message.parts.pop();
  return JSON.parse(JSON.stringify(message));
}

/**
 * The message as a client of 6 stores it. That major has no chunk for the answer to a request, and the client's own
 * answer may not be the one that counted: what became of the call says which it was (docs/reference/chunks.md).
 */
function answered(message) {
  const parts = message.parts.map(part => (part.approval
    ? { ...part, approval: { ...part.approval, approved: part.state !== 'output-denied' } }
    : part));
  return { ...message, parts };
}

/** A stored message must validate, hold nothing half open, and go back to a model. */
async function store(sdk, message, problems) {
  const checked = await sdk.safeValidateUIMessages({ messages: [message] });
  if (!checked.success) {
    const issue = checked.error.cause?.issues?.[0];
    const part = message.parts[issue?.path?.[2]];
    problems.push(`stored: ${issue ? `${issue.path.join('.')}: ${issue.message}: ${show(part)}` : words(checked.error)}`);
  }
  const over = { text: ['done'], reasoning: ['done'], 'dynamic-tool': ['output-available', 'output-error', 'output-denied'] };
  for (const part of message.parts) {
    if (over[part.type] && !over[part.type].includes(part.state)) {
      problems.push(`stored: a part stays ${part.state}: ${show(part)}`);
    }
    if (part.preliminary) problems.push(`stored: an output stays preliminary: ${show(part)}`);
  }
  try {
    await sdk.convertToModelMessages([message]);
  } catch (error) {
    problems.push(`to the model: ${words(error)}`);
  }
}

async function judge({ name, profile, chunks, expectError }) {
  const sdk = SDKS[profile];
  if (!sdk || !Array.isArray(chunks)) throw new TypeError(`${name}: no chunks, or no profile`);
  const problems = [];
  const values = await parse(sdk, chunks, problems);
  const message = await read(sdk, values, expectError, problems);
  if (message) {
    if (message.role !== 'assistant' || message.id !== chunks[0]?.messageId) {
      problems.push(`reader: the message is ${message.role} ${message.id}`);
    }
    await store(sdk, profile === 6 ? answered(message) : message, problems);
  } else {
    problems.push('reader: there is no message');
  }
  problems.push(...breaches(chunks, profile).map(breach => `rules: ${breach}`));
  return { name, profile, ok: problems.length === 0, problems, message };
}

const count = { streams: 0, wrong: 0, chunks: 0 };
try {
  for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
    if (line.trim() === '') continue;
    const stream = JSON.parse(line);
    const verdict = await judge(stream);
    count.streams += 1;
    count.chunks += stream.chunks.length;
    if (!verdict.ok) count.wrong += 1;
    process.stdout.write(`${JSON.stringify(verdict)}\n`);
  }
  process.stdout.write(`${JSON.stringify({ summary: count })}\n`);
  process.exitCode = count.wrong > 0 ? 1 : 0;
} catch (error) {
  process.stderr.write(`judge: ${error.stack}\n`);
  process.exitCode = 2;
}
