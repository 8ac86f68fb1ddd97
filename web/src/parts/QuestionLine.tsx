import { model } from '../state/model';
import { useStore } from '../state/store';
import { clip, LongText } from '../text/LongText';

interface Data {
  message?: string;
  action?: 'accept' | 'decline' | 'cancel';
  content?: Record<string, unknown> | null;
  reason?: string;
}

const ACTIONS = { accept: 'Answered', decline: 'Declined', cancel: 'Dismissed' };

function answerText(content: Data['content']): string {
  return Object.values(content ?? {})
    .map((value) => (Array.isArray(value) ? value.join(', ') : String(value)))
    .filter((value) => value !== '')
    .join(' · ');
}

export function QuestionLine({ id, data }: { id: string; data: Data }) {
  const answeredBy = useStore(model, ({ answeredBy }) => answeredBy[id]);
  const answer = answerText(data.content);
  return (
    <section className="question" aria-label="Question">
      <p>
        <LongText text={data.message ?? ''} />
      </p>
      <p className="decision">
        {data.action === undefined ? 'Waits for an answer' : ACTIONS[data.action]}
        {data.action !== undefined && answeredBy !== undefined && ` by ${answeredBy}`}
        {answer !== '' && `: ${clip(answer)}`}
      </p>
    </section>
  );
}
