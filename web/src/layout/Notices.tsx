import { useEffect } from 'react';
import { clip } from '../text/LongText';
import { Boundary } from './Boundary';
import { dismissNotice, model, type Notice } from '../state/model';
import { useStore } from '../state/store';

/** Errors stay until they are dismissed. */
const INFO_MS = 8_000;

function NoticeLine({ notice: { id, level, text } }: { notice: Notice }) {
  useEffect(() => {
    if (level === 'error') return undefined;
    const timer = setTimeout(() => dismissNotice(id), INFO_MS);
    return () => clearTimeout(timer);
  }, [id, level]);
  return (
    <div className={`notice ${level}`} role={level === 'error' ? 'alert' : 'status'}>
      <span>{clip(text)}</span>
      <button type="button" aria-label="Dismiss" onClick={() => dismissNotice(id)}>
        ×
      </button>
    </div>
  );
}

export function Notices() {
  const notices = useStore(model, ({ notices }) => notices);
  return (
    <div className="notices">
      {notices.map((notice) => (
        <Boundary key={notice.id} name="notice" value={notice}>
          <NoticeLine notice={notice} />
        </Boundary>
      ))}
    </div>
  );
}
