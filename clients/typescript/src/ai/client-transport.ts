import type { Acpipe } from '../client.js';
import type { ChatMessage } from '../message.js';
import type { Chunk } from '../protocol.js';
import { Chats, type ChatSession } from './chats.js';
import { turnOf } from './request.js';
import type { ReconnectOptions, SendOptions } from './transport.js';
import { failingAtError } from './turn-error.js';

export interface ClientChatTransportOptions {
  /** Agent, directory and options of a chat. */
  session?: (chatId: string) => ChatSession;
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

  constructor(client: Acpipe, { session = () => ({}) }: ClientChatTransportOptions = {}) {
    this.#chats = Chats.of(client);
    this.#chats.catch(() => {}); // the methods report it
    this.#session = session;
  }

  async sendMessages<C = Chunk>({ chatId, messages, trigger, abortSignal }: SendOptions<Message>): Promise<ReadableStream<C>> {
    const chats = await this.#chats;
    // `stop()` cancels the turn, which ends with the chunk `abort`.
    abortSignal?.addEventListener('abort', () => void chats.cancel(chatId, turnOf({ messages, trigger })).catch(() => {}));
    const stream = await chats.send({ id: chatId, messages, trigger }, this.#session(chatId));
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
}
