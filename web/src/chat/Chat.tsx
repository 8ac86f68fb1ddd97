// The open session: its header, messages and composer.

import { useEffect } from 'react';
import { Boundary } from '../layout/Boundary';
import { Announcer } from './Announcer';
import { ChatHeader } from './ChatHeader';
import { Composer } from './Composer';
import { MessageList } from './MessageList';
import { PendingAsk } from './PendingAsk';
import { RunningLine } from './RunningLine';
import { useSessionChat } from './useSessionChat';
import { model } from '../state/model';
import { useStore } from '../state/store';

interface Props {
  token: string;
  sessionId: string;
  showList(): void;
}

function useEscape(isActive: boolean, action: () => void): void {
  useEffect(() => {
    if (!isActive) return undefined;
    const onKey = (event: KeyboardEvent) => {
      // Escape in a dialog or in an input method belongs to that.
      if (event.key !== 'Escape' || event.isComposing || document.querySelector('dialog[open]')) return;
      action();
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, [isActive, action]);
}

export function Chat({ token, sessionId, showList }: Props) {
  const chat = useSessionChat(token, sessionId);
  const isObserver = useStore(model, ({ isObserver }) => isObserver);
  const isAsked = useStore(model, ({ asks }) => asks.length > 0);
  useEscape(chat.isRunning && !isObserver, chat.stop);
  return (
    <main className="chat">
      <ChatHeader sessionId={sessionId} showList={showList} />
      <MessageList messages={chat.messages} isLoaded={chat.isLoaded} isRunning={chat.isRunning} error={chat.error} />
      <Boundary name="announcement" value={chat.messages}>
        <Announcer messages={chat.messages} isRunning={chat.isRunning} />
      </Boundary>
      <div className="foot">
        <Boundary name="running tool" value={chat.isRunning}>
          <RunningLine isRunning={chat.isRunning} />
        </Boundary>
        <PendingAsk />
        {isObserver ? (
          <p className="hint">This window may only watch.</p>
        ) : (
          <Composer sessionId={sessionId} isReady={chat.isLoaded} isRunning={chat.isRunning} isAsked={isAsked} send={chat.send} stop={chat.stop} />
        )}
      </div>
    </main>
  );
}
