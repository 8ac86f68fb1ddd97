// Chooses the view of a part.

import { isToolUIPart, type UIMessage } from 'ai';
import { Markdown } from '../markdown/Markdown';
import { isDataPart, useMessage } from './context';
import { Data } from './Data';
import { File } from './File';
import { Reasoning } from './Reasoning';
import { Source } from './Source';
import { Tool } from './Tool';

type AnyPart = UIMessage['parts'][number];

export function Part({ part, isLast }: { part: AnyPart; isLast: boolean }) {
  const { isRunning } = useMessage();
  if (isToolUIPart(part)) return <Tool part={part} />;
  if (isDataPart(part)) return <Data part={part} />;
  switch (part.type) {
    case 'text':
      return <Markdown text={part.text} />;
    case 'reasoning':
      return <Reasoning text={part.text} isRunning={isRunning && isLast} />;
    case 'file':
    case 'reasoning-file':
      return <File url={part.url} mediaType={part.mediaType} name={'filename' in part ? part.filename : undefined} />;
    case 'source-url':
      return <Source title={part.title ?? part.url} url={part.url} />;
    case 'source-document':
      return <Source title={part.filename ?? part.title} url={null} />;
    default:
      return null;
  }
}
