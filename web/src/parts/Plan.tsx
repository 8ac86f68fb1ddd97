import { LongList } from '../text/LongList';
import { LongText } from '../text/LongText';

interface Entry {
  content: string;
  status: 'pending' | 'in_progress' | 'completed';
}

const MOST_ENTRIES = 500;

const MARKS = { pending: '○', in_progress: '◐', completed: '●' };
const NAMES = { pending: 'to do', in_progress: 'in progress', completed: 'done' };

export function Plan({ data }: { data: { entries?: Entry[]; removed?: boolean } }) {
  const entries = data.entries ?? [];
  if (data.removed || entries.length === 0) return null;
  const done = entries.filter(({ status }) => status === 'completed').length;
  return (
    <section className="plan" aria-label="Plan">
      <p className="label">
        Plan · {done} of {entries.length} done
      </p>
      <ol>
        <LongList items={entries} most={MOST_ENTRIES} name="entries">
          {({ content, status }, index) => (
            <li key={index} className={status}>
              <span aria-hidden="true">{MARKS[status] ?? '○'}</span>
              <span className="unseen">{NAMES[status] ?? status}: </span>
              <span>
                <LongText text={content} />
              </span>
            </li>
          )}
        </LongList>
      </ol>
    </section>
  );
}
