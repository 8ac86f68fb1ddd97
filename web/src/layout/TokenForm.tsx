import { useState, type FormEvent } from 'react';

interface Props {
  isRefused: boolean;
  submit(token: string): void;
}

/** Accepts the token itself, or the whole URL that acpipe prints. */
function readToken(text: string): string {
  const inUrl = text.match(/[#&]token=([^&\s]+)/)?.[1];
  return inUrl === undefined ? text.trim() : decodeURIComponent(inUrl);
}

export function TokenForm({ isRefused, submit }: Props) {
  const [text, setText] = useState('');
  const onSubmit = (event: FormEvent) => {
    event.preventDefault();
    const token = readToken(text);
    if (token !== '') submit(token);
  };
  return (
    <main className="token">
      <form onSubmit={onSubmit}>
        <h1>acpipe</h1>
        <p id="token-help">
          Enter the token, or open the URL that <code>acpipe daemon start</code> printed: it has the token.
        </p>
        {isRefused && (
          <p className="error" role="alert">
            acpipe does not accept the token. It may be that of another acpipe.
          </p>
        )}
        <label htmlFor="token">Token</label>
        <input
          id="token"
          type="password"
          autoComplete="off"
          autoFocus
          aria-describedby="token-help"
          value={text}
          onChange={(event) => setText(event.target.value)}
        />
        <button type="submit" className="primary">
          Connect
        </button>
      </form>
    </main>
  );
}
