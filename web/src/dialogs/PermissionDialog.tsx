import { useState } from 'react';
import type { OfferedOption, PermissionRequest } from '../rpc/types';
import { Boundary } from '../layout/Boundary';
import { AskedCall } from './AskedCall';
import { AskFooter } from './AskFooter';
import { Feedback } from './Feedback';
import { Modal } from './Modal';

interface Props {
  request: PermissionRequest;
  more: number;
  later(): void;
  respond(result: object): void;
}

export function optionClass({ kind }: OfferedOption): string {
  // What applies for longer than this call does not stand out.
  if (kind === 'allow_once') return 'allow';
  return kind.startsWith('reject') ? 'reject' : '';
}

export function PermissionDialog({ request: { toolCall, options, command, paths, rule }, more, later, respond }: Props) {
  const [feedback, setFeedback] = useState('');
  const text = feedback.trim();
  // What the agent cannot take with the answer goes with the next prompt.
  const message = text === '' ? {} : { message: text, feedbackDelivery: 'nextPrompt' };
  const choose = (optionId: string) => respond({ outcome: { outcome: 'selected', optionId, ...message } });
  const canReject = options.some(({ kind }) => kind.startsWith('reject'));
  return (
    <Modal title="Permission needed" close={later}>
      <Boundary name="tool call" value={toolCall}>
        <AskedCall tool={toolCall} command={command} paths={paths} />
      </Boundary>
      <p className="hint">Asked because of: {rule}</p>
      <Feedback text={feedback} change={setFeedback} />
      <div className="options">
        {options.map((option) => (
          <button key={option.optionId} type="button" className={optionClass(option)} onClick={() => choose(option.optionId)}>
            {option.name}
          </button>
        ))}
        {!canReject && (
          <button type="button" onClick={() => respond({ outcome: { outcome: 'cancelled', ...message } })}>
            Refuse
          </button>
        )}
      </div>
      <AskFooter more={more} later={later} />
    </Modal>
  );
}
