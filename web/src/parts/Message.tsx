import type { UIMessage } from 'ai';
import { MessageContext, type MessageView } from './context';
import { Part } from './Part';
import { turnError, wasCancelled } from './turnEnd';

interface Props {
  message: UIMessage;
  /** Whether the message still grows. */
  isRunning: boolean;
}

export function Message({ message, isRunning }: Props) {
  const view: MessageView = { parts: message.parts, isRunning };
  const error = turnError(message.metadata);
  return (
    <article className={`message ${message.role}`} aria-label={message.role === 'user' ? 'You' : 'Agent'}>
      <MessageContext value={view}>
        {message.parts.map((part, index) => (
          <Part key={index} part={part} isLast={index === message.parts.length - 1} />
        ))}
      </MessageContext>
      {wasCancelled(message.metadata) && <p className="hint">Stopped.</p>}
      {error !== null && (
        <p className="error" role="alert">
          {error}
        </p>
      )}
    </article>
  );
}
