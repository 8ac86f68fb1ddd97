// An ACP agent on stdin and stdout that follows the scenarios of the tests.

import { connect } from 'node:net';
import { createInterface } from 'node:readline';
import { scenarioOf } from '../scenarios.mjs';
import { AcpTurn, GateList } from './turn.mjs';

const modes = { currentModeId: 'build', availableModes: [{ id: 'build', name: 'Build' }, { id: 'plan', name: 'Plan' }] };
const models = { currentModelId: 'fast', availableModels: [{ modelId: 'fast', name: 'Fast 2' }, { modelId: 'smart', name: 'Smart 5' }] };
const thinking = { id: 'thinking', name: 'Thinking', type: 'boolean', currentValue: false };

const gates = new GateList();
const sessions = new Map();
const pending = new Map();
let requests = 0;

// The test opens gates over a connection of its own.
const control = connect(Number(process.env.PAGE_GATES), '127.0.0.1');
control.on('error', () => {});
createInterface({ input: control }).on('line', (name) => gates.open(name));

function send(message) {
  process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
}

const outgoing = {
  update: (sessionId, update) => send({ method: 'session/update', params: { sessionId, update } }),
  request(method, params) {
    const id = `agent-${++requests}`;
    send({ id, method, params });
    return new Promise((resolve, reject) => pending.set(id, { resolve, reject }));
  },
};

const METHODS = {
  initialize: () => ({ protocolVersion: 1, agentInfo: { name: 'scenarios', version: '1' }, agentCapabilities: {} }),
  'session/new': () => {
    const session = { id: `agent-session-${sessions.size + 1}`, turns: 0, modes: { ...modes }, models: { ...models }, thinking: { ...thinking } };
    sessions.set(session.id, session);
    return { sessionId: session.id, modes: session.modes, models: session.models, configOptions: [session.thinking] };
  },
  'session/set_mode': ({ sessionId, modeId }) => {
    sessions.get(sessionId).modes.currentModeId = modeId;
    return {};
  },
  'session/set_model': ({ sessionId, modelId }) => {
    sessions.get(sessionId).models.currentModelId = modelId;
    return {};
  },
  'session/set_config_option': ({ sessionId, value }) => {
    const session = sessions.get(sessionId);
    session.thinking.currentValue = value;
    return { configOptions: [session.thinking] };
  },
  'session/prompt': ({ sessionId, prompt }) => {
    const session = sessions.get(sessionId);
    const text = prompt.map((block) => block.text ?? '').join('');
    session.turn = new AcpTurn(outgoing, gates, sessionId, ++session.turns);
    return session.turn.run(scenarioOf(text), text);
  },
  'session/cancel': ({ sessionId }) => sessions.get(sessionId)?.turn?.cancel(),
};

async function call({ id, method, params }) {
  try {
    if (!METHODS[method]) throw new Error(`${method} is not a method of this agent`);
    const result = await METHODS[method](params);
    if (id !== undefined) send({ id, result });
  } catch (error) {
    if (id !== undefined) send({ id, error: { code: -32603, message: error.message } });
  }
}

createInterface({ input: process.stdin })
  .on('line', (line) => {
    const message = JSON.parse(line);
    if (message.method) return void call(message);
    const { resolve, reject } = pending.get(message.id);
    pending.delete(message.id);
    if (message.error) reject(new Error(message.error.message));
    else resolve(message.result);
  })
  .on('close', () => process.exit());
