import type { Acpipe } from '../client.js';
import type { ChatMessage } from '../message.js';
import type { Chunk } from '../protocol.js';
import { Chats, type ChatSession } from './chats.js';
import type { Approval } from './open-requests.js';
import { turnOf } from './request.js';
import { leavable, type Answer, type NextOptions, type ReconnectOptions, type SendOptions, type StoredMessages } from './transport.js';
import { failingAtError } from './turn-error.js';

export interface ClientChatTransportOptions {
  /** Agent, directory and options of a chat. */
  session?: (chatId: string) => ChatSession;
  /** Whether `answer` answers the questions of agents (`data-question`). Default: `false`. */
  questions?: boolean;
}

/**
 * Transport of `useChat` over a client in the same process: a terminal app, a desktop app, or a test. A `ChatTransport` of
 * every major version of the AI SDK: the type of the chunks is that of the version where it is used.
 */
export class ClientChatTransport<Message extends ChatMessage = ChatMessage> {
  /** `reconnectToStream` sends the running turn from its beginning. */
  readonly resumeStreamIsReplay = true;
  readonly #chats: Promise<Chats>;
  readonly #session: (chatId: string) => ChatSession;

  constructor(client: Acpipe, { session = () => ({}), questions = false }: ClientChatTransportOptions = {}) {
    this.#chats = Chats.of(client, { questions });
    this.#chats.catch(() => {}); // the methods report it
    this.#session = session;
  }

  async sendMessages<C = Chunk>({ chatId, messages, trigger, abortSignal, body }: SendOptions<Message>): Promise<ReadableStream<C>> {
    const chats = await this.#chats;
    // `stop()` cancels the turn, which ends with the chunk `abort`.
    abortSignal?.addEventListener('abort', () => void chats.cancel(chatId, turnOf({ messages, trigger })).catch(() => {}));
    const approvals = (body as { approvals?: 'inline' } | undefined)?.approvals;
    const stream = await chats.send({ id: chatId, messages, trigger, ...(approvals && { approvals }) }, this.#session(chatId));
    return failingAtError(stream) as ReadableStream<C>;
  }

  /** Cancels the running turn of a chat, whoever sent it; returns whether one ran. */
  async cancel(chatId: string): Promise<boolean> {
    return (await this.#chats).cancel(chatId);
  }

  async reconnectToStream<C = Chunk>({ chatId }: ReconnectOptions): Promise<ReadableStream<C> | null> {
    const stream = await (await this.#chats).resume(chatId, this.#session(chatId));
    return stream && (failingAtError(stream) as ReadableStream<C>);
  }

  /** The running turn of a chat, else the next one. See `LiveTransport`. */
  async next<C = Chunk>(chatId: string, { approvals, signal }: NextOptions = {}): Promise<ReadableStream<C>> {
    const stream = await (await this.#chats).next(chatId, this.#session(chatId), { approvals });
    return leavable(failingAtError(stream), signal) as ReadableStream<C>;
  }

  /** Reads the stored messages of a chat, without that of the running turn. */
  async messages(chatId: string): Promise<Message[]> {
    return (await this.stored(chatId)).messages;
  }

  /** Like `messages`, with the id of the running turn's message. */
  async stored(chatId: string): Promise<StoredMessages<Message>> {
    return (await this.#chats).messages<Message>(chatId);
  }

  /** Answers a permission request; returns whether it is open. */
  async approve(chatId: string, approval: Approval): Promise<boolean> {
    return (await this.#chats).approve(chatId, approval);
  }

  /** Answers a question of the agent; returns whether it is open. */
  async answer(chatId: string, { questionId, ...answer }: Answer): Promise<boolean> {
    return (await this.#chats).answer(chatId, questionId, answer);
  }

  /** Deletes a chat with its messages; a running turn is cancelled before. */
  async delete(chatId: string): Promise<void> {
    await (await this.#chats).delete(chatId);
  }
}
