// The request of a chat, in the form in which the AI SDK sends it.
import { invalid } from '../errors.js';
import type { UiMessage } from '../protocol.js';
import type { Approval } from './open-requests.js';
import type { MessagePart } from './step.js';

/** The request of a chat. Only the last message is read: acpipe has the others. */
export interface ChatRequest {
  /** Id of the chat, which is the id of the session. */
  id: string;
  messages: unknown[];
  trigger?: string;
  /** `inline`: the stream stays open at a permission request; `nextRequest`: it ends, as `useChat` needs it. */
  approvals?: 'nextRequest' | 'inline';
}

/** Position in a turn at which a stream ended. */
export interface Position {
  turnId: string;
  afterSeq: number;
}

/** A message of the user, or answers to permission requests of the last message. */
export type ChatAction =
  | { type: 'prompt'; message: UiMessage; turnId: string }
  | { type: 'continue'; answers: Approval[]; position: Position; parts: MessagePart[] };

interface LastMessage {
  id?: string;
  role?: string;
  parts?: MessagePart[];
  metadata?: { acpipe?: Position };
}

/** Parses a request. */
export function actionOf({ id, messages, trigger }: ChatRequest): ChatAction {
  const last = (Array.isArray(messages) ? messages.at(-1) : undefined) as LastMessage | undefined;
  if (typeof id !== 'string' || id === '' || !last || !Array.isArray(last.parts)) {
    throw invalid('a chat needs an `id`, and `messages` whose last one is a UIMessage');
  }
  if (last.role === 'user') {
    // The id of the message: a request that is sent twice runs the turn once. A regenerated answer is a new turn.
    const turnId = trigger !== 'regenerate-message' && last.id ? last.id : crypto.randomUUID();
    return { type: 'prompt', message: last as UiMessage, turnId };
  }
  if (last.role === 'assistant') return continuation(last.parts, last.metadata?.acpipe);
  throw invalid(`the last message has the role "${last.role}"; it must be "user", or "assistant" with answered approvals`);
}

function continuation(parts: MessagePart[], position: Position | undefined): ChatAction {
  const answers = parts.flatMap(({ state, approval }): Approval[] => {
    if (state !== 'approval-responded' || approval?.approved === undefined) return [];
    const { id, approved, reason } = approval;
    return [{ approvalId: id, approved, ...(reason !== undefined && { reason }) }];
  });
  if (answers.length === 0) {
    throw invalid('the last message is of the assistant and answers no approval; send a message of the user');
  }
  if (typeof position?.turnId !== 'string' || typeof position.afterSeq !== 'number') {
    throw invalid('the last message has no `metadata.acpipe`, which the stream ended with; keep the metadata of messages');
  }
  return { type: 'continue', answers, position, parts };
}

/** The id of the turn that a request runs or continues; `undefined` if the request does not determine it. */
export function turnOf({ messages, trigger }: { messages: unknown[]; trigger: string }): string | undefined {
  const last = messages.at(-1) as LastMessage | undefined;
  if (last?.role === 'assistant') return last.metadata?.acpipe?.turnId;
  return trigger === 'regenerate-message' ? undefined : last?.id;
}
