// Chats of the AI SDK over a client: each chat is a session.
import type { Acpipe } from '../client.js';
import { invalid, isKind } from '../errors.js';
import type { Chunk, EnsureParams, ListSessionsParams, QuestionAnswer, RunningTurn, SessionInfo } from '../protocol.js';
import { allMessages } from '../session.js';
import { storedChunks, type FollowedTurn } from '../turn.js';
import { OpenRequests, type Approval } from './open-requests.js';
import { OpenBlocks } from './open-blocks.js';
import { actionOf, type ChatRequest, type ChatAction } from './request.js';
import { PromptWait } from './prompt-wait.js';
import { ofProcess } from './shared-client.js';
import { Step } from './step.js';
import { notice, streamOf, turnChunks } from './turn-chunks.js';

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

/** Number of messages before the last one in which the decision of a question is searched. */
const SEARCHED = 20;

interface StoredMessage {
  id: string;
  parts: Array<{ id?: string; data?: { reason?: string } }>;
}

type Approvals = ChatRequest['approvals'];

/** Chats of each client: transports and handlers of one client share its turns and questions. */
const CHATS = ofProcess('chats', () => new WeakMap<Acpipe, Chats>());

export class Chats {
  readonly #client: Acpipe;
  readonly #requests = new OpenRequests();
  /** Running turns by chat and turn. */
  readonly #turns = new Map<string, FollowedTurn>();

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

  /** The running turn from its beginning; `null` if no turn runs. */
  async resume(id: string, params: ChatSession, approvals?: Approvals): Promise<ReadableStream<Chunk> | null> {
    const turn = await this.#running(id, params);
    return turn ? streamOf(this.#chunks(turn, turn.turnId!, 0, new Step(), approvals)) : null;
  }

  /** Stored messages, without that of the running turn, which `resume` streams. */
  async messages<Message>(id: string): Promise<Message[]> {
    const running = await this.#attach(id);
    if (running === undefined) return [];
    const all = await allMessages<Message & { id: string }>(this.#client, id);
    return all.filter((message) => message.id !== running?.messageId);
  }

  /** Deletes a chat with its messages, after the end of its turns. */
  async delete(id: string): Promise<void> {
    const until = Date.now() + DELETE_LIMIT_MS;
    for (;;) {
      try {
        await this.cancel(id);
        return void (await this.#client.call('session/clear', { sessionId: id }));
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

  /** The running turn of a chat: one of this process, or one that runs on in a daemon. */
  async #running(id: string, params: ChatSession): Promise<FollowedTurn | undefined> {
    const running = await this.#attach(id);
    if (!running) return undefined;
    const known = this.#turns.get(key(id, running.turnId));
    if (known) return known;
    const session = await this.#client.session({ ...params, sessionId: id });
    const turn = await session.running();
    return turn && this.#keep(id, turn);
  }

  /** The running turn as acpipe reports it; `undefined` if there is no such session. */
  async #attach(id: string): Promise<RunningTurn | null | undefined> {
    try {
      return (await this.#client.call('session/attach', { sessionId: id })).running;
    } catch (error) {
      if (isKind(error, 'sessionNotFound')) return undefined;
      throw error;
    }
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
