import { canContinue, type Acpipe } from './client.js';
import { ChunkLog, type Entry } from './chunk-log.js';
import { AcpipeError, invalidMessage, isKind } from './errors.js';
import type { ChatMessage } from './message.js';
import type { EnsureParams, SessionResult } from './protocol.js';
import { catchUpTurn, FollowedTurn, promptTurn, storedChunks, type Message, type PromptOptions, type Turn } from './turn.js';

/** A conversation with an agent. */
export class Session {
  readonly #client: Acpipe;
  readonly #params: EnsureParams;
  #opened: SessionResult;
  #generation: number;

  /** Called by `client.session()`. */
  static async open(client: Acpipe, params: EnsureParams): Promise<Session> {
    return new Session(client, params, await ensure(client, params));
  }

  private constructor(client: Acpipe, params: EnsureParams, opened: SessionResult) {
    this.#client = client;
    // The id of the result: `default` becomes the id of the directory's session.
    this.#params = { ...params, sessionId: opened.sessionId };
    this.#opened = opened;
    this.#generation = client.generation;
  }

  get id(): string {
    return this.#opened.sessionId;
  }

  /** Result of the last opening: directory, agent, and the receipt of the restore. */
  get opened(): SessionResult {
    return this.#opened;
  }

  /** Sends a message to the agent; returns the turn, whose chunks can be read at once. */
  prompt(message: Message, options: PromptOptions = {}): Turn {
    return promptTurn(this.#client, this, message, options);
  }

  /** The turn that runs now, from its beginning: also one that another client began. */
  async running(): Promise<FollowedTurn | undefined> {
    const client = this.#client;
    const { running } = await client.call('session/attach', { sessionId: this.id });
    if (!running) return undefined;
    const turn = new FollowedTurn(client, this.id, running.turnId, running.afterSeq);
    turn.endWith(this.#follow(running.turnId, turn.log));
    return turn;
  }

  /**
   * Reads the chunks of all turns after a number: first stored ones, then live ones, also over a reconnect. Without
   * `afterSeq` it begins with the next chunk; 0 is the beginning of the session.
   */
  async *chunks({ afterSeq }: { afterSeq?: number } = {}): AsyncGenerator<Entry, void, undefined> {
    const client = this.#client;
    const sessionId = this.id;
    const { lastSeq } = await client.call('session/attach', { sessionId });
    const log = new ChunkLog(afterSeq ?? lastSeq);
    const catchUp = async () => {
      log.hold();
      await this.refresh();
      await log.catchUp(() => storedChunks(client, sessionId, log.lastSeq!));
    };
    const stops = [
      client.on('session/chunk', (entry) => entry.sessionId === sessionId && log.push(entry)),
      this.#onReconnect(catchUp, (error) => log.end(error)),
    ];
    try {
      await catchUp();
      yield* log.take();
    } finally {
      for (const stop of stops) stop();
    }
  }

  /** Reads all stored messages, as `UIMessage`s of the AI SDK. */
  messages<M = ChatMessage>(): Promise<M[]> {
    return allMessages<M>(this.#client, this.id);
  }

  /** Cancels the running turn, else the first queued prompt; returns whether there was something to cancel. */
  async cancel(): Promise<boolean> {
    return (await this.#client.call('session/cancel', { sessionId: this.id })).cancelled;
  }

  /** Closes the session and releases it for other processes. Its messages stay stored. */
  async close(): Promise<void> {
    await this.#client.call('session/close', { sessionId: this.id });
  }

  /** Opens the session again if the connection is another one: a restarted acpipe does not have it open. */
  async refresh(): Promise<void> {
    const generation = await this.#client.ready();
    if (this.#generation === generation) return;
    this.#opened = await ensure(this.#client, this.#params);
    this.#generation = generation;
  }

  /** Reads a running turn to its last chunk. */
  async #follow(turnId: string, log: ChunkLog): Promise<void> {
    const catchUp = async () => {
      log.hold();
      await this.refresh();
      const isRunning = await catchUpTurn(this.#client, this.id, turnId, log);
      if (isRunning || log.hasLastChunk) return;
      throw new AcpipeError('turnUnfinished', 'the end of the turn is not stored; acpipe ended during the turn');
    };
    const stops: Array<() => void> = [];
    try {
      await new Promise<void>((resolve, reject) => {
        stops.push(log.onChange(() => log.hasLastChunk && resolve()), this.#onReconnect(catchUp, reject));
        catchUp().catch((error: unknown) => canContinue(this.#client, error) || reject(error));
      });
    } finally {
      for (const stop of stops) stop();
    }
  }

  /** Runs `action` after every reconnect; calls `failed` if it fails, or if the client is closed. */
  #onReconnect(action: () => Promise<void>, failed: (error: unknown) => void): () => void {
    return this.#client.on('connection', (change) => {
      if (change.state === 'closed') failed(change.error);
      if (change.state !== 'connected') return;
      // If the connection is lost meanwhile, the next reconnect runs it again.
      action().catch((error: unknown) => canContinue(this.#client, error) || failed(error));
    });
  }
}

/** Opens a session. Starts the default agent if that is not done by opening it: the demo agent without a name. */
async function ensure(client: Acpipe, params: EnsureParams): Promise<SessionResult> {
  try {
    return await client.call('session/ensure', params);
  } catch (error) {
    if (!isKind(error, 'outOfOrder')) throw error;
  }
  await client.call('agent/connect', params.agent ? { agent: params.agent } : {});
  return client.call('session/ensure', params);
}

/** Reads all stored messages of a session. */
export async function allMessages<M>(client: Acpipe, sessionId: string): Promise<M[]> {
  const all: M[] = [];
  for (let more = true; more; ) {
    const after = (all.at(-1) as { id: string } | undefined)?.id;
    const page = await client.call('message/list', { sessionId, limit: 1000, ...(after !== undefined && { after }) });
    if (after !== undefined && (page.messages.at(-1) as { id: string } | undefined)?.id === after) throw invalidMessage('a page of `message/list`', 'it does not advance');
    for (const message of page.messages) all.push(message as M);
    more = page.more && page.messages.length > 0;
  }
  return all;
}
