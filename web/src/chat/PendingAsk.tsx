import { model } from '../state/model';
import { hiddenAsks, showAsks } from '../dialogs/hiddenAsks';
import { useStore } from '../state/store';

/** The way back to a dialog that was closed without an answer. */
export function PendingAsk() {
  const asks = useStore(model, ({ asks }) => asks);
  const isHidden = useStore(hiddenAsks, ({ isHidden }) => isHidden);
  if (asks.length === 0 || !isHidden) return null;
  return (
    <p className="unanswered">
      <span>The agent waits for your answer.</span>
      <button type="button" className="primary" autoFocus onClick={showAsks}>
        Answer
      </button>
    </p>
  );
}
