// The client: calls, notifications, requests of acpipe, and the reconnect after a lost connection.
import { Connection, type Connector } from './connection.js';
import { Emitter } from './emitter.js';
import { AcpipeError, invalid, invalidMessage, isKind } from './errors.js';
import type { Id } from './frame.js';
import { PermissionRequest } from './permission.js';
import {
  protocolVersion,
  type ClientCapabilities,
  type EnsureParams,
  type ExecuteParams,
  type InitializeResult,
  type Methods,
  type Notifications,
  type PeerInfo,
  type PermissionAnswer,
  type QuestionAnswer,
  type QuestionParams,
  type Requests,
  type SessionInfo,
} from './protocol.js';
import { Session } from './session.js';
import { faultOfAnswer } from './shapes.js';
import { executeTurn, type Message, type Turn } from './turn.js';

/** Pauses between attempts to reconnect. The last one repeats. */
const PAUSES_MS = [50, 100, 250, 500, 1000, 2500, 5000];

/** Time after which a connection counts as stable: one that is lost earlier continues the series of pauses. */
const STABLE_MS = 10_000;

/** Time after which the client stops to reconnect. */
const GIVE_UP_MS = 60_000;

/** State of the connection. */
export type ConnectionState =
  | { state: 'connected' }
  /** The connection was lost; calls wait for the next one. */
  | { state: 'reconnecting'; error: AcpipeError }
  /** The client was closed, or could not reconnect. Calls fail. */
  | { state: 'closed'; error: AcpipeError };

/** Events of a client: the notifications of acpipe, and the state of the connection. */
export type Events = Notifications & { connection: ConnectionState };

/** Handles a request of acpipe. `signal` aborts when acpipe needs no answer any more. */
export type Handler<Method extends keyof Requests> = (
  params: Requests[Method]['params'],
  context: { signal: AbortSignal },
) => Requests[Method]['result'] | Promise<Requests[Method]['result']>;

export type Handlers = { [Method in keyof Requests]?: Handler<Method> };

/** Options of every client. */
export interface ClientOptions {
  /** Decides about the tool calls about which the policy asks. If it throws, the call is refused and the error printed. */
  onPermission?: (
    request: PermissionRequest,
    context: { signal: AbortSignal },
  ) => PermissionAnswer | Promise<PermissionAnswer>;
  /** Answers a question of the agent: a form, a plan to approve, an address to open. */
  onQuestion?: (question: QuestionParams, context: { signal: AbortSignal }) => QuestionAnswer | Promise<QuestionAnswer>;
  /** Handlers of other requests: files and terminals that this program serves to agents. */
  handlers?: Handlers;
  /** Form of the chunks: 7, 6 or 5, the major version of the AI SDK that reads them. */
  chunkProfile?: 7 | 6 | 5;
  /** Name and version of this program. */
  clientInfo?: PeerInfo;
}

/** Options of `Acpipe.open`. */
export interface OpenOptions extends ClientOptions {
  /** Process whose end ends acpipe. */
  processId?: number;
  /** Whether the default agent is the one that the caller chose. */
  hasAgent?: boolean;
  /** Policy that the caller chose. */
  permissions?: string | undefined;
}

type Call<Method extends keyof Methods> = Methods[Method]['params'];
/** Method that can be called without parameters. */
type MethodWithoutParams = { [Method in keyof Methods]: Partial<Call<Method>> extends Call<Method> ? Method : never }[keyof Methods];

/** A client of acpipe. `start` and `connect` create one. */
export class Acpipe {
  readonly #connector: Connector;
  readonly #options: OpenOptions;
  readonly #handlers = new Map<string, Handler<keyof Requests>>();
  readonly #requests = new Map<Id, AbortController>();
  readonly #emitter = new Emitter<Events>();
  #state: ConnectionState['state'] = 'connected';
  #connection: Promise<Connection>;
  /** The connection that is ready. */
  #current: Connection | undefined;
  #server: InitializeResult | undefined;
  #generation = 0;
  #hasWarned = false;
  #connectedAt = 0;
  /** Connections in a row that were lost soon. */
  #shortLived = 0;

  /** Opens a connection. `start` and `connect` call it. */
  static async open(connector: Connector, options: OpenOptions): Promise<Acpipe> {
    const client = new Acpipe(connector, options);
    await client.#connection;
    return client;
  }

  private constructor(connector: Connector, options: OpenOptions) {
    this.#connector = connector;
    this.#options = options;
    const { onPermission, onQuestion, handlers = {} } = options;
    for (const [method, handler] of Object.entries(handlers)) this.#handlers.set(method, handler as Handler<keyof Requests>);
    if (onPermission) {
      this.#add('permission/request', async (params, context) => {
        const answer = await onPermission(new PermissionRequest(params), context);
        if (typeof answer?.outcome === 'object') return answer;
        throw invalid('onPermission must return request.allow(), request.deny() or request.choose(…)');
      });
    }
    if (onQuestion) this.#add('question/ask', onQuestion);
    this.#connection = this.#connect();
  }

  /** Result of `initialize`: the version of acpipe and its default agent. */
  get server(): InitializeResult {
    return this.#server!;
  }

  /** State of the connection. */
  get state(): ConnectionState['state'] {
    return this.#state;
  }

  /** Number of the connection, which increases with every reconnect. */
  get generation(): number {
    return this.#generation;
  }

  /** Waits until the connection is ready; returns its number. */
  async ready(): Promise<number> {
    await this.#connection;
    return this.#generation;
  }

  /** Calls a method of the protocol. While the client reconnects, the call waits. */
  call<Method extends MethodWithoutParams>(method: Method, params?: Call<Method>): Promise<Methods[Method]['result']>;
  call<Method extends keyof Methods>(method: Method, params: Call<Method>): Promise<Methods[Method]['result']>;
  async call<Method extends keyof Methods>(method: Method, params?: Call<Method>): Promise<Methods[Method]['result']> {
    const caller = new Error().stack; // Bun's stacks end at an `await`
    const connection = await this.#connection;
    return (await connection.call(method, params ?? {}, caller)) as Methods[Method]['result'];
  }

  /** Adds a listener of notifications, or of the connection's state; returns a function that removes it. */
  on<Name extends keyof Events>(name: Name, listener: (value: Events[Name]) => void): () => void {
    return this.#emitter.on(name, listener);
  }

  /** Whether this client handles a request of acpipe. */
  handles(method: keyof Requests): boolean {
    return this.#handlers.has(method);
  }

  /** Warns once before a turn if the policy asks, but nothing in this program answers. */
  warnIfUnanswered(): void {
    const { permissions } = this.#options;
    if (this.#hasWarned || !['ask', 'reads'].includes(permissions ?? '') || this.handles('permission/request')) return;
    this.#hasWarned = true;
    const effect = 'tool calls are refused unless another client answers';
    const advice = 'pass onPermission to start, or prompt through createChatHandler';
    console.warn(`acpipe: permissions is "${permissions}", but this program answers no permission requests: ${effect}; ${advice}`);
  }

  /** Handles a request of acpipe from now on, and declares it to acpipe. */
  async handle<Method extends keyof Requests>(method: Method, handler: Handler<Method>): Promise<void> {
    const isDeclared = this.#handlers.has(method);
    this.#add(method, handler);
    if (!isDeclared) await this.#initialize(await this.#connection);
  }

  /**
   * Opens a session: with the `sessionId` of an earlier one that one, otherwise a new one. With `sessionId: 'default'`, it
   * is the session that `acpipe run -c` continues in the directory. A stored session is handed over to the agent that
   * `start` or `params` names.
   */
  session(params: EnsureParams = {}): Promise<Session> {
    const sessionId = params.sessionId ?? crypto.randomUUID();
    const agent = params.agent ?? (this.#options.hasAgent ? this.server.defaultAgent.name : undefined);
    return Session.open(this, { ...params, sessionId, ...(agent !== undefined && { agent }) });
  }

  /**
   * Lists the stored sessions, the newest first. The answers of `execute` are not among them.
   *
   * @param filter - `cwd`: only the sessions of this directory.
   */
  async *sessions(filter: Omit<Call<'session/list'>, 'cursor' | 'limit'> = {}): AsyncGenerator<SessionInfo> {
    let cursor: string | null | undefined;
    do {
      const page: Methods['session/list']['result'] = await this.call('session/list', { ...filter, ...(cursor && { cursor }) });
      yield* page.sessions;
      if (page.nextCursor === cursor && cursor) throw invalidMessage('a page of `session/list`', 'its cursor does not advance');
      cursor = page.nextCursor;
    } while (cursor);
  }

  /** Runs one turn without a conversation: nothing is stored. */
  execute(message: Message, options: Omit<ExecuteParams, 'message'> & { signal?: AbortSignal } = {}): Turn {
    return executeTurn(this, message, options);
  }

  /** Ends the connection. acpipe cancels the turns of a subprocess, stops its agents and exits. */
  async close(): Promise<void> {
    const last = this.#connection;
    this.#end(new AcpipeError('disconnected', 'the client was closed'));
    const connection = await last.catch(() => undefined);
    await connection?.close();
  }

  #add<Method extends keyof Requests>(method: Method, handler: Handler<Method>): void {
    this.#handlers.set(method, handler as unknown as Handler<keyof Requests>);
  }

  async #connect(): Promise<Connection> {
    const connection = await Connection.open(this.#connector, {
      notified: (method, params) => this.#notified(method, params),
      requested: (...request) => this.#requested(...request),
      closed: (error) => this.#lost(connection, error),
    });
    try {
      await this.#initialize(connection);
    } catch (error) {
      await connection.close();
      throw error;
    }
    this.#current = connection;
    this.#generation += 1;
    this.#connectedAt = Date.now();
    return connection;
  }

  async #initialize(connection: Connection): Promise<void> {
    const { chunkProfile, clientInfo, processId } = this.#options;
    const has = (method: keyof Requests) => this.#handlers.has(method);
    const capabilities: ClientCapabilities = {
      permissions: has('permission/request'),
      questions: has('question/ask'),
      fs: { readTextFile: has('fs/readTextFile'), writeTextFile: has('fs/writeTextFile') },
      terminal: has('terminal/create'),
    };
    const params: Call<'initialize'> = {
      protocolVersion,
      capabilities,
      ...(clientInfo && { clientInfo }),
      ...(chunkProfile !== undefined && { chunkProfile }),
      ...(processId !== undefined && { processId }),
    };
    this.#server = (await connection.call('initialize', params)) as InitializeResult;
  }

  /** Reconnects, unless the connection never was established or the client was closed. */
  #lost(connection: Connection, error: AcpipeError): void {
    for (const request of this.#requests.values()) request.abort(error);
    this.#requests.clear();
    // A connection that failed before it was ready is reported by the call that opened it.
    if (this.#current !== connection || this.#isClosed()) return;
    this.#current = undefined;
    if (error.kind === 'invalidMessage') return this.#end(error);
    this.#shortLived = Date.now() - this.#connectedAt < STABLE_MS ? this.#shortLived + 1 : 0;
    this.#connection = this.#reconnect(error);
    this.#connection.catch(() => {}); // calls report it
    this.#set({ state: 'reconnecting', error });
  }

  async #reconnect(lost: AcpipeError): Promise<Connection> {
    const giveUp = Date.now() + GIVE_UP_MS;
    for (let attempt = this.#shortLived; ; attempt += 1) {
      await pause(PAUSES_MS[Math.min(attempt, PAUSES_MS.length - 1)]!);
      if (this.#isClosed()) throw lost;
      try {
        const connection = await this.#connect();
        if (this.#isClosed()) {
          await connection.close();
          throw lost;
        }
        this.#set({ state: 'connected' });
        return connection;
      } catch (error) {
        if (this.#isClosed()) throw error;
        const isFinal = isKind(error, 'invalidMessage'); // another program in place of acpipe
        if (Date.now() < giveUp && !isFinal) continue;
        const last = error instanceof Error ? error.message : String(error);
        const ended = isFinal ? error : new AcpipeError('disconnected', `${lost.message}; cannot reconnect: ${last}`, lost.data);
        this.#end(ended);
        throw ended;
      }
    }
  }

  // A method: the compiler would assume that the state has not changed during a wait.
  #isClosed(): boolean {
    return this.#state === 'closed';
  }

  #end(error: AcpipeError): void {
    if (this.#isClosed()) return;
    const rejected = Promise.reject(error);
    rejected.catch(() => {}); // calls report it
    this.#connection = rejected;
    this.#set({ state: 'closed', error });
  }

  #set(state: ConnectionState): void {
    this.#state = state.state;
    this.#emitter.emit('connection', state);
  }

  #notified(method: string, params: unknown): void {
    if (method === '$/cancelRequest') {
      const { id } = params as { id: string };
      this.#requests.get(id)?.abort();
      this.#requests.delete(id);
    }
    this.#emitter.emit(method as keyof Notifications, params as Events[keyof Notifications]);
  }

  /** Handles a request of acpipe; returns why it is dropped. */
  #requested(connection: Connection, id: Id, method: string, params: unknown): string | undefined {
    // An answer would be that of the first one.
    if (this.#requests.has(id)) return `a request with the id ${JSON.stringify(id)} is open`;
    const handler = this.#handlers.get(method);
    if (!handler) {
      connection.refuse(id, -32601, `this client does not handle ${method}`);
      return undefined;
    }
    void this.#answer(connection, id, method, async (context) => handler(params as never, context));
    return undefined;
  }

  async #answer(connection: Connection, id: Id, method: string, handle: (context: { signal: AbortSignal }) => unknown): Promise<void> {
    const request = new AbortController();
    this.#requests.set(id, request);
    try {
      const result = await handle({ signal: request.signal });
      const fault = faultOfAnswer(method, result);
      if (fault !== undefined) throw invalid(`the handler must return the answer: ${fault}`);
      if (!request.signal.aborted) connection.respond(id, result ?? {});
    } catch (error) {
      if (request.signal.aborted) return; // nothing waits for the answer
      // acpipe refuses the call, so the fault would be seen nowhere else.
      console.error(`acpipe: the handler of ${method} failed`, error);
      connection.refuse(id, -32603, error instanceof Error ? error.message : String(error));
    } finally {
      if (this.#requests.get(id) === request) this.#requests.delete(id);
    }
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** Whether a call failed because its connection was lost, and the client can still reconnect. */
export function canContinue(client: Acpipe, error: unknown): boolean {
  return isKind(error, 'disconnected') && client.state !== 'closed';
}
