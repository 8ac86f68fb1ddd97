import { isToolUIPart, type UIMessage } from 'ai';
import { createContext, useContext } from 'react';

type Parts = UIMessage['parts'];

/** A data part of acpipe, whose data docs/reference/chunks.md describes. */
export interface DataPart {
  type: string;
  id?: string;
  data: any;
}

export function isDataPart(part: { type: string }): part is DataPart {
  return part.type.startsWith('data-');
}

/** The message that a part belongs to: a tool shows the terminals and permissions of its call. */
export interface MessageView {
  isRunning: boolean;
  /** Part of the bounds of Markdown that each text may use. */
  share: number;
  /** Terminals and permissions of each tool call. */
  ofCalls: Map<string, DataPart[]>;
  /** The last part of each plan. */
  plans: Map<string | undefined, DataPart>;
}

/** Parts of a message of which each text may use all bounds. With more, each has less, so that their sum is bounded. */
const FEW_PARTS = 8;

/** The share changes rarely while a message grows, since all texts are read again then. */
function shareOf(parts: number): number {
  return 4 ** -Math.ceil(Math.log(Math.max(1, parts / FEW_PARTS)) / Math.log(4));
}

export function viewOf(parts: Parts, isRunning: boolean): MessageView {
  const view: MessageView = { isRunning, share: shareOf(parts.length), ofCalls: new Map(), plans: new Map() };
  for (const part of parts) if (isToolUIPart(part)) view.ofCalls.set(part.toolCallId, []);
  for (const part of parts) {
    if (!isDataPart(part)) continue;
    const { type, id, data } = part as DataPart;
    if (type === 'data-terminal' || type === 'data-permission') view.ofCalls.get(data?.toolCallId)?.push(part);
    if (type === 'data-plan') view.plans.set(id, part);
  }
  return view;
}

export const MessageContext = createContext<MessageView>(viewOf([], false));

export function useMessage(): MessageView {
  return useContext(MessageContext);
}
