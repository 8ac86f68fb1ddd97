import { useEffect, useRef, useState, type KeyboardEvent } from 'react';

interface Props {
  sessionId: string;
  isReady: boolean;
  isRunning: boolean;
  /** Whether the agent waits for an answer: a message takes its place. */
  isAsked: boolean;
  send(text: string): void;
  stop(): void;
}

/** A key of a touch keyboard for line breaks is Enter, and there is no Shift+Enter. */
const hasKeyboard = () => !matchMedia('(pointer: coarse)').matches;

export function Composer({ sessionId, isReady, isRunning, isAsked, send, stop }: Props) {
  const draft = `acpipe.draft.${sessionId}`;
  const [text, setText] = useState(() => sessionStorage.getItem(draft) ?? '');
  const field = useRef<HTMLTextAreaElement>(null);

  useEffect(() => {
    if (hasKeyboard()) field.current?.focus();
  }, []);
  // What was typed survives a reload.
  useEffect(() => sessionStorage.setItem(draft, text), [draft, text]);

  const canSend = isReady && (!isRunning || isAsked) && text.trim() !== '';
  const submit = () => {
    if (!canSend) return;
    send(text.trim());
    setText('');
    field.current?.focus();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key !== 'Enter' || event.shiftKey || event.nativeEvent.isComposing || !hasKeyboard()) return;
    event.preventDefault();
    submit();
  };
  return (
    <form
      className="composer"
      onSubmit={(event) => {
        event.preventDefault();
        submit();
      }}
    >
      <div className="grow" data-text={text}>
        <textarea
          ref={field}
          rows={1}
          value={text}
          aria-label="Message"
          placeholder={isRunning && isAsked ? 'Message instead of an answer' : 'Message to the agent'}
          enterKeyHint={hasKeyboard() ? 'send' : 'enter'}
          onChange={(event) => setText(event.target.value)}
          onKeyDown={onKeyDown}
        />
      </div>
      {isRunning && !canSend ? (
        <button type="button" className="stop" title="Stop (Escape)" onClick={stop}>
          Stop
        </button>
      ) : (
        <button type="submit" className="primary" disabled={!canSend}>
          Send
        </button>
      )}
    </form>
  );
}
