// The neutral protocol of the mock server, as far as the page uses it.

import { MockSession } from './session.mjs';

class RpcFailure extends Error {
  constructor(kind, message) {
    super(message);
    this.kind = kind;
  }
}

const AGENTS = [
  { agent: 'default', isDefault: true, command: 'opencode', args: ['acp'] },
  { agent: 'claude', isDefault: false, command: 'claude', args: [] },
  { agent: 'gemini', isDefault: false, command: 'gemini', args: ['--acp'], installed: false },
];

const newState = () => ({
  modes: { currentModeId: 'build', availableModes: [{ id: 'build', name: 'Build' }, { id: 'plan', name: 'Plan' }] },
  models: { currentModelId: 'fast', availableModels: [{ modelId: 'fast', name: 'Fast 2' }, { modelId: 'smart', name: 'Smart 5' }] },
  configOptions: [{ id: 'thinking', name: 'Thinking', type: 'boolean', currentValue: false }],
});

/** Sessions of earlier days, so that the list is not empty. */
export function addStoredSessions(server) {
  const add = (sessionId, agent, cwd, title) => {
    const session = new MockSession(server, { sessionId, agent, cwd, state: newState() });
    server.sessions.set(sessionId, Object.assign(session, { title }));
  };
  add('chat-a', 'claude', '/home/me/shop', 'Mend the flaky checkout test');
  add('chat-b', 'default', '/home/me/site', 'Update the dependencies');
}

/** Methods that a client with an observer's token may call. */
const OBSERVER_METHODS = ['initialize', 'session/list', 'session/get', 'session/attach', 'session/detach', 'session/clients', 'agent/list'];

export class RpcClient {
  name = 'unnamed';
  #server;
  #socket;
  #isObserver;
  #pending = new Map();
  #requests = 0;

  constructor(server, socket, isObserver) {
    this.#server = server;
    this.#socket = socket;
    this.#isObserver = isObserver;
    this.id = `c${++server.lastClient}`;
    socket.on('message', (text) => this.#receive(JSON.parse(text)));
    socket.on('close', () => {
      for (const session of server.sessions.values()) session.detach(this);
    });
  }

  notify(method, params) {
    this.#send({ method, params });
  }

  request(method, params, answered) {
    const id = `acpipe-${++this.#requests}`;
    this.#pending.set(id, answered);
    this.#send({ id, method, params });
    return id;
  }

  #send(message) {
    this.#socket.send(JSON.stringify({ jsonrpc: '2.0', ...message }));
  }

  #receive({ id, method, params, result }) {
    if (method === undefined) {
      this.#pending.get(id)?.(result);
      this.#pending.delete(id);
      return;
    }
    try {
      this.#send({ id, result: this.#call(method, params) });
    } catch (error) {
      this.#send({ id, error: { code: -32000, message: error.message, data: { kind: error.kind ?? 'internal' } } });
    }
  }

  #session({ sessionId }) {
    const session = this.#server.sessions.get(sessionId);
    if (!session) throw new RpcFailure('sessionNotFound', `session \`${sessionId}\` not found; call \`session/ensure\` first`);
    return session;
  }

  #call(method, params) {
    if (this.#isObserver && !OBSERVER_METHODS.includes(method)) {
      throw new RpcFailure('forbidden', `${method}: this token only allows to watch; use the token of a controller`);
    }
    switch (method) {
      case 'initialize':
        this.name = params.clientInfo.name;
        return { protocolVersion: 1, serverInfo: { name: 'acpipe' }, chunkProfile: 7, defaultAgent: { name: 'default' } };
      case 'agent/list':
        return { agents: AGENTS.map((agent) => ({ tags: [], state: 'disconnected', installed: true, agentInfo: null, sessions: 0, ...agent })) };
      case 'agent/connect':
        return {};
      case 'session/list':
        return { sessions: [...this.#server.sessions.values()].map((session) => session.info()).reverse(), nextCursor: null };
      case 'session/ensure':
        return this.#ensure(params);
      case 'session/get':
        return this.#session(params).info();
      case 'session/attach':
        return this.#attach(params);
      case 'session/detach':
        this.#session(params).detach(this);
        return {};
      case 'session/clients':
        return { clients: this.#session(params).clients(this) };
      case 'session/setMode':
        return this.#change(params, ({ modes }) => (modes.currentModeId = params.mode));
      case 'session/setModel':
        return this.#change(params, ({ models }) => (models.currentModelId = params.model));
      case 'session/setOption':
        return this.#change(params, ({ configOptions }) => (configOptions[0].currentValue = params.value));
      default:
        throw new RpcFailure('methodNotFound', `${method} is not a method`);
    }
  }

  #ensure({ sessionId, agent = 'default', cwd = this.#server.cwd }) {
    if (!cwd.startsWith('/')) throw new RpcFailure('invalidParams', 'cwd: must be an absolute path');
    if (!this.#server.sessions.has(sessionId)) {
      this.#server.sessions.set(sessionId, new MockSession(this.#server, { sessionId, agent, cwd, state: newState() }));
    }
    const session = this.#server.sessions.get(sessionId);
    return { sessionId, agentSessionId: 'agent', agentName: session.agent, cwd: session.cwd, recovery: { rung: 'new' }, state: session.state };
  }

  #attach(params) {
    if (this.#isObserver && params.role !== 'observer') {
      throw new RpcFailure('forbidden', 'session/attach: this token only allows to watch; attach with `role: "observer"`');
    }
    return this.#session(params).attach(this, params.role ?? 'controller');
  }

  #change(params, change) {
    const session = this.#session(params);
    change(session.state);
    session.setState({});
    return { state: session.state };
  }
}
