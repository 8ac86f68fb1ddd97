// acpipe's own parts. Terminals, permissions and questions of a tool call are shown with the call.

import { isToolUIPart } from 'ai';
import { Markdown } from '../markdown/Markdown';
import { isDataPart, useMessage, type DataPart } from './context';
import { Json } from './Json';
import { Permission } from './Permission';
import { Plan } from './Plan';
import { QuestionLine } from './QuestionLine';
import { Subagent } from './Subagent';
import { Terminal } from './Terminal';

function useBelongsToTool({ type, data }: DataPart): boolean {
  const { parts } = useMessage();
  const hasHome = type === 'data-terminal' || type === 'data-permission';
  return hasHome && parts.some((part) => isToolUIPart(part) && part.toolCallId === data.toolCallId);
}

function useIsLatestPlan(part: DataPart): boolean {
  const { parts } = useMessage();
  return parts.findLast((other) => isDataPart(other) && other.type === part.type && other.id === part.id) === part;
}

/** Text of a message that was sent into the running turn, or that the agent repeated. */
function userText(data: any): string {
  const content = data.message ?? data.content;
  if (typeof content === 'string') return content;
  if (typeof content?.text === 'string') return content.text;
  const parts: any[] = content?.parts ?? [];
  return parts.map((part) => part.text ?? '').join('\n');
}

export function Data({ part }: { part: DataPart }) {
  const belongsToTool = useBelongsToTool(part);
  const isLatest = useIsLatestPlan(part);
  if (belongsToTool) return null;
  const { type, id, data } = part;
  switch (type) {
    case 'data-plan':
      return isLatest ? <Plan data={data} /> : null;
    case 'data-terminal':
      return <Terminal data={data} />;
    case 'data-permission':
      return <Permission id={id ?? ''} data={data} />;
    case 'data-question':
      return <QuestionLine id={id ?? ''} data={data} />;
    case 'data-subagent':
      return <Subagent data={data} />;
    case 'data-user-message':
      return (
        <div className="steering">
          <Markdown text={userText(data)} />
        </div>
      );
    case 'data-compaction':
      return <p className="hint">The agent compacted its context.</p>;
    case 'data-recovery':
      return data.memory === 'lost' ? <p className="hint">The session came back without the agent’s memory of it.</p> : null;
    case 'data-structured-output':
      return <Json label="Answer" value={data} />;
    default:
      return null;
  }
}
