import { LongText } from '../text/LongText';

/** A value of an agent, indented; text as it is. */
export function Json({ label, value }: { label: string; value: unknown }) {
  if (value === undefined || value === null || value === '') return null;
  const text = typeof value === 'string' ? value : JSON.stringify(value, null, 2);
  if (text === '{}') return null;
  return (
    <div className="block">
      <p className="label">{label}</p>
      <pre tabIndex={0}>
        <LongText text={text} />
      </pre>
    </div>
  );
}
