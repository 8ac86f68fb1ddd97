import { useState } from 'react';
import { Boundary } from '../layout/Boundary';
import { Markdown } from '../markdown/Markdown';
import type { Question } from '../rpc/types';
import { Feedback } from './Feedback';
import { optionClass } from './PermissionDialog';

export function PlanQuestion({ question: { message, options }, respond }: { question: Question; respond(result: object): void }) {
  const [feedback, setFeedback] = useState('');
  const text = feedback.trim();
  const note = text === '' ? {} : { feedback: text, feedbackDelivery: 'nextPrompt' };
  return (
    <>
      <div className="asked">
        <Boundary name="plan" value={message}>
          <Markdown text={message} />
        </Boundary>
      </div>
      <Feedback text={feedback} change={setFeedback} />
      <div className="options">
        {options.map((option) => (
          <button
            key={option.optionId}
            type="button"
            className={optionClass(option)}
            onClick={() => respond({ action: 'accept', content: { optionId: option.optionId, ...note } })}
          >
            {option.name}
          </button>
        ))}
        {options.length === 0 && (
          <button type="button" className="allow" onClick={() => respond({ action: 'accept', content: note })}>
            Approve
          </button>
        )}
        {!options.some(({ kind }) => kind.startsWith('reject')) && (
          <button type="button" className="reject" onClick={() => respond({ action: 'decline' })}>
            Decline
          </button>
        )}
      </div>
    </>
  );
}
