import type { UIMessage } from 'ai';
import { memo } from 'react';
import { LongText } from '../text/LongText';
import { Parts } from './Parts';
import { turnError, wasCancelled } from './turnEnd';

interface Props {
  message: UIMessage;
  /** Whether the message still grows. */
  isRunning: boolean;
}

export const Message = memo(function Message({ message, isRunning }: Props) {
  const error = turnError(message.metadata);
  return (
    <article className={`message ${message.role}`} aria-label={message.role === 'user' ? 'You' : 'Agent'}>
      <Parts parts={message.parts} isRunning={isRunning} />
      {wasCancelled(message.metadata) && <p className="hint">Stopped.</p>}
      {error !== null && (
        <p className="error" role="alert">
          <LongText text={error} />
        </p>
      )}
    </article>
  );
});
