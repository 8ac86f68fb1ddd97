// A chat that shows what other pages and clients do.
import type { ChatMessage, ChatMessagePart } from '../message.js';
import type { Chunk } from '../protocol.js';
import { leavable, type LiveTransport, type ReconnectOptions, type SendOptions, type StoredMessages } from './transport.js';
import { isLast } from './turn-chunks.js';

/** Pauses between attempts to reach the server. The last one repeats. */
const PAUSES_MS = [250, 500, 1_000, 2_500, 5_000];

/** Pause before the next wait after one that ended without a turn. */
const EMPTY_MS = 250;

/** A chat of the AI SDK, as far as `LiveChat` needs it: an `AbstractChat` of every major version. */
export interface FollowedChat {
  readonly id: string;
  readonly status: string;
  readonly error: Error | undefined;
  messages: any[];
  resumeStream(): Promise<void>;
  stop(): Promise<void>;
  clearError(): void;
}

/** State of a `LiveChat` beside that of its chat. */
export interface LiveState {
  /** Whether the stored messages have been read. */
  isLoaded: boolean;
  /** Why the server cannot be reached; `undefined` if it can. `LiveChat` tries again. */
  error: Error | undefined;
}

/**
 * Makes a chat of the AI SDK show the turns of other pages and clients while they run, and the stored messages. `useAcpipeChat`
 * of `acpipe/react` is this for React; other frameworks create their chat with `transport`, then call `follow`.
 *
 * Permission requests and questions do not end a stream: answer them with `approve` and `answer` of the transport that was
 * passed in.
 */
export class LiveChat<Message extends ChatMessage = ChatMessage> {
  /** Transport for the chat. */
  readonly transport: {
    readonly resumeStreamIsReplay: true;
    sendMessages<C = Chunk>(options: SendOptions<Message>): Promise<ReadableStream<C>>;
    reconnectToStream<C = Chunk>(options: ReconnectOptions): Promise<ReadableStream<C> | null>;
  };
  readonly #inner: LiveTransport<Message>;
  readonly #onChange: (state: LiveState) => void;
  #state: LiveState = { isLoaded: false, error: undefined };
  #chat: FollowedChat | undefined;
  /** Requests of this page that have not ended, with their streams. */
  #own = 0;
  /** Called when the last one has ended. */
  #idle: () => void = () => {};
  /** The wait for the next turn. */
  #wait: AbortController | undefined;
  /** The stream that the chat resumes. */
  #next: ReadableStream<Chunk> | undefined;
  /** Whether messages of the chat lack their end. */
  #isStale = false;
  /** Id of the last message whose stream had its last chunk. For a moment, its turn still counts as running. */
  #complete: string | undefined;

  /** `onChange` is called with each new state. */
  constructor(transport: LiveTransport<Message>, onChange: (state: LiveState) => void = () => {}) {
    this.#inner = transport;
    this.#onChange = onChange;
    this.transport = {
      resumeStreamIsReplay: true,
      sendMessages: (options) => this.#send(options),
      reconnectToStream: (options) => this.#reconnect(options),
    };
  }

  /** Reads the stored messages, then follows the turns; returns a function that ends it. The turns go on. */
  follow(chat: FollowedChat): () => void {
    const end = new AbortController();
    this.#chat = chat;
    void this.#follow(chat, end.signal);
    return () => {
      end.abort();
      this.#wait?.abort();
      this.#idle();
    };
  }

  /** Leaves a running stream without cancelling its turn, so that the chat can send a message. */
  async leave(): Promise<void> {
    if (this.#chat?.status !== 'streaming' && this.#chat?.status !== 'submitted') return;
    this.#isStale = true;
    await this.#chat.stop();
  }

  /** Deletes the chat with its messages; a running turn is cancelled before. Other pages show it empty. */
  async delete(): Promise<void> {
    const chat = this.#chat;
    if (!chat) return;
    await this.leave(); // the end of the turn would come back
    this.#own += 1;
    this.#wait?.abort();
    try {
      await this.#inner.delete(chat.id);
      chat.messages = [];
    } finally {
      this.#ended();
    }
  }

  async #follow(chat: FollowedChat, end: AbortSignal): Promise<void> {
    for (let failures = 0; !end.aborted; ) {
      await this.#untilIdle(end);
      if (end.aborted) return;
      const wait = (this.#wait = new AbortController());
      try {
        const isEmpty = await this.#followTurn(chat, wait.signal);
        failures = 0;
        if (isEmpty) await pause(EMPTY_MS, wait.signal);
      } catch (error) {
        if (wait.signal.aborted) continue;
        this.#set({ error: error instanceof Error ? error : new Error(String(error)) });
        await pause(PAUSES_MS[Math.min(failures, PAUSES_MS.length - 1)]!, wait.signal);
        failures += 1;
      }
    }
  }

  /** Waits for a turn and shows it; returns whether the wait ended without one. */
  async #followTurn(chat: FollowedChat, signal: AbortSignal): Promise<boolean> {
    // The wait first, so that what is stored until then and what the stream has are all.
    const stream = await this.#inner.next(chat.id, { approvals: 'inline', signal });
    const reader = stream.getReader();
    if (!(await this.#load(chat, signal))) return false;
    this.#set({ isLoaded: true, error: undefined });
    const { done, value: first } = await reader.read();
    if (done) this.#isStale = true; // deleted, or closed
    // The message that prompted the turn is stored now. The stream has its answer from the beginning.
    const answer = first?.type === 'start' ? first.messageId : undefined;
    if (answer !== undefined && answer === this.#complete && answer === chat.messages.at(-1)?.id && !this.#isStale) {
      await reader.cancel();
      return true;
    }
    if (!(await this.#load(chat, signal, answer)) || done) return done;
    this.#next = this.#observed(withFirst(first, reader));
    await chat.resumeStream();
    if (chat.status === 'error') this.#isStale = true;
    return false;
  }

  /**
   * Reads the stored messages, and shows them if the chat does not have them. Returns whether the wait goes on.
   *
   * @param answer - Id of the message that a stream will have.
   */
  async #load(chat: FollowedChat, signal: AbortSignal, answer?: string): Promise<boolean> {
    const stored = await this.#inner.stored(chat.id);
    if (signal.aborted) return false;
    this.#show(chat, stored, answer);
    return true;
  }

  #show(chat: FollowedChat, { messages: stored, running }: StoredMessages<Message>, answer?: string): void {
    const shown = stored.filter(({ id }) => id !== answer);
    // A message that could not be sent stays, so that the user can send it again.
    const last: Message | undefined = chat.messages.at(-1);
    const isUnsent = chat.status === 'error' && last?.role === 'user' && !stored.some(({ id }) => id === last.id);
    const isComplete = last !== undefined && last.id === this.#complete && last.id === running;
    if (isUnsent || isComplete) shown.push(last);
    const isSame = shown.length === chat.messages.length && shown.every(({ id }, index) => chat.messages[index].id === id);
    if (isSame && !this.#isStale) return;
    chat.messages = shown;
    this.#isStale = false;
    // The lost connection lost nothing.
    if (!isUnsent && chat.status === 'error' && isLost(chat.error)) chat.clearError();
  }

  async #send<C>({ abortSignal, ...options }: SendOptions<Message>): Promise<ReadableStream<C>> {
    this.#own += 1;
    this.#wait?.abort();
    try {
      const body = { ...options.body, approvals: 'inline' };
      // Without the signal: to leave a stream does not cancel its turn.
      const stream = await this.#inner.sendMessages({ ...options, body, abortSignal: undefined });
      // The turn that this page left has ended.
      const chat = this.#chat;
      if (this.#isStale && chat) this.#show(chat, await this.#inner.stored(options.chatId));
      return this.#tracked(leavable(this.#observed(stream), abortSignal)) as ReadableStream<unknown> as ReadableStream<C>;
    } catch (error) {
      this.#isStale = true;
      this.#ended();
      throw error;
    }
  }

  async #reconnect<C>(options: ReconnectOptions): Promise<ReadableStream<C> | null> {
    const stream = this.#next;
    this.#next = undefined;
    const resumed = stream ?? (await this.#inner.reconnectToStream(options));
    return resumed && (leavable(resumed, options.abortSignal) as ReadableStream<unknown> as ReadableStream<C>);
  }

  /** A stream whose end is recorded. */
  #observed(stream: ReadableStream<Chunk>): ReadableStream<Chunk> {
    let message: string | undefined;
    return stream.pipeThrough(
      new TransformStream<Chunk, Chunk>({
        transform: (chunk, controller) => {
          if (chunk.type === 'start') message = chunk.messageId;
          if (isLast(chunk)) this.#complete = message;
          controller.enqueue(chunk);
        },
      }),
    );
  }

  /** A stream of this page, until whose end no turn is awaited. */
  #tracked(stream: ReadableStream<Chunk>): ReadableStream<Chunk> {
    const reader = stream.getReader();
    let hasEnded = false;
    const end = (isStale: boolean) => {
      if (hasEnded) return;
      hasEnded = true;
      this.#isStale ||= isStale;
      this.#ended();
    };
    return new ReadableStream<Chunk>({
      async pull(controller) {
        try {
          const { done, value } = await reader.read();
          if (!done) return controller.enqueue(value);
          controller.close();
          end(false);
        } catch (error) {
          controller.error(error);
          end(true);
        }
      },
      cancel(reason) {
        end(true);
        return reader.cancel(reason);
      },
    });
  }

  #ended(): void {
    this.#own -= 1;
    if (this.#own === 0) this.#idle();
  }

  async #untilIdle(end: AbortSignal): Promise<void> {
    while (this.#own > 0 && !end.aborted) await new Promise<void>((resolve) => (this.#idle = resolve));
    // The chat handles the end of its stream first.
    await pause(0, end);
  }

  #set(state: Partial<LiveState>): void {
    const next = { ...this.#state, ...state };
    if (next.isLoaded === this.#state.isLoaded && next.error === this.#state.error) return;
    this.#state = next;
    this.#onChange(next);
  }
}

/** Permission request or question that waits for the user. */
export interface OpenRequest {
  kind: 'permission' | 'question';
  /** Id for `approve` or `answer`. */
  id: string;
  /** Data of the part `data-permission` or `data-question`. */
  data: any;
}

/** The permission requests and questions of a chat that nothing has answered. */
export function openRequests(messages: ReadonlyArray<{ role: string; parts: ReadonlyArray<ChatMessagePart> }>): OpenRequest[] {
  const last = messages.at(-1);
  if (last?.role !== 'assistant') return [];
  return last.parts.flatMap(({ type, id, data }): OpenRequest[] => {
    if (type === 'data-permission' && data?.approved === undefined) return [{ kind: 'permission', id, data }];
    if (type === 'data-question' && data?.action === undefined) return [{ kind: 'question', id, data }];
    return [];
  });
}

const isLost = (error: unknown) => (error as { kind?: unknown } | undefined)?.kind === 'disconnected';

function withFirst(first: Chunk, reader: ReadableStreamDefaultReader<Chunk>): ReadableStream<Chunk> {
  return new ReadableStream<Chunk>({
    start: (controller) => controller.enqueue(first),
    async pull(controller) {
      try {
        const { done, value } = await reader.read();
        if (done) controller.close();
        else controller.enqueue(value);
      } catch (error) {
        controller.error(error);
      }
    },
    cancel: (reason) => reader.cancel(reason),
  });
}

/** Waits for a time, or until the signal. */
function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(done, ms);
    function done(): void {
      clearTimeout(timer);
      signal.removeEventListener('abort', done);
      resolve();
    }
    if (signal.aborted) done();
    else signal.addEventListener('abort', done);
  });
}
