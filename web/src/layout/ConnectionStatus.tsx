import { model } from '../state/model';
import { useStore } from '../state/store';

export function ConnectionStatus() {
  const link = useStore(model, ({ link }) => link);
  return (
    <div role="status">
      {link === 'lost' && <p className="connection">acpipe cannot be reached. The page tries again until it can.</p>}
    </div>
  );
}
