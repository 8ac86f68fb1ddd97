import { model } from '../state/model';
import { useStore } from '../state/store';
import { clip } from '../text/LongText';

/** What the running turn does, or what it waits for. */
export function RunningLine({ isRunning }: { isRunning: boolean }) {
  const open = useStore(model, ({ open }) => open);
  if (!isRunning) return null;
  const text = open?.waitingFor?.note ?? open?.activity?.description ?? 'The agent works';
  return (
    <p className="working">
      <span className="pulse" aria-hidden="true" />
      <span className="what">{clip(text)}</span>
    </p>
  );
}
