#!/usr/bin/env node
// An agent that speaks ACP, without packages: it asks for permission, then counts words. Try it:
//
//   acpipe run "one two" -- node examples/agent.mjs
const send = (message) => console.log(JSON.stringify({ jsonrpc: '2.0', ...message }));
const answers = new Map(); // id of a request to the client -> what gets its result
let lastId = 0;

function ask(method, params) {
  const id = ++lastId;
  send({ id, method, params });
  return new Promise((resolve) => answers.set(id, resolve));
}

async function prompt({ sessionId, prompt }) {
  const update = (update) => send({ method: 'session/update', params: { sessionId, update } });
  const say = (text) => update({ sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } });
  const toolCall = { toolCallId: `count-${++lastId}`, title: 'Count the words', kind: 'other', status: 'pending' };
  const { toolCallId } = toolCall;
  update({ sessionUpdate: 'tool_call', ...toolCall });
  const options = [
    { optionId: 'yes', name: 'Allow', kind: 'allow_once' },
    { optionId: 'no', name: 'Reject', kind: 'reject_once' },
  ];
  const { outcome } = await ask('session/request_permission', { sessionId, toolCall, options });
  // A cancel of the turn also ends the question.
  if (outcome.outcome === 'cancelled') return { stopReason: 'cancelled' };
  if (outcome.optionId === 'yes') {
    const count = prompt.map(({ text = '' }) => text).join(' ').split(/\s+/).filter(Boolean).length;
    update({ sessionUpdate: 'tool_call_update', toolCallId, status: 'completed', rawOutput: count });
    say(`Your prompt has ${count} words.`);
  } else {
    update({ sessionUpdate: 'tool_call_update', toolCallId, status: 'failed' });
    say('I may not count your words.');
  }
  return { stopReason: 'end_turn' };
}

const methods = {
  initialize: () => ({ protocolVersion: 1, agentCapabilities: {} }),
  'session/new': () => ({ sessionId: `session-${++lastId}` }),
  'session/prompt': prompt,
};

// Without a result, an answer is an error.
async function receive({ id, method, params, result = { outcome: { outcome: 'cancelled' } } }) {
  if (method === undefined) return answers.get(id)?.(result); // an answer to `ask`
  if (id === undefined) return; // a notification, such as session/cancel
  const call = methods[method];
  if (!call) return send({ id, error: { code: -32601, message: `${method} is not supported` } });
  try {
    send({ id, result: await call(params) });
  } catch ({ message }) {
    send({ id, error: { code: -32602, message } }); // parameters that `call` cannot use
  }
}

async function read(line) {
  try {
    await receive(JSON.parse(line));
  } catch (error) {
    console.error(`cannot use a line of the client: ${error.message}`);
  }
}

let rest = '';
process.stdin.setEncoding('utf8').on('data', (text) => {
  const lines = (rest + text).split('\n');
  rest = lines.pop();
  for (const line of lines) if (line.trim()) read(line);
});
