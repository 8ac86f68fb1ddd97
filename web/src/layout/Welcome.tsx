interface Props {
  showList(): void;
  create: (() => void) | null;
}

export function Welcome({ showList, create }: Props) {
  return (
    <main className="welcome">
      <h2>No session is open</h2>
      <p>Choose a session to follow it here{create ? ', or begin a new one.' : '.'}</p>
      <div className="actions">
        <button type="button" className="narrow-only" onClick={showList}>
          Sessions
        </button>
        {create && (
          <button type="button" className="primary" onClick={create}>
            New chat
          </button>
        )}
      </div>
    </main>
  );
}
