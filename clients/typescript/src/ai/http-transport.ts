import { AcpipeError, type ErrorKind } from '../errors.js';
import { isObject, parse } from '../frame.js';
import type { ChatMessage } from '../message.js';
import type { Chunk } from '../protocol.js';
import type { Approval } from './open-requests.js';
import { turnOf } from './request.js';
import { readEvents } from './sse.js';
import { leavable, type Answer, type NextOptions, type ReconnectOptions, type SendOptions, type StoredMessages } from './transport.js';
import { isLast } from './turn-chunks.js';
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
  /** The message that a lost connection cut, by chat. */
  readonly #cut = new Map<string, string>();

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
      const cancelled = this.#post(this.#url(id, 'cancel'), { turnId }, headers);
      cancelled.catch(() => connection.abort(abortSignal.reason));
    });
    try {
      // acpipe has the messages before the last one.
      const request = { ...this.#options.body, ...body, id, messages: messages.slice(-1), messageId, trigger };
      const response = await this.#post(this.#api, request, headers, connection.signal);
      this.#cut.delete(id);
      const last = messages.at(-1);
      return this.#chunksOf(id, response, last?.role === 'assistant' ? last.id : undefined);
    } catch (error) {
      abortSignal?.throwIfAborted(); // a turn that was stopped before its first chunk
      throw error;
    }
  }

  /**
   * The running turn from its beginning. After a lost connection, the turn whose message was cut, also if it has ended
   * meanwhile: a message that looks complete is complete. Throws if this message is not stored.
   */
  async reconnectToStream<C = Chunk>({ chatId, headers }: ReconnectOptions): Promise<ReadableStream<C> | null> {
    const approvals = this.#options.body?.['approvals'] === 'inline' ? 'inline' : undefined;
    const message = this.#cut.get(chatId);
    const response = await this.#stream(chatId, { approvals, message }, { headers: this.#headers(headers) });
    if (response.status !== 204) return this.#chunksOf(chatId, response);
    this.#cut.delete(chatId);
    if (message === undefined) return null;
    throw new AcpipeError('messageNotFound', 'the end of the answer is not stored: the connection was lost, and acpipe does not have the message');
  }

  /** The running turn of a chat, else the next one: see `LiveTransport`. */
  async next<C = Chunk>(chatId: string, { approvals, signal }: NextOptions = {}): Promise<ReadableStream<C>> {
    const init = { headers: this.#headers(undefined), ...(signal && { signal }) };
    const response = await this.#stream(chatId, { approvals, wait: 'true' }, init);
    if (response.status === 204) throw new AcpipeError('methodNotFound', 'the server does not wait for the next turn: it is of an older version; update acpipe');
    return leavable(this.#chunksOf<C>(chatId, response), signal);
  }

  /** Reads the stored messages of a chat, without that of the running turn. */
  async messages(chatId: string): Promise<Message[]> {
    return (await this.stored(chatId)).messages;
  }

  /** Like `messages`, with the id of the running turn's message. */
  async stored(chatId: string): Promise<StoredMessages<Message>> {
    const response = await this.#fetch(this.#url(chatId, 'messages'), { headers: this.#headers(undefined) });
    return (await response.json()) as StoredMessages<Message>;
  }

  /** Deletes a chat with its messages; a running turn is cancelled before. Does nothing if there is no such chat. */
  async delete(chatId: string): Promise<void> {
    await this.#post(this.#url(chatId, 'delete'), {}, undefined);
  }

  /**
   * Cancels the running turn of a chat, whoever sent it; returns whether one ran. A stream of the turn then ends. If it has
   * ended before, at a permission request, call `addToolApprovalResponse` of the chat after it, for the end of the turn.
   */
  async cancel(chatId: string): Promise<boolean> {
    const response = await this.#post(this.#url(chatId, 'cancel'), {}, undefined);
    return ((await response.json()) as { cancelled: boolean }).cancelled;
  }

  /**
   * Answers a permission request, for example with one of the agent's options. Call `addToolApprovalResponse` of the chat
   * after it: the chat then continues with the rest of the answer. Returns `false` if the request is not open any more, for
   * example because another tab has answered it: the rest of the answer then has that decision.
   */
  approve(chatId: string, approval: Approval): Promise<boolean> {
    return this.#answer(chatId, 'approval', approval);
  }

  /**
   * Answers a question of the agent (`data-question`). Returns `false` if it is not open any more. Of a handler of your app,
   * this needs its option `questions`.
   */
  answer(chatId: string, answer: Answer): Promise<boolean> {
    return this.#answer(chatId, 'answer', answer);
  }

  async #answer(chatId: string, action: string, body: object): Promise<boolean> {
    const response = await this.#send(this.#url(chatId, action), this.#json(body, undefined));
    // Errors with a kind are JSON.
    if (response.status === 409 && !isJson(response)) return false;
    await check(response);
    return true;
  }

  #url(chatId: string, action: string): string {
    return `${this.#api}/${encodeURIComponent(chatId)}/${action}`;
  }

  #stream(chatId: string, query: Record<string, string | undefined>, init: RequestInit): Promise<Response> {
    const given = Object.entries(query).filter((entry): entry is [string, string] => entry[1] !== undefined);
    return this.#fetch(`${this.#url(chatId, 'stream')}${given.length > 0 ? `?${new URLSearchParams(given)}` : ''}`, init);
  }

  /** The chunks of a response. Records the message that the end of the connection cuts: a new one, or one that it continues. */
  #chunksOf<C>(chatId: string, response: Response, continued?: string): ReadableStream<C> {
    let message = continued;
    const seen = new TransformStream<Chunk, Chunk>({
      transform: (chunk, controller) => {
        if (chunk.type === 'start') message = chunk.messageId;
        if (isLast(chunk)) this.#cut.delete(chatId);
        controller.enqueue(chunk);
      },
    });
    const cut = (error: AcpipeError) => {
      if (error.kind === 'disconnected' && message !== undefined) this.#cut.set(chatId, message);
    };
    return chunksOf(response, seen, cut);
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

function chunksOf<C>(response: Response, seen: TransformStream<Chunk, Chunk>, failed: (error: AcpipeError) => void): ReadableStream<C> {
  const body = response.body ?? new ReadableStream<Uint8Array>({ start: (controller) => controller.close() });
  const chunks = failingAtError(readEvents(body).pipeThrough(seen)).getReader();
  const stream = new ReadableStream<Chunk>({
    async pull(controller) {
      try {
        const { done, value } = await chunks.read();
        if (done) controller.close();
        else controller.enqueue(value);
      } catch (error) {
        if (isAbort(error)) return controller.error(error);
        const failure = error instanceof AcpipeError ? error : lost(error);
        failed(failure);
        controller.error(failure);
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
