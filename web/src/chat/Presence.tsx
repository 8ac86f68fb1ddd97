import { model } from '../state/model';
import { useStore } from '../state/store';

/** Name of the clients behind the chat endpoints. They come and go with every prompt of a page. */
const HTTP_CLIENT = 'HTTP';

/** Who else is attached to the session. */
export function Presence() {
  const clients = useStore(model, ({ open }) => open?.clients);
  const others = clients?.filter(({ isSelf, name }) => !isSelf && name !== HTTP_CLIENT) ?? [];
  if (others.length === 0) return null;
  const names = others.map(({ name, role }) => `${name ?? 'Unnamed client'}${role === 'observer' ? ' (watches)' : ''}`);
  return (
    <details className="presence">
      <summary aria-label={`Also here: ${names.join(', ')}`} title={names.join('\n')}>
        +{others.length}
      </summary>
      <div className="menu">
        <p>Also here</p>
        <ul>
          {others.map(({ clientId }, index) => (
            <li key={clientId}>{names[index]}</li>
          ))}
        </ul>
      </div>
    </details>
  );
}
