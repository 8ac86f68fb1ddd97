import type { UIMessage } from 'ai';
import { clip } from '../text/LongText';
import { Parts } from './Parts';

interface Data {
  info?: { title?: string; description?: string };
  message?: UIMessage;
}

export function Subagent({ data: { info, message } }: { data: Data }) {
  return (
    <details className="subagent">
      <summary>Subagent: {clip(info?.title ?? info?.description ?? 'without a title')}</summary>
      <Parts parts={message?.parts ?? []} isRunning={false} />
    </details>
  );
}
