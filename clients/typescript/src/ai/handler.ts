// Chat endpoints as a function from `Request` to `Response`, for Next, Hono and others.
import type { Acpipe } from '../client.js';
import { AcpipeError, invalid } from '../errors.js';
import type { ChatMessage } from '../message.js';
import type { ListSessionsParams } from '../protocol.js';
import { checkAnswer, checkApproval, checkApprovals, checkChat, checkFlag } from './check.js';
import { Chats, type ChatSession } from './chats.js';
import { LazyClient } from './shared-client.js';
import { eventStream } from './sse.js';

export interface ChatHandlerOptions {
  /** Path of the endpoints, or its end. Default: `/api/chat`, as that of `HttpChatTransport`. */
  api?: string;
  /**
   * Agent, directory and options of a chat. Called for each request: throw a `Response` to refuse one, for example if
   * the chat is not of this user.
   */
  session?: (chatId: string, request: Request) => ChatSession | Promise<ChatSession>;
  /**
   * Which sessions `GET …` lists, as `ChatInfo`s: filters such as `cwd`. Throw a `Response` to refuse. By default there is no
   * list, since it has the chats of all users.
   */
  list?: (request: Request) => ListSessionsParams | Promise<ListSessionsParams>;
  /** Whether the page answers questions of agents (`data-question`), with `POST …/ID/answer`. Default: `false`. */
  questions?: boolean;
}

/** Chat endpoints. */
export interface ChatHandler {
  (request: Request): Promise<Response>;
  /**
   * Reads the stored messages of a chat, without that of the running turn: for a page that the server renders. Does not call
   * `session`: check before whether the chat is of this user.
   */
  messages<Message = ChatMessage>(chatId: string): Promise<Message[]>;
  /**
   * Deletes a chat with its messages; a running turn is cancelled before. Does nothing if there is no such chat. Does not call
   * `session`.
   */
  delete(chatId: string): Promise<void>;
}

/** Status by kind of error; of others, the agent is the cause (502). */
const STATUS: Record<string, number> = {
  invalidParams: 400,
  invalidRequest: 400,
  invalidTool: 400,
  forbidden: 403,
  sessionNotFound: 404,
  messageNotFound: 404,
  methodNotFound: 404,
  busy: 409,
  sessionLocked: 409,
  sessionExists: 409,
  outOfOrder: 409,
  turnUnfinished: 409,
  cancelled: 409,
  internal: 500,
  storage: 500,
  overloaded: 503,
  disconnected: 503,
  acpipeExited: 503,
  binaryNotFound: 503,
  timeout: 504,
};

/**
 * Creates the chat endpoints of an app:
 *
 * | | |
 * |-|-|
 * | `POST …` | prompts the agent, or continues its turn with the user's approvals |
 * | `GET …/ID/stream` | the running turn from its beginning, or 204. `?wait=true`: else the next turn. `?message=ID`: the turn of this message, also if it has ended |
 * | `GET …/ID/messages` | `{messages, running}`: stored messages, without that of the running turn, whose id is `running` |
 * | `POST …/ID/cancel` | cancels the running turn, or `{turnId}` |
 * | `POST …/ID/delete` | deletes the chat with its messages |
 * | `POST …/ID/approval` | `{approvalId, approved, optionId?, reason?}` |
 * | `POST …/ID/answer` | `{questionId, action, content?}` |
 * | `GET …` | `{sessions, nextCursor}`: with the option `list` |
 *
 * Errors are `{kind, message, data}`. `POST …` and `GET …/ID/stream` answer with the message alone, which the AI SDK shows,
 * unless the request accepts JSON.
 *
 * The agent does what a request asks for. Check who the user is before you call the handler.
 *
 * @param client - A client, or a function that starts one: at the first request, and again if that failed or the client
 * was closed.
 */
export function createChatHandler(
  client: Acpipe | (() => Promise<Acpipe>),
  options: ChatHandlerOptions = {},
): ChatHandler {
  const { api = '/api/chat', session = () => ({}), list, questions = false } = options;
  const lazy = new LazyClient();
  const chats = async () => Chats.of(typeof client === 'function' ? await lazy.get(client) : client, { questions });
  const handler = async (request: Request) => {
    let endpoint: Endpoint | undefined;
    try {
      endpoint = endpointOf(request, api);
      return await handle(request, endpoint, chats, session, list);
    } catch (error) {
      if (error instanceof Response) return error;
      const isStream = endpoint?.name === 'POST chats' || endpoint?.name === 'GET stream';
      const wantsJson = !isStream || request.headers.get('accept')?.includes('application/json');
      return failure(error as AcpipeError, wantsJson ? 'json' : 'text');
    }
  };
  const messages = async <Message>(chatId: string) => (await (await chats()).messages<Message>(chatId)).messages;
  const remove = async (chatId: string) => (await chats()).delete(chatId);
  return Object.assign(handler, { messages, delete: remove });
}

interface Endpoint {
  /** Method and action, such as `GET messages`. */
  name: string;
  chatId?: string;
}

function endpointOf({ method, url }: Request, api: string): Endpoint {
  const path = new URL(url).pathname.replace(/\/$/, '');
  const [, base = path, id, action] = /^(.*)\/([^/]+)\/(stream|messages|cancel|delete|approval|answer)$/.exec(path) ?? [];
  // Only the end: the app can be below a path of its own.
  if (!base.endsWith(api)) throw notFound(`there is no ${method} ${path}; the chats are at ${api}, which the option api sets`);
  return id === undefined ? { name: `${method} chats` } : { name: `${method} ${action}`, chatId: decode(id) };
}

function decode(id: string): string {
  try {
    return decodeURIComponent(id);
  } catch {
    throw invalid(`the id of the chat, ${id}, is not a valid part of an address`);
  }
}

const notFound = (message: string) => new AcpipeError('methodNotFound', message);

async function handle(
  request: Request,
  { name, chatId }: Endpoint,
  open: () => Promise<Chats>,
  session: NonNullable<ChatHandlerOptions['session']>,
  list: ChatHandlerOptions['list'],
): Promise<Response> {
  const { pathname, searchParams } = new URL(request.url);
  switch (name) {
    case 'GET chats': {
      if (!list) throw notFound(`there is no ${request.method} ${pathname}: the option list of createChatHandler turns it on`);
      const { cwd, cursor, limit } = Object.fromEntries(searchParams);
      const query = { ...(cwd && { cwd }), ...(cursor && { cursor }), ...(limit && { limit: Number(limit) }) };
      const params = { ...query, ...(await list(request)) };
      return reply(await (await open()).list(params));
    }
    case 'POST chats': {
      const body = checkChat(await json(request));
      const params = await session(body.id, request);
      const chats = await open();
      chats.checkMajor(majorOf(request));
      return eventStream(await chats.send(body, params));
    }
    case 'GET stream': {
      const params = await session(chatId!, request);
      const approvals = checkApprovals(searchParams.get('approvals') ?? undefined);
      const chats = await open();
      chats.checkMajor(majorOf(request));
      if (checkFlag('wait', searchParams.get('wait'))) return eventStream(await chats.next(chatId!, params, { approvals }));
      const message = searchParams.get('message') ?? undefined;
      const stream = await chats.resume(chatId!, params, { approvals, message });
      return stream ? eventStream(stream) : new Response(null, { status: 204 });
    }
    case 'GET messages': {
      await session(chatId!, request);
      const chats = await open();
      chats.checkMajor(majorOf(request));
      return reply(await chats.messages(chatId!));
    }
    case 'POST cancel': {
      const { turnId } = (await optionalJson(request)) as { turnId?: string };
      await session(chatId!, request);
      return reply({ cancelled: await (await open()).cancel(chatId!, turnId) });
    }
    case 'POST delete': {
      await optionalJson(request);
      await session(chatId!, request);
      await (await open()).delete(chatId!);
      return reply({});
    }
    case 'POST approval': {
      const body = await json(request);
      await session(chatId!, request);
      const approval = checkApproval(body);
      const chats = await open();
      if (!chats.approve(chatId!, approval)) return notOpen(await chats.decided(chatId!, approval.approvalId));
      return reply({ approved: approval.approved });
    }
    case 'POST answer': {
      const body = await json(request);
      await session(chatId!, request);
      const { questionId, ...answer } = checkAnswer(body);
      const chats = await open();
      if (!chats.answer(chatId!, questionId, answer)) return notOpen(await chats.decided(chatId!, questionId));
      return reply({ action: answer.action });
    }
  }
  throw notFound(`there is no ${request.method} ${pathname}`);
}

const majorOf = (request: Request) => request.headers.get('x-ai-sdk-major') ?? undefined;

/** Reads a JSON body. A page of another site can post text, but not JSON without permission of the server. */
async function json(request: Request): Promise<object> {
  if (!request.headers.get('content-type')?.startsWith('application/json')) {
    throw badRequest(415, NO_JSON);
  }
  const body: unknown = await request.json().catch(() => undefined);
  if (typeof body !== 'object' || body === null) throw badRequest(400, 'the body is not a JSON object');
  return body;
}

/** Reads a JSON body that may be absent. */
async function optionalJson(request: Request): Promise<object> {
  if (request.headers.has('content-type')) return json(request);
  // A page of another site can send a request without a body.
  if (request.headers.get('sec-fetch-site') === 'cross-site') throw badRequest(403, 'a page of another site must send JSON');
  const body = await request.text();
  if (body !== '' && body !== '{}') throw badRequest(415, NO_JSON); // `{}`: Express 4 has it for a request without a body
  return {};
}

const NO_JSON = 'the body must be JSON; set the header content-type: application/json';

const badRequest = (status: number, message: string) => Response.json({ kind: 'invalidRequest', message, data: {} }, { status });

const notOpen = (reason: string | undefined) => {
  const known = reason === undefined ? ': it was answered, or its turn has ended' : ` any more: ${reason}`;
  return text(409, `this question is not open${known}`);
};

function failure({ message, kind, data }: AcpipeError, format: 'json' | 'text'): Response {
  // With a field, the request names an agent that does not exist; without, the program of an agent is not installed.
  const known = kind === 'agentNotFound' && data?.['field'] !== undefined ? 400 : STATUS[kind];
  const status = known ?? (kind === undefined ? 500 : 502);
  return format === 'text' ? text(status, message) : Response.json({ kind: kind ?? 'internal', message, data }, { status });
}

const text = (status: number, message: string) =>
  new Response(message, { status, headers: { 'content-type': 'text/plain; charset=utf-8' } });

const reply = (value: unknown) => Response.json(value, { headers: { 'cache-control': 'no-store' } });
