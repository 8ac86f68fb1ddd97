// What both generations of discobot's agent interface share: the connection, the environment, the sessions. Node 20+.
import { Acpipe } from '../acpipe.mjs';

/**
 * @typedef {Record<string, unknown> & {type: string}} UIMessageChunk a chunk of the AI SDK
 * @typedef {{id: string, role: string, parts: object[], metadata?: unknown}} UIMessage a message of the AI SDK
 * @typedef {Record<string, string | null>} Environment variables to set, or with null to unset
 */

export const DEFAULT_SESSION = 'default';

/** Agent of one directory, behind an `acpipe serve` of its own. */
export class Connection {
  #acpipe;
  #env;
  #state = 'disconnected';

  /**
   * @param {object} agent parameters of agent/connect
   * @param {{cwd: string, env?: Environment, chunkProfile?: 5 | 6 | 7, serve?: string[]}} options
   *   `chunkProfile` is the major version of the UI's AI SDK, `serve` are options of `acpipe serve`
   */
  constructor(agent, { cwd, env = {}, chunkProfile, serve = [] }) {
    this.agent = agent;
    this.cwd = cwd;
    this.chunkProfile = chunkProfile;
    this.serve = serve;
    this.#env = { ...env };
  }

  /** Starts the agent. */
  async connect() {
    if (!this.#acpipe) {
      const acpipe = new Acpipe(this.serve);
      this.#acpipe = acpipe;
      acpipe.on('agent/state', ({ state }) => (this.#state = state));
      acpipe.on('session/chunk', (params) => this.receive(params));
      acpipe.on('end', () => {
        if (this.#acpipe === acpipe) [this.#acpipe, this.#state] = [undefined, 'disconnected'];
      });
      await this.call('initialize', { protocolVersion: 1, chunkProfile: this.chunkProfile });
    }
    await this.call('agent/connect', { ...this.agent, cwd: this.cwd, env: this.#env });
  }

  /** Stops the agent. Its sessions and messages stay. */
  async disconnect() {
    if (this.#acpipe) await this.call('agent/disconnect');
  }

  /** Stops acpipe as well: Node can exit then. */
  async close() {
    if (this.#acpipe) await this.call('shutdown');
    this.#acpipe = undefined;
  }

  get isConnected() {
    return this.#state === 'ready';
  }

  /**
   * Changes the environment. A connected agent restarts when no turn runs, and its sessions are restored; otherwise the
   * change applies to the next connect.
   * @param {Environment} update
   */
  async updateEnvironment(update) {
    this.#env = { ...this.#env, ...update };
    if (this.#acpipe) await this.call('agent/updateEnvironment', { set: update });
  }

  /** @returns {Environment} a copy */
  getEnvironment() {
    return { ...this.#env };
  }

  /** Creates or restores a session. @returns {Promise<string>} its id */
  async ensureSession(sessionId = DEFAULT_SESSION) {
    const opened = await this.call('session/ensure', { sessionId, cwd: this.cwd });
    if (sessionId === DEFAULT_SESSION) this.defaultSession = opened.sessionId;
    return opened.sessionId;
  }

  /** Removes a session with its messages. A session that does not exist is cleared already. */
  async clearSession(sessionId = DEFAULT_SESSION) {
    await this.find('session/clear', { sessionId });
  }

  /** @returns {Promise<string[]>} ids of the directory's sessions */
  async listSessions() {
    const ids = [];
    for (let cursor; ; ) {
      const page = await this.call('session/list', { cwd: this.cwd, cursor });
      ids.push(...page.sessions.map((session) => session.sessionId));
      cursor = page.nextCursor;
      if (!cursor) return ids;
    }
  }

  /** @returns {Promise<UIMessage[]>} all messages of a session */
  async messages(sessionId = DEFAULT_SESSION) {
    const messages = [];
    for (let after; ; after = messages.at(-1).id) {
      const page = await this.find('message/list', { sessionId, after });
      messages.push(...(page?.messages ?? []));
      if (!page?.more) return messages;
    }
  }

  /** Calls a method of acpipe. */
  call(method, params = {}) {
    if (!this.#acpipe) return Promise.reject(new Error('not connected: call connect() first'));
    return this.#acpipe.call(method, params);
  }

  /** Calls a method about a session. @returns the result, or undefined if the session does not exist */
  async find(method, params) {
    try {
      return await this.call(method, params);
    } catch (error) {
      if (error.kind !== 'sessionNotFound') throw error;
    }
  }

  /** Handles a chunk; the agents override it. */
  receive(_notification) {}

  /** Continues or pauses to read what acpipe sends. acpipe slows the agent down meanwhile. */
  read(flows) {
    const stdout = this.#acpipe?.child.stdout;
    if (flows) stdout?.resume();
    else stdout?.pause();
  }
}

/** Throws the error of a turn that failed. Its chunks, and an error chunk, were delivered before. */
export function check(summary) {
  if (!summary.isError) return;
  const [{ kind, message, data }] = summary.errors;
  throw Object.assign(new Error(message), data, { kind, summary });
}
