import type { UIMessage } from 'ai';
import { isToolUIPart } from 'ai';
import { clip } from '../text/LongText';

/** Complete paragraphs of a text; a text that still grows ends with an incomplete one. */
function paragraphs(text: string, isDone: boolean): string[] {
  const all = text.split(/\n{2,}/);
  return isDone ? all : all.slice(0, -1);
}

function lastSentence(messages: UIMessage[], isRunning: boolean): string {
  const last = messages.at(-1);
  if (last?.role !== 'assistant') return isRunning ? 'The agent works.' : '';
  for (const part of last.parts.toReversed()) {
    if (part.type === 'text') {
      const complete = paragraphs(part.text, !isRunning || part.state === 'done').at(-1);
      if (complete) return complete;
    }
    if (isToolUIPart(part)) return `Tool: ${part.title ?? ('toolName' in part ? part.toolName : part.type)}`;
  }
  return isRunning ? 'The agent works.' : '';
}

/**
 * Reads the answer to users of screen readers, a paragraph at a time: the list of messages itself would be read again
 * with every word.
 */
export function Announcer({ messages, isRunning }: { messages: UIMessage[]; isRunning: boolean }) {
  return (
    <div className="unseen" aria-live="polite" aria-atomic="true" data-announcer="">
      {clip(lastSentence(messages, isRunning))}
    </div>
  );
}
