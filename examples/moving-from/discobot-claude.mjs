// discobot's agent interface, Claude SDK generation, on acpipe. See docs/moving-from/discobot-claude.md.
import { randomUUID } from 'node:crypto';
import { check, Connection, DEFAULT_SESSION } from './discobot.mjs';

/** @typedef {import('./discobot.mjs').UIMessage} UIMessage */

/** Number of unread chunks of a turn from which acpipe is not read. */
const UNREAD = 1000;

export class AcpipeAgent extends Connection {
  #turns = new Map(); // id of a turn → its unread chunks, and what wakes its reader
  #calls = 0; // open calls but prompts

  /** @param {{cwd: string, model?: string, env?: Record<string, string>, chunkProfile?: 5 | 6 | 7}} options */
  constructor({ model, ...options }) {
    const session = model ? { model: model.replace(/^anthropic:/, '') } : {};
    super({ protocol: 'claude', options: session }, options);
  }

  /**
   * Runs a turn, and yields its chunks. A failed turn yields its `error` chunk and throws. A reader that stops cancels
   * the turn; one that is slow slows the agent down.
   * @param {UIMessage} message
   * @returns {AsyncGenerator<import('./discobot.mjs').UIMessageChunk, void>}
   */
  async *prompt(message, sessionId = DEFAULT_SESSION) {
    await this.ensureSession(sessionId);
    const turnId = randomUUID();
    const turn = { unread: [], wake: /** @type {(value?: unknown) => void} */ (() => {}) };
    this.#turns.set(turnId, turn);
    let ended;
    const end = (what) => {
      ended = what;
      turn.wake();
    };
    const answer = super.call('session/prompt', { sessionId, turnId, message });
    const done = answer.then((summary) => end({ summary }), (error) => end({ error }));
    try {
      for (;;) {
        while (turn.unread.length) yield turn.unread.shift();
        if (ended) break;
        const woken = new Promise((resolve) => (turn.wake = resolve));
        this.#flow();
        await woken;
      }
      if (ended.error) throw ended.error;
      check(ended.summary);
    } finally {
      this.#turns.delete(turnId);
      this.#flow();
      if (!ended) {
        await this.call('session/cancel', { sessionId, turnId });
        await done;
      }
    }
  }

  async cancel(sessionId = DEFAULT_SESSION) {
    await this.find('session/cancel', { sessionId });
  }

  /** @returns {Promise<Session | undefined>} */
  async getSession(sessionId = DEFAULT_SESSION) {
    const found = await this.find('session/get', { sessionId });
    return found && new Session(this, found.sessionId);
  }

  /**
   * Creates a session under an id of the caller; rejects if it exists.
   * @param {string} sessionId
   * @returns {Promise<Session>}
   */
  async createSession(sessionId) {
    const created = await this.call('session/create', { sessionId, cwd: this.cwd });
    return new Session(this, created.sessionId);
  }

  async call(method, params) {
    this.#calls += 1;
    this.#flow(); // the response is behind the unread chunks
    try {
      return await super.call(method, params);
    } finally {
      this.#calls -= 1;
    }
  }

  receive({ turnId, chunk }) {
    const turn = this.#turns.get(turnId);
    turn?.unread.push(chunk);
    turn?.wake();
    this.#flow();
  }

  /** Reads acpipe unless a turn has many unread chunks, and nobody waits for anything. */
  #flow() {
    const unread = [...this.#turns.values()].map((turn) => turn.unread.length);
    this.read(this.#calls > 0 || unread.includes(0) || !unread.some((count) => count > UNREAD));
  }
}

/** A session's messages. */
class Session {
  #agent;
  #id;

  constructor(agent, id) {
    this.#agent = agent;
    this.#id = id;
  }

  get id() {
    return this.#id;
  }

  /** @returns {Promise<UIMessage[]>} */
  getMessages() {
    return this.#agent.messages(this.#id);
  }

  async clearMessages() {
    await this.#agent.call('message/clear', { sessionId: this.#id });
  }
}

/**
 * The agent of the application.
 * @param {{cwd: string, model?: string, env?: Record<string, string>}} options
 */
export function createAgent({ cwd, model, env }) {
  return new AcpipeAgent({ cwd, model, env });
}
