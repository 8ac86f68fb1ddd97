// Judges streams of AG-UI events with the protocol's own packages, many in one process: the schemas of @ag-ui/core (fields
// that they do not have are problems, too), the order by verifyEvents of @ag-ui/client, and its agent, which reads the
// stream from HTTP.
//
// stdin: one JSON object a line: {"name", "events": [...]}, or {"name", "lines": "..."}: the output of `acpipe run -o agui`.
// stdout: one line a stream, {"name", "problems", "messages", "state", "result"}; the last three are those of the agent.
import { createInterface } from 'node:readline';
import { HttpAgent, enforceEvents, verifyEvents } from '@ag-ui/client';
import { from, lastValueFrom, toArray } from 'rxjs';

/** Number of events up to which the agent reads a stream: it copies its messages for each event. */
const READ = 400;

let warnings = [];
console.warn = (...words) => warnings.push(words.map(String).join(' '));
console.error = console.warn;

const clip = text => (text.length > 300 ? `${text.slice(0, 300)}…` : text);
const words = error => clip(String(error?.message ?? error).replace(/\s+/g, ' '));

/** Returns the schemas' and the verifier's problem with a stream. */
async function verify(events) {
  try {
    const passed = await lastValueFrom(from(events).pipe(enforceEvents(), verifyEvents(), toArray()));
    if (passed.length !== events.length) return [`${events.length} events went in, ${passed.length} came out`];
    const last = passed.at(-1)?.type;
    return ['RUN_FINISHED', 'RUN_ERROR'].includes(last) ? [] : [`the last event is ${last}`];
  } catch (error) {
    return [words(error)];
  }
}

/** Returns what the agent makes of a stream. */
async function read(events) {
  const body = events.map(event => `data: ${JSON.stringify(event)}\n\n`).join('');
  const headers = { 'content-type': 'text/event-stream' };
  const agent = new HttpAgent({ url: 'http://agent.invalid', fetch: async () => new Response(body, { headers }) });
  const problems = [];
  let result;
  try {
    ({ result } = await agent.runAgent());
  } catch (error) {
    if (events.at(-1)?.type !== 'RUN_ERROR') problems.push(`agent: ${words(error)}`);
  }
  return { problems, messages: agent.messages, state: agent.state, result };
}

for await (const line of createInterface({ input: process.stdin })) {
  const { name, events: given, lines } = JSON.parse(line);
  warnings = [];
  let events = given;
  const problems = [];
  try {
    events ??= lines.split('\n').slice(0, -1).map(text => JSON.parse(text));
  } catch (error) {
    problems.push(words(error));
    events = [];
  }
  problems.push(...(await verify(events)));
  let agent = {};
  if (problems.length === 0 && events.length <= READ) {
    agent = await read(events);
    problems.push(...agent.problems);
  }
  problems.push(...warnings.map(clip));
  console.log(JSON.stringify({ ...agent, name, problems }));
}
