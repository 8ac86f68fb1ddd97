import type { UIMessage } from 'ai';
import { useEffect, useLayoutEffect, useRef } from 'react';
import { Boundary } from '../layout/Boundary';
import { Message } from '../parts/Message';
import { turnError } from '../parts/turnEnd';

interface Props {
  messages: UIMessage[];
  isLoaded: boolean;
  isRunning: boolean;
  error: string | null;
}

/** Distance from the end within which the list follows the answer. */
const NEAR_END_PX = 80;

export function MessageList({ messages, isLoaded, isRunning, error }: Props) {
  const list = useRef<HTMLDivElement>(null);
  const follows = useRef(true);

  useLayoutEffect(() => {
    if (follows.current) list.current!.scrollTop = list.current!.scrollHeight;
  });
  // The user's own prompt is shown wherever the list was.
  const sent = messages.filter(({ role }) => role === 'user').length;
  useEffect(() => {
    follows.current = true;
    list.current!.scrollTop = list.current!.scrollHeight;
  }, [sent]);

  const last = messages.at(-1);
  const isInMessage = turnError(last?.metadata) !== null;
  return (
    <div
      ref={list}
      className="messages"
      role="log"
      aria-live="off"
      aria-label="Messages"
      aria-busy={isRunning}
      tabIndex={0}
      onScroll={({ currentTarget: { scrollTop, scrollHeight, clientHeight } }) => {
        follows.current = scrollHeight - scrollTop - clientHeight < NEAR_END_PX;
      }}
    >
      {!isLoaded && <p className="hint">Loading…</p>}
      {isLoaded && messages.length === 0 && <p className="hint">No messages yet.</p>}
      {messages.map((message) => (
        <Boundary key={message.id} name="message" value={message}>
          <Message message={message} isRunning={isRunning && message === last} />
        </Boundary>
      ))}
      {error !== null && !isInMessage && (
        <p className="error" role="alert">
          {error}
        </p>
      )}
    </div>
  );
}
