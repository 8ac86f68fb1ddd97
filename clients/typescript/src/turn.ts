// One prompt and its answer.
import { canContinue, type Acpipe } from './client.js';
import { ChunkLog, type Entry } from './chunk-log.js';
import { AcpipeError, invalidMessage, isKind } from './errors.js';
import type { Chunk, ExecuteParams, PromptParams, ReplayResult, TurnSummary, UserMessage } from './protocol.js';
import type { Session } from './session.js';

/** Time in which acpipe must notice that the connection of a turn is gone, so that another one can continue the turn. */
const TAKE_OVER_MS = 30_000;
const TAKE_OVER_PAUSE_MS = 100;

/** A running turn, as `session.running()` returns it. Its chunks can be read any number of times, from the first one. */
export class FollowedTurn implements AsyncIterable<Chunk> {
  readonly sessionId: string;
  /** Id of the turn; `undefined` for a turn of `execute`. */
  readonly turnId: string | undefined;
  /** Chunks with their numbers. */
  readonly log: ChunkLog;
  readonly #client: Acpipe;
  readonly #unsubscribe: () => void;

  /** Called by `session.running()`. `afterSeq` is the number of the last chunk before the turn, if it has begun. */
  constructor(client: Acpipe, sessionId: string, turnId: string | undefined, afterSeq?: number) {
    this.#client = client;
    this.log = new ChunkLog(afterSeq);
    this.sessionId = sessionId;
    this.turnId = turnId;
    this.#unsubscribe = client.on('session/chunk', (entry) => {
      if (entry.sessionId === sessionId && (turnId === undefined || entry.turnId === turnId)) this.log.push(entry);
    });
  }

  /** Cancels the turn; returns whether there was something to cancel. The turn still ends by itself. */
  async cancel(): Promise<boolean> {
    const { sessionId, turnId } = this;
    const { cancelled } = await this.#client.call('session/cancel', { sessionId, ...(turnId !== undefined && { turnId }) });
    return cancelled;
  }

  /** Reads the chunks; throws after the last one if the turn cannot be followed to its end. */
  async *[Symbol.asyncIterator](): AsyncGenerator<Chunk, void, undefined> {
    for await (const { chunk } of this.log.read()) yield chunk;
  }

  /**
   * The chunks as a stream for the AI SDK, such as for `createUIMessageStreamResponse`. A turn that failed ends with its
   * `error` chunk. The type of the chunks is that of the AI SDK's version where the stream is used.
   */
  stream<C = Chunk>(): ReadableStream<C> {
    const chunks = this[Symbol.asyncIterator]();
    return new ReadableStream<C>({
      pull: async (controller) => {
        try {
          const { done, value } = await chunks.next();
          if (done) controller.close();
          else controller.enqueue(value as C);
        } catch (error) {
          if (this.log.hasLastChunk) controller.close();
          else controller.error(error);
        }
      },
      cancel: async () => this.leave(),
    });
  }

  /** Called when a reader leaves before the end. */
  protected async leave(): Promise<void> {}

  /** Ends the log. */
  protected end(error?: unknown): void {
    this.#unsubscribe();
    this.log.end(error);
  }

  /** Ends the log when the promise settles. */
  endWith(done: Promise<unknown>): void {
    done.then(
      () => this.end(),
      (error: unknown) => this.end(error),
    );
  }
}

/** A turn of this client, as `session.prompt()` and `client.execute()` return it. */
export class Turn extends FollowedTurn {
  readonly #summary: Promise<TurnSummary>;

  constructor(
    client: Acpipe,
    ids: { sessionId: string; turnId: string | undefined },
    run: (log: ChunkLog) => Promise<TurnSummary>,
    signal: AbortSignal | undefined,
  ) {
    super(client, ids.sessionId, ids.turnId);
    const cancel = () => void this.leave();
    this.#summary = run(this.log)
      .then((summary) => {
        if (summary.isError) throw AcpipeError.ofTurn(summary);
        return summary;
      })
      .finally(() => signal?.removeEventListener('abort', cancel));
    this.endWith(this.#summary);
    if (signal?.aborted) cancel();
    else signal?.addEventListener('abort', cancel, { once: true });
  }

  /** Waits for the end of the turn. Rejects with an `AcpipeError` if the turn failed; its `summary` has the rest. */
  summary(): Promise<TurnSummary> {
    return this.#summary;
  }

  /** Waits for the end of the turn; returns the text of the answer. */
  async text(): Promise<string> {
    return (await this.#summary).text;
  }

  /** Reads the chunks; throws after the last one if the turn failed. Leaving the loop early cancels the turn. */
  override async *[Symbol.asyncIterator](): AsyncGenerator<Chunk, void, undefined> {
    try {
      for await (const { chunk } of this.log.read()) yield chunk;
    } finally {
      await this.leave();
    }
  }

  protected override async leave(): Promise<void> {
    if (this.log.hasEnded) return;
    await this.cancel().catch(() => {}); // the summary reports a lost connection
  }
}

/** A message of the user: text, or a `UIMessage` of the AI SDK. */
export type Message = UserMessage | { role: string; parts: unknown[] };

/** Options of a prompt. */
export type PromptOptions = Omit<PromptParams, 'message' | 'sessionId'> & {
  /** Cancels the turn. */
  signal?: AbortSignal;
};

/** Runs a turn in a session. If the connection is lost, the turn is continued on the next one. */
export function promptTurn(client: Acpipe, session: Session, message: Message, options: PromptOptions): Turn {
  client.warnIfUnanswered();
  const { signal, ...rest } = options;
  // With the id, a prompt that is sent again after a reconnect does not run again.
  const turnId = rest.turnId ?? crypto.randomUUID();
  const params = { ...rest, message: message as UserMessage, turnId, sessionId: session.id };
  const run = async (log: ChunkLog): Promise<TurnSummary> => {
    let takeOverEnd = 0;
    for (let isFirst = true; ; isFirst = false) {
      try {
        await session.refresh();
        if (!isFirst) await catchUpTurn(client, session.id, turnId, log);
        return await client.call('session/prompt', params);
      } catch (error) {
        if (canContinue(client, error)) {
          takeOverEnd = Date.now() + TAKE_OVER_MS;
          log.hold();
        } else if (isKind(error, 'busy') && Date.now() < takeOverEnd) {
          await new Promise((resolve) => setTimeout(resolve, TAKE_OVER_PAUSE_MS));
        } else {
          throw error;
        }
      }
    }
  };
  return new Turn(client, { sessionId: session.id, turnId }, run, signal);
}

/** Runs a turn in a session of its own. It cannot be continued after a lost connection, since nothing is stored. */
export function executeTurn(
  client: Acpipe,
  message: Message,
  options: Omit<ExecuteParams, 'message'> & { signal?: AbortSignal },
): Turn {
  client.warnIfUnanswered();
  const { signal, ...rest } = options;
  // The id is needed to cancel the call before its first chunk.
  const sessionId = rest.sessionId ?? `execute-${crypto.randomUUID()}`;
  const run = () => client.call('execute', { ...rest, message: message as UserMessage, sessionId });
  return new Turn(client, { sessionId, turnId: undefined }, run, signal);
}

/** Adds the stored chunks of a turn that the log misses; returns whether the turn runs. */
export async function catchUpTurn(client: Acpipe, sessionId: string, turnId: string, log: ChunkLog): Promise<boolean> {
  let isRunning = false;
  await log.catchUp(async function* () {
    const { running, lastSeq } = await client.call('session/attach', { sessionId });
    isRunning = running?.turnId === turnId;
    const afterSeq = log.lastSeq ?? (isRunning ? running!.afterSeq : undefined);
    // Without a number, the turn has not begun, or has ended: then its prompt is answered with all of its chunks.
    if (afterSeq === undefined) return log.dropHeld(lastSeq);
    for await (const entry of storedChunks(client, sessionId, afterSeq)) if (entry.turnId === turnId) yield entry;
  });
  return isRunning;
}

/** Reads the stored chunks of a session after a number. */
export async function* storedChunks(client: Acpipe, sessionId: string, afterSeq: number): AsyncGenerator<Entry, void, undefined> {
  for (let after: number | null = afterSeq; after !== null; ) {
    const page: ReplayResult = await client.call('session/replay', { sessionId, afterSeq: after });
    yield* page.entries as Entry[];
    if (page.next !== null && page.next <= after) throw invalidMessage('a page of `session/replay`', 'it does not advance');
    after = page.next;
  }
}
