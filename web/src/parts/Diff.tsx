import { useMemo } from 'react';
import { LongList } from '../text/LongList';
import { LongText } from '../text/LongText';
import { diffLines, type DiffLine } from '../text/diff';

export interface DiffBlock {
  path: string;
  oldText?: string | null;
  newText: string;
}

const MOST_LINES = 2_000;

const SIGNS: Record<DiffLine['kind'], string> = { same: ' ', added: '+', removed: '-', skipped: '⋯' };

export function Diff({ block: { path, oldText, newText } }: { block: DiffBlock }) {
  const lines = useMemo(() => diffLines(oldText ?? '', newText), [oldText, newText]);
  const count = (kind: DiffLine['kind']) => lines.filter((line) => line.kind === kind).length;
  return (
    <div className="diff">
      <p className="label">
        <span className="path">{path}</span>
        <span className="ok"> +{count('added')}</span>
        <span className="bad"> −{count('removed')}</span>
      </p>
      <pre tabIndex={0}>
        <LongList items={lines} most={MOST_LINES} name="lines">
          {({ kind, text }, index) => (
            <span key={index} className={kind}>
              {SIGNS[kind]} <LongText text={text} />
              {'\n'}
            </span>
          )}
        </LongList>
      </pre>
    </div>
  );
}
