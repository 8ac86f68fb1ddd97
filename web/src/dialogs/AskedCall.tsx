// What the agent wants to do: command, files, changes, input.

import { Diff } from '../parts/Diff';
import { Json } from '../parts/Json';
import { diffsOf } from '../parts/toolContent';
import type { AskedTool } from '../rpc/types';
import { LongList } from '../text/LongList';
import { LongText } from '../text/LongText';

const MOST_CHANGES = 100;

interface Props {
  tool: AskedTool;
  command: string | null;
  paths: string[];
}

export function AskedCall({ tool, command, paths }: Props) {
  const diffs = diffsOf(tool.content);
  const isShown = command !== null || diffs.length > 0;
  return (
    <div className="asked">
      <p className="what">
        <LongText text={tool.title ?? tool.toolName} />
        {tool.kind && <span className="kind">{tool.kind}</span>}
      </p>
      <Json label="Command" value={command} />
      <LongList items={diffs} most={MOST_CHANGES} name="changes">
        {(block, index) => <Diff key={index} block={block} />}
      </LongList>
      {diffs.length === 0 && paths.length > 0 && <Json label="Files" value={paths.join('\n')} />}
      {!isShown && <Json label="Input" value={tool.input} />}
    </div>
  );
}
