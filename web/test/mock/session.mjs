// A session of the mock server: messages, turns one after another, attached clients, open requests.

import { deferred, Turn } from './turn.mjs';

export class MockSession {
  attached = new Map(); // client → role
  turn = null;
  title = null;
  #server;
  #messages = [];
  #tail = Promise.resolve();
  #requests = new Set();
  #isWaiting = false;

  constructor(server, { sessionId, agent, cwd, state }) {
    Object.assign(this, { sessionId, agent, cwd, state });
    this.#server = server;
  }

  info() {
    return {
      sessionId: this.sessionId,
      agentSessionId: `agent-${this.sessionId}`,
      agent: this.agent,
      agentName: this.agent,
      state: 'live',
      turnId: this.turn?.id ?? null,
      cwd: this.cwd,
      title: this.title,
      mode: this.state.modes.currentModeId,
      model: this.state.models.currentModelId,
      createdAt: '2026-11-24T10:00:00Z',
      updatedAt: '2026-11-24T10:00:00Z',
      messages: this.#messages.length,
      seq: 0,
      corruptLines: 0,
      waitingFor: null,
      activity: this.#isWaiting ? 'waiting' : this.turn ? 'running' : 'idle',
      clients: this.attached.size,
    };
  }

  /** Stored messages; that of the running turn as it is so far. */
  async messages() {
    return this.turn ? [...this.#messages, await this.turn.message()] : [...this.#messages];
  }

  attach(client, role) {
    this.attached.set(client, role);
    this.#presence();
    if (role === 'controller') for (const request of this.#requests) this.#sendRequest(request, client);
    return { sessionId: this.sessionId, clientId: client.id, role, lastSeq: 0, running: this.turn && { turnId: this.turn.id }, clients: this.clients(client) };
  }

  detach(client) {
    if (this.attached.delete(client)) this.#presence();
  }

  clients(self) {
    return [...this.attached].map(([{ id, name }, role]) => ({ clientId: id, name, role, onDisconnect: 'continue', isSelf: id === self.id }));
  }

  notify(method, params, except) {
    for (const client of this.attached.keys()) if (client !== except) client.notify(method, { sessionId: this.sessionId, ...params });
  }

  setState(state) {
    Object.assign(this.state, state);
    this.title = this.state.title ?? this.title;
    this.notify('session/state', { state: this.state, queue: [] });
  }

  setWaiting(isWaiting) {
    this.#isWaiting = isWaiting;
  }

  /** Queues a prompt. The promise has the turn when it begins. */
  prompt(message) {
    const begun = deferred();
    for (const request of [...this.#requests]) request.refuse();
    this.#tail = this.#tail.then(() => this.#run(message, begun)).catch((error) => console.error(error));
    return begun.promise;
  }

  async #run(message, begun) {
    const prompt = message.parts.map(({ text }) => text ?? '').join('');
    const turn = new Turn(this, this.#server.gates, message.id);
    this.turn = turn;
    this.#messages.push(message);
    this.notify('session/userMessage', { turnId: turn.id, clientId: 'c0', message });
    begun.resolve(turn);
    // The endpoint is a client of its own while the turn runs.
    const endpoint = { id: `c${++this.#server.lastClient}`, name: 'HTTP', notify() {}, request() {} };
    this.attach(endpoint, 'controller');
    await turn.run(this.#server.scenario(prompt), prompt);
    this.detach(endpoint);
    this.#messages.push(await turn.message());
    this.turn = null;
    for (const reader of turn.readers) reader(null);
  }

  /** Asks all controllers; the first answer counts. */
  ask(method, params) {
    const answer = deferred();
    const request = { method, params: { sessionId: this.sessionId, ...params }, sent: new Map() };
    request.settle = (client, result) => {
      if (!this.#requests.delete(request)) return;
      this.#withdraw(request, { by: 'otherClient', client: { clientId: client.id, name: client.name } }, client);
      answer.resolve({ client, result });
    };
    // A message instead of an answer.
    request.refuse = () => {
      this.#requests.delete(request);
      this.#withdraw(request, { by: 'message' });
      const refused = params.options?.find(({ kind }) => kind.startsWith('reject'))?.optionId;
      answer.resolve({ result: { action: 'decline', outcome: { outcome: 'selected', optionId: refused } }, by: 'message' });
    };
    // Another client was faster than the window that answers.
    if (params.answeredBefore) {
      request.settle = () => {
        if (!this.#requests.delete(request)) return;
        this.#withdraw(request, { by: 'otherClient', client: { clientId: 'c0', name: 'the terminal' } });
        answer.resolve({ result: params.answeredBefore });
      };
    }
    this.#requests.add(request);
    for (const [client, role] of this.attached) if (role === 'controller') this.#sendRequest(request, client);
    const withdraw = (by) => {
      this.#requests.delete(request);
      this.#withdraw(request, { by });
    };
    return { answer: answer.promise, withdraw };
  }

  #sendRequest(request, client) {
    const id = client.request(request.method, request.params, (result) => request.settle(client, result));
    request.sent.set(client, id);
  }

  #withdraw(request, params, except) {
    for (const [client, id] of request.sent) if (client !== except) client.notify('$/cancelRequest', { id, ...params });
  }

  #presence() {
    for (const client of this.attached.keys()) {
      client.notify('session/presence', { sessionId: this.sessionId, clients: this.clients(client) });
    }
  }
}
