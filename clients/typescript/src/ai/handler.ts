// Chat endpoints as a function from `Request` to `Response`, for Next, Hono and others.
import type { Acpipe } from '../client.js';
import { AcpipeError } from '../errors.js';
import type { QuestionAnswer } from '../protocol.js';
import type { Approval } from './open-requests.js';
import { Chats, type ChatSession } from './chats.js';
import type { ChatRequest } from './request.js';
import { LazyClient } from './shared-client.js';
import { eventStream } from './sse.js';

export interface ChatHandlerOptions {
  /**
   * Agent, directory and options of a chat. Called for each request: throw a `Response` to refuse one, for example if
   * the chat is not of this user.
   */
  session?: (chatId: string, request: Request) => ChatSession | Promise<ChatSession>;
  /** Whether the page answers questions of agents (`data-question`), with `POST …/ID/answer`. Default: `false`. */
  questions?: boolean;
}

/** Status by kind of error; of others, the agent is the cause (502). */
const STATUS: Record<string, number> = {
  invalidParams: 400,
  invalidRequest: 400,
  invalidTool: 400,
  forbidden: 403,
  sessionNotFound: 404,
  messageNotFound: 404,
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
  binaryNotFound: 503,
  timeout: 504,
};

/**
 * Creates the chat endpoints of an app, at any path:
 *
 * | | |
 * |-|-|
 * | `POST …` | prompts the agent, or continues its turn with the user's approvals |
 * | `GET …/ID/stream` | the running turn from its beginning, or 204 |
 * | `GET …/ID/messages` | `{messages}`: stored messages |
 * | `POST …/ID/cancel` | cancels the running turn, or `{turnId}` |
 * | `POST …/ID/approval` | `{approvalId, approved, optionId?, reason?}` |
 * | `POST …/ID/answer` | `{questionId, action, content?}` |
 *
 * The agent does what a request asks for. Check who the user is before you call the handler.
 *
 * @param client - A client, or a function that starts one: at the first request, and again if that failed or the client
 * was closed.
 */
export function createChatHandler(
  client: Acpipe | (() => Promise<Acpipe>),
  options: ChatHandlerOptions = {},
): (request: Request) => Promise<Response> {
  const { session = () => ({}), questions = false } = options;
  const lazy = new LazyClient();
  const chats = async () => Chats.of(typeof client === 'function' ? await lazy.get(client) : client, { questions });
  return async (request) => {
    try {
      return await handle(request, chats, session);
    } catch (error) {
      if (error instanceof Response) return error;
      const { message, kind } = error as AcpipeError;
      return text(STATUS[kind] ?? (kind === undefined ? 500 : 502), message);
    }
  };
}

async function handle(
  request: Request,
  open: () => Promise<Chats>,
  session: NonNullable<ChatHandlerOptions['session']>,
): Promise<Response> {
  const url = new URL(request.url);
  const [, id, action] = /\/([^/]+)\/(stream|messages|cancel|approval|answer)\/?$/.exec(url.pathname) ?? [];
  const chatId = id && decodeURIComponent(id);
  switch (`${request.method} ${action ?? 'prompt'}`) {
    case 'POST prompt': {
      const body = (await json(request)) as ChatRequest & { id: string };
      const stream = await (await open()).send(body, await session(body.id, request));
      return eventStream(stream);
    }
    case 'GET stream': {
      const params = await session(chatId!, request);
      const isInline = url.searchParams.get('approvals') === 'inline';
      const stream = await (await open()).resume(chatId!, params, isInline ? 'inline' : 'nextRequest');
      return stream ? eventStream(stream) : new Response(null, { status: 204 });
    }
    case 'GET messages': {
      await session(chatId!, request);
      return reply({ messages: await (await open()).messages(chatId!) });
    }
    case 'POST cancel': {
      const { turnId } = (await json(request)) as { turnId?: string };
      await session(chatId!, request);
      return reply({ cancelled: await (await open()).cancel(chatId!, turnId) });
    }
    case 'POST approval': {
      const approval = (await json(request)) as Approval;
      await session(chatId!, request);
      if (!(await open()).approve(chatId!, approval)) return notOpen();
      return reply({ approved: approval.approved });
    }
    case 'POST answer': {
      const { questionId, ...answer } = (await json(request)) as QuestionAnswer & { questionId: string };
      await session(chatId!, request);
      if (!(await open()).answer(chatId!, questionId, answer)) return notOpen();
      return reply({ action: answer.action });
    }
  }
  return text(404, `there is no ${request.method} ${url.pathname}`);
}

/** Reads a JSON body. A page of another site can post text, but not JSON without permission of the server. */
async function json(request: Request): Promise<unknown> {
  if (!request.headers.get('content-type')?.startsWith('application/json')) {
    throw text(415, 'the body must be JSON; set the header content-type: application/json');
  }
  const body: unknown = await request.json().catch(() => undefined);
  if (typeof body !== 'object' || body === null) throw text(400, 'the body is not a JSON object');
  return body;
}

const notOpen = () => text(409, 'this question is not open: it was answered, or its turn has ended');

const text = (status: number, message: string) =>
  new Response(message, { status, headers: { 'content-type': 'text/plain; charset=utf-8' } });

const reply = (value: unknown) => Response.json(value, { headers: { 'cache-control': 'no-store' } });
