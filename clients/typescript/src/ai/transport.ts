// Parameters of a `ChatTransport` of the AI SDK: of every major version.
import type { ChatMessage } from '../message.js';

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
