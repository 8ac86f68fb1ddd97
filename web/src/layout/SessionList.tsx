import { useEffect, useRef } from 'react';
import { Boundary } from './Boundary';
import type { SessionInfo } from '../rpc/types';
import { model } from '../state/model';
import { baseName, sessionBadge, sessionLabel } from '../state/sessionLabel';
import { useStore } from '../state/store';

interface Props {
  openId: string | null;
  /** Whether the list is shown over the chat, on narrow screens. */
  isOpen: boolean;
  close(): void;
  choose(sessionId: string): void;
  /** `null` if this window may only watch. */
  create: (() => void) | null;
}

function SessionItem({ info, isCurrent, choose }: { info: SessionInfo; isCurrent: boolean; choose(id: string): void }) {
  const badge = sessionBadge(info);
  return (
    <li>
      <button
        type="button"
        className="session"
        aria-current={isCurrent ? 'true' : undefined}
        title={info.cwd}
        onClick={() => choose(info.sessionId!)}
      >
        <span className="title">{sessionLabel(info)}</span>
        <span className="facts">
          <span className={`badge ${badge}`}>{badge}</span>
          <span>{info.agentName ?? 'agent'}</span>
          <span>{baseName(info.cwd)}</span>
        </span>
      </button>
    </li>
  );
}

export function SessionList({ openId, isOpen, close, choose, create }: Props) {
  const sessions = useStore(model, ({ sessions }) => sessions);
  const panel = useRef<HTMLElement>(null);

  useEffect(() => {
    if (!isOpen) return undefined;
    const before = document.activeElement as HTMLElement | null;
    panel.current?.focus();
    const onKey = (event: KeyboardEvent) => {
      if (event.key !== 'Escape') return;
      event.stopPropagation();
      close();
    };
    // On a wide screen, such as that of a turned tablet, the list is not over the chat.
    const wide = matchMedia('(min-width: 721px)');
    addEventListener('keydown', onKey, true);
    wide.addEventListener('change', close);
    return () => {
      removeEventListener('keydown', onKey, true);
      wide.removeEventListener('change', close);
      before?.focus();
    };
  }, [isOpen, close]);

  const listed = sessions?.filter(({ sessionId }) => sessionId !== null);
  return (
    <>
      {isOpen && <div className="backdrop" onClick={close} />}
      <nav ref={panel} className={isOpen ? 'sessions open' : 'sessions'} aria-label="Sessions" tabIndex={-1}>
        <div className="bar">
          <h1>acpipe</h1>
          {create && (
            <button type="button" className="primary" onClick={create}>
              New chat
            </button>
          )}
        </div>
        {listed === undefined && <p className="hint">Connecting…</p>}
        {listed?.length === 0 && <p className="hint">No sessions yet.</p>}
        <ul>
          {listed?.map((info) => (
            <Boundary key={info.sessionId} name="session" value={info}>
              <SessionItem info={info} isCurrent={info.sessionId === openId} choose={choose} />
            </Boundary>
          ))}
        </ul>
      </nav>
    </>
  );
}
