// discobot's agent interface, ACP generation, on acpipe. See docs/moving-from/discobot-acp.md.
import { check, Connection, DEFAULT_SESSION } from './discobot.mjs';

/** @typedef {import('./discobot.mjs').UIMessage} UIMessage */

export class AcpipeAgent extends Connection {
  #callbacks = new Map(); // id of a session → its update callback

  /**
   * @param {{command: string, args?: string[], cwd: string, env?: Record<string, string>, persistMessages?: boolean,
   *   chunkProfile?: 5 | 6 | 7}} options
   */
  constructor({ command, args = [], persistMessages = false, ...options }) {
    const persist = persistMessages ? 'always' : 'never';
    // A session that the agent no longer remembers begins without messages; acpipe archives the old ones.
    super({ command, args }, { ...options, serve: ['--persist', persist, '--on-new', 'clear'] });
  }

  /**
   * Sets the receiver of a session's chunks, or removes it with null.
   * @param {((chunk: import('./discobot.mjs').UIMessageChunk) => void) | null} callback
   */
  setUpdateCallback(callback, sessionId = DEFAULT_SESSION) {
    this.#callbacks.set(sessionId, callback);
  }

  /**
   * Runs a turn; resolves when it has ended. While another turn runs in the session, it rejects with the kind `busy`.
   * @param {UIMessage} message
   */
  async prompt(message, sessionId = DEFAULT_SESSION) {
    check(await this.call('session/prompt', { sessionId, message, whenBusy: 'reject' }));
  }

  async cancel(sessionId = DEFAULT_SESSION) {
    await this.find('session/cancel', { sessionId });
  }

  /**
   * Creates a session; rejects if it exists.
   * @param {string} sessionId
   */
  async createSession(sessionId) {
    await this.call('session/create', { sessionId, cwd: this.cwd });
  }

  /** @returns {Promise<UIMessage[]>} */
  getMessages(sessionId = DEFAULT_SESSION) {
    return this.messages(sessionId);
  }

  /** @param {UIMessage} message */
  async addMessage(message, sessionId = DEFAULT_SESSION) {
    await this.call('message/add', { sessionId, message });
  }

  /**
   * @param {string} messageId
   * @param {Partial<UIMessage>} message fields to replace
   */
  async updateMessage(messageId, message, sessionId = DEFAULT_SESSION) {
    await this.call('message/update', { sessionId, messageId, message });
  }

  /** @returns {Promise<UIMessage | undefined>} the last message of the assistant, also while it is streamed */
  async getLastAssistantMessage(sessionId = DEFAULT_SESSION) {
    return (await this.find('message/last', { sessionId }))?.message ?? undefined;
  }

  async clearMessages(sessionId = DEFAULT_SESSION) {
    await this.find('message/clear', { sessionId });
  }

  receive({ sessionId, chunk }) {
    const named = sessionId === this.defaultSession ? DEFAULT_SESSION : sessionId;
    this.#callbacks.get(named)?.(chunk);
  }
}

/**
 * The agent of the application: messages are stored unless PERSIST_MESSAGES is false.
 * @param {{agentCommand: string, agentArgs?: string[], agentCwd: string, persistMessages?: boolean}} options
 */
export function createAgent({ agentCommand, agentArgs, agentCwd, persistMessages = process.env.PERSIST_MESSAGES !== 'false' }) {
  return new AcpipeAgent({ command: agentCommand, args: agentArgs, cwd: agentCwd, persistMessages });
}
