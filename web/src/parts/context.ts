import type { UIMessage } from 'ai';
import { createContext, useContext } from 'react';

export interface MessageView {
  parts: UIMessage['parts'];
  isRunning: boolean;
}

export const MessageContext = createContext<MessageView>({ parts: [], isRunning: false });

/** The message that a part belongs to: a tool shows the terminals and permissions of its call. */
export function useMessage(): MessageView {
  return useContext(MessageContext);
}

/** A data part of acpipe, whose data docs/reference/chunks.md describes. */
export interface DataPart {
  type: string;
  id?: string;
  data: any;
}

export function isDataPart(part: { type: string }): part is DataPart {
  return part.type.startsWith('data-');
}
