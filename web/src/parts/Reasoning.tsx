import { Markdown } from '../markdown/Markdown';

/** Thoughts of the agent, folded. */
export function Reasoning({ text, isRunning }: { text: string; isRunning: boolean }) {
  if (text.trim() === '') return null;
  return (
    <details className="reasoning">
      <summary>{isRunning ? 'Thinking…' : 'Thoughts'}</summary>
      <Markdown text={text} />
    </details>
  );
}
