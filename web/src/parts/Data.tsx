// acpipe's own parts. Terminals, permissions and questions of a tool call are shown with the call.

import { Markdown } from '../markdown/Markdown';
import { useMessage, type DataPart } from './context';
import { Json } from './Json';
import { Permission } from './Permission';
import { Plan } from './Plan';
import { QuestionLine } from './QuestionLine';
import { Subagent } from './Subagent';
import { Terminal } from './Terminal';

/** Text of a message that was sent into the running turn, or that the agent repeated. */
function userText(data: any): string {
  const content = data.message ?? data.content;
  if (typeof content === 'string') return content;
  if (typeof content?.text === 'string') return content.text;
  const parts: any[] = content?.parts ?? [];
  return parts.map((part) => part.text ?? '').join('\n');
}

export function Data({ part }: { part: DataPart }) {
  const { ofCalls, plans } = useMessage();
  const { type, id, data } = part;
  if (ofCalls.get(data?.toolCallId)?.includes(part)) return null;
  switch (type) {
    case 'data-plan':
      return plans.get(id) === part ? <Plan data={data} /> : null;
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
