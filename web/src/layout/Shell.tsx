// The page after the token: the list of sessions, the open session, and the dialogs.

import { useCallback, useEffect, useState } from 'react';
import { sessionOfAddress, showSessionInAddress } from '../address';
import { Chat } from '../chat/Chat';
import { AskDialogs } from '../dialogs/AskDialogs';
import { NewChatDialog } from '../dialogs/NewChatDialog';
import { openSession, refreshSessions, report } from '../state/client';
import { model } from '../state/model';
import { useStore } from '../state/store';
import { ConnectionStatus } from './ConnectionStatus';
import { Notices } from './Notices';
import { SessionList } from './SessionList';
import { Welcome } from './Welcome';

/** Sessions that are not open report nothing, so the list is read again while the page is visible. */
const REFRESH_MS = 5_000;

function useSessionRefresh(): void {
  useEffect(() => {
    const refresh = () => {
      if (document.visibilityState === 'hidden' || model.get().link !== 'open') return;
      void refreshSessions().catch(() => undefined);
    };
    const timer = setInterval(refresh, REFRESH_MS);
    addEventListener('focus', refresh);
    return () => {
      clearInterval(timer);
      removeEventListener('focus', refresh);
    };
  }, []);
}

function useOpenSession(): [string | null, (sessionId: string) => void] {
  const [sessionId, setSessionId] = useState(sessionOfAddress);
  useEffect(() => {
    const read = () => setSessionId(sessionOfAddress());
    addEventListener('popstate', read);
    addEventListener('hashchange', read);
    return () => {
      removeEventListener('popstate', read);
      removeEventListener('hashchange', read);
    };
  }, []);
  useEffect(() => void openSession(sessionId).catch(report), [sessionId]);
  const select = useCallback((next: string) => {
    showSessionInAddress(next);
    setSessionId(next);
  }, []);
  return [sessionId, select];
}

export function Shell({ token }: { token: string }) {
  const [sessionId, select] = useOpenSession();
  const [isListOpen, setIsListOpen] = useState(false);
  const [isCreating, setIsCreating] = useState(false);
  const isObserver = useStore(model, ({ isObserver }) => isObserver);
  useSessionRefresh();

  const choose = (next: string) => {
    setIsListOpen(false);
    select(next);
  };
  const create = () => {
    setIsListOpen(false);
    setIsCreating(true);
  };
  return (
    <div className="shell">
      <SessionList
        openId={sessionId}
        isOpen={isListOpen}
        close={() => setIsListOpen(false)}
        choose={choose}
        create={isObserver ? null : create}
      />
      <div className="main" inert={isListOpen}>
        <ConnectionStatus />
        {sessionId === null ? (
          <Welcome showList={() => setIsListOpen(true)} create={isObserver ? null : create} />
        ) : (
          <Chat key={sessionId} token={token} sessionId={sessionId} showList={() => setIsListOpen(true)} />
        )}
      </div>
      {isCreating && (
        <NewChatDialog
          close={() => setIsCreating(false)}
          created={(next) => {
            setIsCreating(false);
            choose(next);
          }}
        />
      )}
      <AskDialogs />
      <Notices />
    </div>
  );
}
