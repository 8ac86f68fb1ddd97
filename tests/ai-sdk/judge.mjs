// Judges streams of UIMessageChunks with the AI SDK, many in one process.
//
// stdin: one JSON object a line: {"name", "profile": 7 | 6 | 5, "chunks": [...], "expectError"?: true}.
// stdout: one line a stream, {"name", "profile", "ok", "problems", "message"}, then {"summary"}.
// Exit status: 0 if all streams are valid, 1 if some are not, 2 if the input cannot be read.
import { createInterface } from 'node:readline';
import { breaches } from './rules.mjs';

const SDKS = { 7: await import('ai7'), 6: await import('ai6'), 5: await import('ai5') };

// start-step, finish and similar chunks do not publish the message. This part makes the reader
// publish its last state; it is removed afterwards.
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

/** Returns the chunks as a client of the SDK's HTTP transport receives them. */
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

/** Returns the schema errors of the union's branch that matches the chunk's type. */
function whyRefused(error, chunk) {
  let cause = error;
  while (cause?.cause && !cause.issues) cause = cause.cause;
  const branches = cause?.issues?.flatMap(issue => issue.errors ?? []) ?? [];
  const meant = branches.find(issues => issues.every(issue => issue.path?.[0] !== 'type'));
  if (meant) return meant.map(issue => `${issue.path.join('.')}: ${issue.message}`).join('; ');
  if (branches.length > 0) return `the type ${JSON.stringify(chunk?.type)} is unknown`;
  return words(cause ?? error);
}

/** Returns the message that the SDK's reader builds, as JSON. */
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
 * Returns the message as a client of 6 stores it. That major has no chunk for the answer to an approval request, and
 * another answer than this client's may have decided: the result of the call shows it (docs/reference/chunks.md).
 */
function answered(message) {
  const parts = message.parts.map(part => (part.approval
    ? { ...part, approval: { ...part.approval, approved: part.state !== 'output-denied' } }
    : part));
  return { ...message, parts };
}

/** Checks that a stored message validates, has no open parts, and converts to model messages. */
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
