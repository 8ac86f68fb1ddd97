// Chats of the AI SDK over a client: each chat is a session.
import type { Acpipe } from '../client.js';
import { AcpipeError, invalid, isKind } from '../errors.js';
import type { AttachResult, Chunk, EnsureParams, ListSessionsParams, QuestionAnswer, RunningTurn, SessionInfo } from '../protocol.js';
import { allMessages } from '../session.js';
import { storedChunks, type FollowedTurn } from '../turn.js';
import { OpenRequests, type Approval } from './open-requests.js';
import { OpenBlocks } from './open-blocks.js';
import { actionOf, type ChatRequest, type ChatAction } from './request.js';
import { PromptWait } from './prompt-wait.js';
import { ofProcess } from './shared-client.js';
import { Step } from './step.js';
import type { StoredMessages } from './transport.js';
import { isLast, lazyStreamOf, notice, streamOf, turnChunks } from './turn-chunks.js';
import { errorChunks } from './turn-error.js';
import { TurnWait } from './turn-wait.js';

/** Parameters of a chat's session: its agent, directory and options. */
export type ChatSession = Omit<EnsureParams, 'sessionId'>;

/** A chat in a list. Without what is not for browsers, such as the command line of the agent. */
export type ChatInfo = Pick<SessionInfo, 'sessionId' | 'title' | 'agentName' | 'state' | 'activity' | 'createdAt' | 'updatedAt'>;

/** One page of chats: the answer of `GET …`. */
export interface ChatList {
  sessions: ChatInfo[];
  /** `cursor` of the next page. `null` on the last page. */
  nextCursor: string | null;
}

/** Time that the turns of a chat have to end before it is deleted. */
const DELETE_LIMIT_MS = 15_000;

/** Time after which a chat that is not stored is looked up again: another program can create it. */
const NEW_CHAT_MS = 1_000;

/** Number of messages before the last one in which the decision of a question is searched. */
const SEARCHED = 20;

interface StoredMessage {
  id: string;
  parts: Array<{ id?: string; data?: { reason?: string } }>;
}

type Approvals = ChatRequest['approvals'];

/** How a page follows a turn that runs. */
export interface ResumeOptions {
  approvals?: Approvals;
  /** Id of the message that the page has in part. */
  message?: string | undefined;
}

interface NextTurn {
  approvals: Approvals;
  wait: TurnWait;
  /** Number of the last chunk before the wait; `undefined` if the chat is not stored. */
  lastSeq: number | undefined;
  signal: AbortSignal;
  close(): void;
}

/** Chats of each client: transports and handlers of one client share its turns and questions. */
const CHATS = ofProcess('chats', () => new WeakMap<Acpipe, Chats>());

export class Chats {
  readonly #client: Acpipe;
  readonly #requests = new OpenRequests();
  /** Running turns by chat and turn. */
  readonly #turns = new Map<string, FollowedTurn>();
  /** Waits for the next turn, by chat. */
  readonly #waits = new Map<string, Set<TurnWait>>();

  static async of(client: Acpipe, { questions = false } = {}): Promise<Chats> {
    const chats = CHATS.get(client) ?? new Chats(client);
    CHATS.set(client, chats);
    await chats.handleRequests(questions);
    return chats;
  }

  private constructor(client: Acpipe) {
    this.#client = client;
  }

  // A method: private fields are those of one copy of the module.
  handleRequests(withQuestions: boolean): Promise<void> {
    return this.#requests.handle(this.#client, withQuestions);
  }

  /** Throws if a page reads chunks of another major version of the AI SDK than the client's. */
  checkMajor(major: string | undefined): void {
    if (major === undefined) return;
    const { chunkProfile } = this.#client.server;
    if (major === String(chunkProfile)) return;
    if (!['5', '6', '7'].includes(major)) throw invalid('x-ai-sdk-major must be 5, 6 or 7');
    throw invalid(`the page reads chunks of ai ${major}, but this client has chunkProfile ${chunkProfile}; start it with chunkProfile: ${major}`);
  }

  /** One page of chats. */
  async list(params: ListSessionsParams): Promise<ChatList> {
    const { sessions, nextCursor } = await this.#client.call('session/list', params);
    return { sessions: sessions.map(chatInfo), nextCursor };
  }

  /** Prompts the agent, or continues its turn with answers of the user. Resolves with the first chunk. */
  async send(request: ChatRequest, params: ChatSession): Promise<ReadableStream<Chunk>> {
    const action = actionOf(request);
    const { id, approvals } = request;
    if (action.type === 'continue') return this.#continue(id, params, action, approvals);
    const session = await this.#client.session({ ...params, sessionId: id });
    const { turnId, message } = action;
    const running = await this.#running(id, params);
    // A request that is sent again, for example after a broken connection, gets the same turn.
    const known = running?.turnId === turnId ? running : this.#turns.get(key(id, turnId));
    if (known) return streamOf(this.#chunks(known, turnId, 0, new Step(), approvals));
    const wait = new PromptWait(this.#client, id);
    // A user who writes a message instead of answering what the running turn asks does not want the call.
    const turn = this.#keep(id, session.prompt(message, { turnId, whenBusy: 'redirect' }));
    const stop = turn.log.onChange(() => {
      stop();
      wait.end();
    });
    return streamOf(this.#chunks(turn, turnId, 0, new Step(), approvals, wait));
  }

  /**
   * The running turn from its beginning; `null` if no turn runs. With the id of a message that a page has in part, the turn
   * of that message, also if it has ended; `null` if it is not stored.
   */
  async resume(id: string, params: ChatSession, { approvals, message }: ResumeOptions = {}): Promise<ReadableStream<Chunk> | null> {
    const running = await this.#attach(id);
    if (running === undefined) return null;
    const isRunning = running !== null && (message === undefined || message === running.messageId);
    const turn = isRunning ? await this.#running(id, params) : undefined;
    if (turn) return streamOf(this.#chunks(turn, turn.turnId!, 0, new Step(), approvals));
    if (message === undefined) return null;
    const chunks = this.#storedMessage(id, message);
    const first = await chunks.next();
    return first.done ? null : streamOf(withFirst(first.value, chunks));
  }

  /**
   * The running turn from its beginning, else the next one. It ends without a chunk if the chat is deleted. The caller sees
   * all turns that begin after it resolves.
   */
  async next(id: string, params: ChatSession, { approvals }: Pick<ResumeOptions, 'approvals'> = {}): Promise<ReadableStream<Chunk>> {
    const left = new AbortController();
    const wait = new TurnWait(this.#client, id, left.signal);
    const waits = this.#waits.get(id) ?? new Set();
    this.#waits.set(id, waits.add(wait));
    const close = () => {
      wait.close();
      waits.delete(wait);
      if (waits.size === 0 && this.#waits.get(id) === waits) this.#waits.delete(id);
    };
    try {
      const lastSeq = await this.#lastSeq(id);
      return lazyStreamOf(this.#nextTurn(id, params, { approvals, wait, lastSeq, signal: left.signal, close }), () => left.abort());
    } catch (error) {
      close();
      throw error;
    }
  }

  /** Stored messages, without that of the running turn, which `resume` streams. */
  async messages<Message>(id: string): Promise<StoredMessages<Message>> {
    const running = await this.#attach(id);
    if (running === undefined) return { messages: [], running: null };
    const all = (await unlessDeleted(allMessages<Message & { id: string }>(this.#client, id))) ?? [];
    return { messages: all.filter((message) => message.id !== running?.messageId), running: running?.messageId ?? null };
  }

  /** Deletes a chat with its messages, after the end of its turns. */
  async delete(id: string): Promise<void> {
    const until = Date.now() + DELETE_LIMIT_MS;
    for (;;) {
      try {
        await this.cancel(id);
        await this.#client.call('session/clear', { sessionId: id });
        for (const wait of this.#waits.get(id) ?? []) wait.end();
        return;
      } catch (error) {
        if (isKind(error, 'sessionNotFound')) return;
        if (!isKind(error, 'busy') || Date.now() > until) throw error;
      }
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }

  /** Cancels a turn, by default the running one; returns whether there was something to cancel. */
  async cancel(id: string, turnId?: string): Promise<boolean> {
    const params = { sessionId: id, ...(turnId !== undefined && { turnId }) };
    return (await this.#client.call('session/cancel', params)).cancelled;
  }

  /** Answers a permission request; returns whether it is open. */
  approve(id: string, approval: Approval): boolean {
    return this.#requests.approve(id, approval);
  }

  /** Answers a question; returns whether it is open. */
  answer(id: string, questionId: string, answer: QuestionAnswer): boolean {
    return this.#requests.answer(id, questionId, answer);
  }

  /** Who or what decided a question of the last messages, in words; `undefined` if it is unknown. */
  async decided(id: string, questionId: string): Promise<string | undefined> {
    if ((await this.#attach(id)) === undefined) return undefined;
    const { message } = await this.#client.call('message/last', { sessionId: id });
    const last = message as StoredMessage | null;
    if (!last) return undefined;
    const params = { sessionId: id, before: last.id, limit: SEARCHED };
    const { messages } = await this.#client.call('message/list', params);
    const parts = [...(messages as StoredMessage[]), last].flatMap((stored) => stored.parts);
    return parts.findLast((part) => part.id === questionId)?.data?.reason;
  }

  async #continue(
    id: string,
    params: ChatSession,
    { answers, position, parts }: ChatAction & { type: 'continue' },
    approvals: Approvals,
  ): Promise<ReadableStream<Chunk>> {
    const { turnId, afterSeq } = position;
    const turn = this.#turns.get(key(id, turnId)) ?? (await this.#running(id, params));
    if (turn?.turnId !== turnId) return streamOf(withLateAnswers(this.#stored(id, turnId, afterSeq), new Set(answers.map(({ approvalId }) => approvalId))));
    const step = new Step();
    step.continue(parts);
    const unused = new Set<string>();
    const drops = answers.map((answer) => {
      unused.add(answer.approvalId);
      return this.#requests.approveWhenOpen(id, answer, () => unused.delete(answer.approvalId));
    });
    const chunks = withLateAnswers(this.#chunks(turn, turnId, afterSeq, step, approvals), unused);
    return streamOf(
      (async function* () {
        try {
          yield* chunks;
        } finally {
          for (const drop of drops) drop();
        }
      })(),
    );
  }

  async *#nextTurn(id: string, params: ChatSession, { approvals, wait, lastSeq, signal, close }: NextTurn): AsyncGenerator<Chunk, void, undefined> {
    try {
      while (!signal.aborted && !wait.hasEnded) {
        const turn = await this.#running(id, params);
        const { turnId } = wait;
        if (wait.hasEnded) return;
        if (turn && (turnId === undefined || turn.turnId === turnId)) return yield* this.#chunks(turn, turn.turnId!, 0, new Step(), approvals);
        // A turn that was over before it could be followed.
        if (turnId !== undefined) return yield* this.#stored(id, turnId, lastSeq ?? 0);
        await wait.change(lastSeq === undefined ? NEW_CHAT_MS : undefined);
        // After a reconnect, the client is not attached any more.
        if (wait.turnId !== undefined) continue;
        const isNew = lastSeq === undefined;
        lastSeq = await this.#lastSeq(id);
        // A turn of another program may have ended: the page reads the messages.
        if (isNew && lastSeq !== undefined) return yield* this.#runningChunks(id, params, approvals);
      }
    } catch (error) {
      if (!isKind(error, 'sessionNotFound')) throw error; // deleted
    } finally {
      close();
    }
  }

  async *#runningChunks(id: string, params: ChatSession, approvals: Approvals): AsyncGenerator<Chunk, void, undefined> {
    const turn = await this.#running(id, params);
    if (turn) yield* this.#chunks(turn, turn.turnId!, 0, new Step(), approvals);
  }

  #chunks(turn: FollowedTurn, turnId: string, afterSeq: number, step: Step, approvals: Approvals, wait?: PromptWait) {
    const requests = approvals === 'inline' ? undefined : this.#requests;
    return turnChunks({ log: turn.log, turnId, afterSeq, step, requests, wait });
  }

  /** The rest of a turn that has ended. */
  async *#stored(id: string, turnId: string, afterSeq: number): AsyncGenerator<Chunk, void, undefined> {
    const blocks = new OpenBlocks();
    for await (const entry of storedChunks(this.#client, id, afterSeq)) {
      if (entry.turnId === turnId) yield* blocks.pass(entry.chunk);
    }
  }

  /** The turn of a stored message, from its beginning. */
  async *#storedMessage(id: string, messageId: string): AsyncGenerator<Chunk, void, undefined> {
    let turnId: string | null | undefined;
    for await (const { chunk, turnId: of } of storedChunks(this.#client, id, 0)) {
      if (turnId === undefined && chunk.type === 'start' && chunk.messageId === messageId) turnId = of;
      if (turnId === undefined || of !== turnId) continue;
      yield chunk;
      if (isLast(chunk)) return;
    }
    if (turnId === undefined) return;
    yield* errorChunks(new AcpipeError('turnUnfinished', 'the end of the turn is not stored; acpipe ended during the turn'));
  }

  /** The running turn of a chat: one of this process, or one that runs on in a daemon. */
  async #running(id: string, params: ChatSession): Promise<FollowedTurn | undefined> {
    const running = await this.#attach(id);
    if (!running) return undefined;
    const known = this.#turns.get(key(id, running.turnId));
    if (known) return known;
    const session = await this.#client.session({ ...params, sessionId: id });
    const turn = await unlessDeleted(session.running());
    return turn && this.#keep(id, turn);
  }

  /** The running turn as acpipe reports it; `undefined` if there is no such session. */
  async #attach(id: string): Promise<RunningTurn | null | undefined> {
    return (await this.#attached(id))?.running;
  }

  /** Number of the last chunk; `undefined` if there is no such session. */
  async #lastSeq(id: string): Promise<number | undefined> {
    return (await this.#attached(id))?.lastSeq;
  }

  #attached(id: string): Promise<AttachResult | undefined> {
    return unlessDeleted(this.#client.call('session/attach', { sessionId: id }));
  }

  #keep(id: string, turn: FollowedTurn): FollowedTurn {
    const name = key(id, turn.turnId!);
    this.#turns.set(name, turn);
    const stop = turn.log.onChange(() => {
      if (!turn.log.hasEnded) return;
      stop();
      if (this.#turns.get(name) === turn) this.#turns.delete(name);
    });
    return turn;
  }
}

/** A result; `undefined` if the chat does not exist, for example because it was deleted meanwhile. */
async function unlessDeleted<Result>(result: Promise<Result>): Promise<Result | undefined> {
  try {
    return await result;
  } catch (error) {
    if (isKind(error, 'sessionNotFound')) return undefined;
    throw error;
  }
}

async function* withFirst(first: Chunk, rest: AsyncGenerator<Chunk, void, undefined>): AsyncGenerator<Chunk, void, undefined> {
  yield first;
  yield* rest;
}

/** Adds a notice after each decision that came before the browser's answer. */
async function* withLateAnswers(chunks: AsyncIterable<Chunk>, unused: Set<string>): AsyncGenerator<Chunk, void, undefined> {
  for await (const chunk of chunks) {
    yield chunk;
    const { id, data } = chunk as { id?: string; data?: { reason?: unknown } };
    if (id === undefined || typeof data?.reason !== 'string' || !unused.delete(id)) continue;
    yield notice('warning', 'The answer came too late', data.reason);
  }
}

const key = (id: string, turnId: string) => JSON.stringify([id, turnId]);

function chatInfo({ sessionId, title, agentName, state, activity, createdAt, updatedAt }: SessionInfo): ChatInfo {
  return { sessionId, title, agentName, state, activity, createdAt, updatedAt };
}
