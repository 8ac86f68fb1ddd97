// A tool call: state, input, changes of files, terminal, output, permission.

import { clip } from '../text/LongText';
import { LongList } from '../text/LongList';
import { useMessage } from './context';
import { Diff } from './Diff';
import { File } from './File';
import { Json } from './Json';
import { Permission } from './Permission';
import { Terminal } from './Terminal';
import { toolFacts, type ToolPart } from './toolContent';

/** Blocks of each kind that are shown at once. */
const MOST_BLOCKS = 100;

type State = 'preparing' | 'running' | 'waiting' | 'done' | 'failed' | 'refused';

const SYMBOLS: Record<State, string> = { preparing: '…', running: '…', waiting: '?', done: '✓', failed: '✗', refused: '⊘' };

function stateOf(part: ToolPart): State {
  switch (part.state) {
    case 'input-streaming':
      return 'preparing';
    case 'approval-requested':
      return part.approval.isAutomatic ? 'running' : 'waiting';
    case 'output-available':
      return part.preliminary ? 'running' : 'done';
    case 'output-error':
      return 'failed';
    case 'output-denied':
      return 'refused';
    case 'approval-responded':
      return part.approval.approved ? 'running' : 'refused';
    default:
      return 'running';
  }
}

export function Tool({ part }: { part: ToolPart }) {
  const { isRunning, ofCalls } = useMessage();
  const own = ofCalls.get(part.toolCallId) ?? [];
  const terminals = own.filter(({ type }) => type === 'data-terminal');
  const permissions = own.filter(({ type }) => type === 'data-permission');
  const facts = toolFacts(part);
  const state = stateOf(part);
  const name = clip(part.title ?? ('toolName' in part ? part.toolName : part.type.slice('tool-'.length)));
  const error = part.state === 'output-error' ? part.errorText : undefined;
  const isOpen = facts.diffs.length > 0 || terminals.length > 0;
  // The text of a terminal and of a diff is often repeated as raw output.
  const showsRaw = facts.texts.length === 0 && facts.diffs.length === 0 && terminals.length === 0;
  return (
    <section className={`tool ${state}`} aria-label={`Tool: ${name}`}>
      <details open={isOpen}>
        <summary>
          <span className="symbol" aria-hidden="true">
            {SYMBOLS[state]}
          </span>
          <span className="name">{name}</span>
          {facts.kind && <span className="kind">{clip(facts.kind)}</span>}
          <span className="state">{state}</span>
        </summary>
        <LongList items={facts.diffs} most={MOST_BLOCKS} name="changes">
          {(block, index) => <Diff key={index} block={block} />}
        </LongList>
        {terminals.map(({ id, data }) => (
          <Terminal key={id} data={data} />
        ))}
        {facts.diffs.length === 0 && <Json label="Input" value={part.input ?? (part.state === 'input-streaming' ? part.rawInput : undefined)} />}
        <LongList items={facts.texts.filter((text) => text !== error)} most={MOST_BLOCKS} name="outputs">
          {(text, index) => <Json key={index} label="Output" value={text} />}
        </LongList>
        <LongList items={facts.images} most={MOST_BLOCKS} name="images">
          {({ url, mediaType }, index) => <File key={index} url={url} mediaType={mediaType} name="Image of the tool" />}
        </LongList>
        {showsRaw && <Json label="Output" value={facts.rawOutput} />}
        {error !== undefined && <Json label="Error" value={error} />}
        {facts.note !== null && !isRunning && <p className="hint">{facts.note}</p>}
      </details>
      {permissions.map(({ id, data }) => (
        <Permission key={id} id={id ?? ''} data={data} />
      ))}
    </section>
  );
}
