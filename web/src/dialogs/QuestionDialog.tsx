// Questions of the agent: a form, an address to open, or a plan to approve.

import type { Question } from '../rpc/types';
import { AskFooter } from './AskFooter';
import { FormQuestion } from './FormQuestion';
import { Modal } from './Modal';
import { PlanQuestion } from './PlanQuestion';
import { UrlQuestion } from './UrlQuestion';

interface Props {
  question: Question;
  more: number;
  later(): void;
  respond(result: object): void;
}

const TITLES = { form: 'The agent asks', url: 'Open an address', plan: 'Approve the plan' };

export function QuestionDialog({ question, more, later, respond }: Props) {
  return (
    <Modal title={TITLES[question.kind] ?? TITLES.form} close={later}>
      {question.kind === 'plan' && <PlanQuestion question={question} respond={respond} />}
      {question.kind === 'url' && <UrlQuestion question={question} respond={respond} />}
      {question.kind === 'form' && <FormQuestion question={question} respond={respond} />}
      <AskFooter more={more} later={later} />
    </Modal>
  );
}
