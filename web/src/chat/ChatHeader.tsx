import { Boundary } from '../layout/Boundary';
import { model } from '../state/model';
import { sessionLabel } from '../state/sessionLabel';
import { useStore } from '../state/store';
import { Presence } from './Presence';
import { Settings } from './Settings';

interface Props {
  sessionId: string;
  showList(): void;
}

export function ChatHeader({ sessionId, showList }: Props) {
  const info = useStore(model, ({ sessions }) => sessions?.find((session) => session.sessionId === sessionId));
  const state = useStore(model, ({ open }) => open?.state);
  return (
    <header className="head">
      <button type="button" className="narrow-only" aria-label="Sessions" onClick={showList}>
        ☰
      </button>
      <div className="name">
        <h2>{info ? sessionLabel(info) : 'Session'}</h2>
        {info && (
          <p title={info.cwd}>
            {info.agentName} · {info.cwd}
          </p>
        )}
      </div>
      <Presence />
      <Boundary name="options" value={state}>
        <Settings />
      </Boundary>
    </header>
  );
}
