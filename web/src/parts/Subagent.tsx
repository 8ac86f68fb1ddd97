import type { UIMessage } from 'ai';
import { MessageContext } from './context';
import { Part } from './Part';

interface Data {
  info?: { title?: string; description?: string };
  message?: UIMessage;
}

export function Subagent({ data: { info, message } }: { data: Data }) {
  const parts = message?.parts ?? [];
  return (
    <details className="subagent">
      <summary>Subagent: {info?.title ?? info?.description ?? 'without a title'}</summary>
      <MessageContext value={{ parts, isRunning: false }}>
        {parts.map((part, index) => (
          <Part key={index} part={part} isLast={false} />
        ))}
      </MessageContext>
    </details>
  );
}
