import type { ChatTransport, UIMessage, UIMessageChunk } from 'ai';
import type { Acpipe } from '../client.js';
import { Chats, type ChatSession } from './chats.js';
import { turnOf } from './request.js';

type Send<Message extends UIMessage> = Parameters<ChatTransport<Message>['sendMessages']>[0];
type Reconnect = Parameters<ChatTransport<UIMessage>['reconnectToStream']>[0];

export interface ClientChatTransportOptions {
  /** Agent, directory and options of a chat. */
  session?: (chatId: string) => ChatSession;
}

/** Transport of `useChat` over a client in the same process: a terminal app, a desktop app, or a test. */
export class ClientChatTransport<Message extends UIMessage = UIMessage> implements ChatTransport<Message> {
  /** `reconnectToStream` sends the running turn from its beginning. */
  readonly resumeStreamIsReplay = true;
  readonly #chats: Promise<Chats>;
  readonly #session: (chatId: string) => ChatSession;

  constructor(client: Acpipe, { session = () => ({}) }: ClientChatTransportOptions = {}) {
    this.#chats = Chats.of(client);
    this.#chats.catch(() => {}); // the methods report it
    this.#session = session;
  }

  async sendMessages({ chatId, messages, trigger, abortSignal }: Send<Message>): Promise<ReadableStream<UIMessageChunk>> {
    const chats = await this.#chats;
    // `stop()` cancels the turn, which ends with the chunk `abort`.
    abortSignal?.addEventListener('abort', () => void chats.cancel(chatId, turnOf({ messages, trigger })).catch(() => {}));
    const stream = await chats.send({ id: chatId, messages, trigger }, this.#session(chatId));
    return stream as ReadableStream<UIMessageChunk>;
  }

  async reconnectToStream({ chatId }: Reconnect): Promise<ReadableStream<UIMessageChunk> | null> {
    const stream = await (await this.#chats).resume(chatId, this.#session(chatId));
    return stream as ReadableStream<UIMessageChunk> | null;
  }
}
