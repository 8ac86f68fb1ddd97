// Parameters of a `ChatTransport` of the AI SDK: of every major version.
import type { ChatMessage } from '../message.js';
import type { Chunk, QuestionAnswer } from '../protocol.js';
import type { Approval } from './open-requests.js';

/** Options of the request, which the AI SDK passes on from the app. */
export interface RequestOptions {
  headers?: Record<string, string> | Headers | undefined;
  body?: object | undefined;
  metadata?: unknown;
}

/** Parameter of `sendMessages`. */
export interface SendOptions<Message extends ChatMessage> extends RequestOptions {
  trigger: 'submit-message' | 'regenerate-message';
  chatId: string;
  messageId: string | undefined;
  messages: Message[];
  abortSignal: AbortSignal | undefined;
}

/** Parameter of `reconnectToStream`. */
export interface ReconnectOptions extends RequestOptions {
  chatId: string;
  abortSignal?: AbortSignal | undefined;
}

/** Options of `next`. */
export interface NextOptions {
  /** `inline`: the stream stays open at a permission request. */
  approvals?: 'inline' | undefined;
  /** Ends the wait. The turn goes on. */
  signal?: AbortSignal | undefined;
}

/** Answer of the user to a question of the agent. */
export type Answer = QuestionAnswer & { questionId: string };

/** Messages of a chat. */
export interface StoredMessages<Message = ChatMessage> {
  /** Stored messages, without that of the running turn. */
  messages: Message[];
  /** Id of the running turn's message, which a stream has. `null` if no turn runs. */
  running: string | null;
}

/** A transport that can follow the turns of other pages and clients: `HttpChatTransport` and `ClientChatTransport`. */
export interface LiveTransport<Message extends ChatMessage = ChatMessage> {
  sendMessages<C = Chunk>(options: SendOptions<Message>): Promise<ReadableStream<C>>;
  reconnectToStream<C = Chunk>(options: ReconnectOptions): Promise<ReadableStream<C> | null>;
  /**
   * The running turn of a chat from its beginning, else the next one. The stream ends without a chunk if the chat is deleted.
   * Resolves before the turn begins: what `messages` returns then has all turns that the stream does not have.
   */
  next<C = Chunk>(chatId: string, options?: NextOptions): Promise<ReadableStream<C>>;
  messages(chatId: string): Promise<Message[]>;
  stored(chatId: string): Promise<StoredMessages<Message>>;
  approve(chatId: string, approval: Approval): Promise<boolean>;
  answer(chatId: string, answer: Answer): Promise<boolean>;
  cancel(chatId: string): Promise<boolean>;
  delete(chatId: string): Promise<void>;
}

/** A stream that a signal ends, with an `AbortError`. */
export function leavable<C>(stream: ReadableStream<C>, signal: AbortSignal | undefined): ReadableStream<C> {
  if (!signal) return stream;
  const reader = stream.getReader();
  let leave = () => {};
  return new ReadableStream<C>({
    start(controller) {
      leave = () => {
        controller.error(new DOMException('the reader has left', 'AbortError'));
        reader.cancel().catch(() => {});
      };
      if (signal.aborted) leave();
      else signal.addEventListener('abort', leave, { once: true });
    },
    async pull(controller) {
      try {
        const { done, value } = await reader.read();
        if (signal.aborted) return;
        if (!done) return controller.enqueue(value);
        controller.close();
      } catch (error) {
        if (signal.aborted) return;
        controller.error(error);
      }
      signal.removeEventListener('abort', leave);
    },
    cancel(reason) {
      signal.removeEventListener('abort', leave);
      return reader.cancel(reason);
    },
  });
}
