// Types of the data parts of a chat's messages.
import type { CancelledPermissionOutcome, Chunk, OfferedOption, Recovery, SelectedPermissionOutcome, ToolState } from '../protocol.js';

/** Data of a part `data-permission`: a permission request of the agent and, once it is decided, the decision. */
export interface PermissionData {
  toolCallId: string;
  /** The tool call, as the agent describes it. Absent if the agent refused it by its own rules. */
  toolCall?: Pick<ToolState, 'title' | 'kind' | 'rawInput' | 'content'>;
  /** Ids of the open tool calls that the request covers, if the agent asks through a separate call. */
  standsFor?: string[];
  /** Possible answers, in the agent's order. */
  options: OfferedOption[];
  /** Whether the tool may run. Absent while the request is open. */
  approved?: boolean;
  /** The decision in a sentence. */
  reason?: string;
  /** Who or what decided. `message`: the user sent a new message instead of an answer; `otherClient`: a client of the daemon; `cancel` and `end`: the turn was cancelled or has ended. */
  by?: 'client' | 'message' | 'otherClient' | 'policy' | 'timeout' | 'agent' | 'cancel' | 'end';
  /** Rule of the policy that decided. */
  rule?: string;
  outcome?: Pick<SelectedPermissionOutcome, 'outcome' | 'optionId'> | CancelledPermissionOutcome;
  /** Reason of the user. */
  feedback?: string;
  /** Whether the agent received it. */
  feedbackDelivered?: boolean;
}

type DataChunk = Extract<Chunk, { type: `data-${string}` }>;
type NameOf<C extends DataChunk> = C['type'] extends `data-${infer Name}` ? Name : never;
type KnownData = { permission: PermissionData; recovery: Recovery };

/** Data parts of a chat, for the message type of the AI SDK: `UIMessage<unknown, ChatData>`. */
export type ChatData = Omit<{ [C in DataChunk as NameOf<C>]: C['data'] }, keyof KnownData> & KnownData;
