import { AcpipeError, type ErrorKind } from '../errors.js';
import { isObject, parse } from '../frame.js';
import type { ChatMessage } from '../message.js';
import type { Chunk } from '../protocol.js';
import type { Approval } from './open-requests.js';
import { turnOf } from './request.js';
import { readEvents } from './sse.js';
import type { ReconnectOptions, SendOptions } from './transport.js';
import { failingAtError } from './turn-error.js';

export interface HttpChatTransportOptions {
  /** Address of the endpoints: a route of your app, or `http://HOST:PORT/api/chat` of acpipe. Default: `/api/chat`. */
  api?: string;
  /** Token of acpipe, if the address is its own. */
  token?: string;
  /**
   * Major version of the AI SDK that reads the chunks. acpipe's own address then sends these chunks; a route of your app
   * refuses requests if its client has another `chunkProfile`. Default: the chunks are those of the daemon or the client.
   */
  major?: 7 | 6 | 5;
  /** Fields of each request's body, such as `agent` and `cwd` for acpipe's own address. */
  body?: Record<string, unknown>;
  headers?: Record<string, string>;
  credentials?: 'include' | 'omit' | 'same-origin';
  fetch?: typeof fetch;
}

/**
 * Transport of `useChat` to acpipe's chat endpoints. Unlike with `DefaultChatTransport`, `stop()` cancels the turn that this chat
 * has sent; `cancel` cancels any. A `ChatTransport` of every major version of the AI SDK: the type of the chunks is that of the
 * version where it is used.
 */
export class HttpChatTransport<Message extends ChatMessage = ChatMessage> {
  /** `reconnectToStream` sends the running turn from its beginning. */
  readonly resumeStreamIsReplay = true;
  readonly #options: HttpChatTransportOptions;
  readonly #api: string;

  constructor(options: HttpChatTransportOptions = {}) {
    this.#options = options;
    this.#api = options.api ?? '/api/chat';
  }

  async sendMessages<C = Chunk>(options: SendOptions<Message>): Promise<ReadableStream<C>> {
    const { chatId: id, messages, messageId, trigger, abortSignal, body, headers } = options;
    const turnId = turnOf({ messages, trigger });
    const connection = new AbortController();
    // `stop()`: the turn ends with the chunk `abort`. If acpipe cannot be reached, the request ends at least.
    abortSignal?.addEventListener('abort', () => {
      const cancelled = this.#post(`${this.#api}/${encodeURIComponent(id)}/cancel`, { turnId }, headers);
      cancelled.catch(() => connection.abort(abortSignal.reason));
    });
    try {
      // acpipe has the messages before the last one.
      const request = { ...this.#options.body, ...body, id, messages: messages.slice(-1), messageId, trigger };
      return chunksOf(await this.#post(this.#api, request, headers, connection.signal));
    } catch (error) {
      abortSignal?.throwIfAborted(); // a turn that was stopped before its first chunk
      throw error;
    }
  }

  async reconnectToStream<C = Chunk>({ chatId, headers }: ReconnectOptions): Promise<ReadableStream<C> | null> {
    const query = this.#options.body?.['approvals'] === 'inline' ? '?approvals=inline' : '';
    const response = await this.#fetch(`${this.#api}/${encodeURIComponent(chatId)}/stream${query}`, { headers: this.#headers(headers) });
    return response.status === 204 ? null : chunksOf(response);
  }

  /**
   * Cancels the running turn of a chat, whoever sent it; returns whether one ran. A stream of the turn then ends. If it has
   * ended before, at a permission request, call `addToolApprovalResponse` of the chat after it, for the end of the turn.
   */
  async cancel(chatId: string): Promise<boolean> {
    const response = await this.#post(`${this.#api}/${encodeURIComponent(chatId)}/cancel`, {}, undefined);
    return ((await response.json()) as { cancelled: boolean }).cancelled;
  }

  /**
   * Answers a permission request, for example with one of the agent's options. Call `addToolApprovalResponse` of the chat
   * after it: the chat then continues with the rest of the answer. Returns `false` if the request is not open any more, for
   * example because another tab has answered it: the rest of the answer then has that decision.
   */
  async approve(chatId: string, approval: Approval): Promise<boolean> {
    const response = await this.#send(`${this.#api}/${encodeURIComponent(chatId)}/approval`, this.#json(approval, undefined));
    // Errors with a kind are JSON.
    if (response.status === 409 && !isJson(response)) return false;
    await check(response);
    return true;
  }

  #post(url: string, body: unknown, headers: HeadersInit | undefined, signal?: AbortSignal): Promise<Response> {
    return this.#fetch(url, { ...this.#json(body, headers), ...(signal && { signal }) });
  }

  #json(body: unknown, more: HeadersInit | undefined): RequestInit {
    const headers = this.#headers(more);
    headers.set('content-type', 'application/json');
    return { method: 'POST', headers, body: JSON.stringify(body) };
  }

  #headers(more: HeadersInit | undefined): Headers {
    const { token, major, headers } = this.#options;
    const all = new Headers(headers);
    all.set('accept', 'text/event-stream, application/json'); // errors as JSON, with their kind
    if (token !== undefined) all.set('authorization', `Bearer ${token}`);
    if (major !== undefined) all.set('x-ai-sdk-major', String(major));
    new Headers(more).forEach((value, name) => all.set(name, value));
    return all;
  }

  async #fetch(url: string, init: RequestInit): Promise<Response> {
    const response = await this.#send(url, init);
    await check(response);
    return response;
  }

  async #send(url: string, init: RequestInit): Promise<Response> {
    const { fetch: send = fetch, credentials } = this.#options;
    try {
      return await send(url, { ...init, ...(credentials && { credentials }) });
    } catch (error) {
      init.signal?.throwIfAborted();
      throw new AcpipeError('disconnected', `cannot reach the server: ${reasonOf(error)}`);
    }
  }
}

/** Throws the error of a response. */
async function check(response: Response): Promise<void> {
  if (response.ok) return;
  const reason = (await response.text()).trim();
  if (isJson(response)) throw errorOf(reason);
  throw new Error(reason || `acpipe answered with the status ${response.status}, without a reason`);
}

const isJson = ({ headers }: Response) => headers.get('content-type')?.startsWith('application/json') ?? false;

function chunksOf<C>(response: Response): ReadableStream<C> {
  const body = response.body ?? new ReadableStream<Uint8Array>({ start: (controller) => controller.close() });
  const chunks = failingAtError(readEvents(body)).getReader();
  const stream = new ReadableStream<Chunk>({
    async pull(controller) {
      try {
        const { done, value } = await chunks.read();
        if (done) controller.close();
        else controller.enqueue(value);
      } catch (error) {
        controller.error(error instanceof AcpipeError || isAbort(error) ? error : lost(error));
      }
    },
    cancel: (reason) => chunks.cancel(reason),
  });
  return stream as ReadableStream<unknown> as ReadableStream<C>;
}

const isAbort = (error: unknown) => error instanceof Error && error.name === 'AbortError';

function lost(error: unknown): AcpipeError {
  const advice = 'the answer may go on: call resumeStream() of the chat';
  return new AcpipeError('disconnected', `the connection to the server was lost (${reasonOf(error)}); ${advice}`);
}

const reasonOf = (error: unknown) => (error instanceof Error ? error.message : String(error));

/** The error that a chat handler answers with; of another server, its body. */
function errorOf(body: string): Error {
  const value = parse(body);
  const { kind, message, data } = isObject(value) ? value : {};
  if (typeof kind !== 'string' || typeof message !== 'string') return new Error(body);
  return new AcpipeError(kind as ErrorKind, message, isObject(data) ? data : {});
}
