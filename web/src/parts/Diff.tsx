import { useMemo } from 'react';
import { diffLines, type DiffLine } from '../text/diff';

export interface DiffBlock {
  path: string;
  oldText?: string | null;
  newText: string;
}

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
        {lines.map(({ kind, text }, index) => (
          <span key={index} className={kind}>
            {SIGNS[kind]} {text}
            {'\n'}
          </span>
        ))}
      </pre>
    </div>
  );
}
