// The fragment of the address: `#token=TOKEN` from the URL that acpipe prints, `#session=ID` for the open session.

const TOKEN_KEY = 'acpipe.token';

function fragment(): URLSearchParams {
  return new URLSearchParams(location.hash.slice(1));
}

function replaceFragment(session: string | null): void {
  const hash = session === null ? '' : `#${new URLSearchParams({ session })}`;
  history.replaceState(null, '', location.pathname + location.search + hash);
}

/** Moves a token from the address to the storage of this tab, so that neither history nor a copied address has it. */
export function takeToken(): string | null {
  const token = fragment().get('token');
  if (token) {
    sessionStorage.setItem(TOKEN_KEY, token);
    replaceFragment(fragment().get('session'));
  }
  return sessionStorage.getItem(TOKEN_KEY);
}

export function storeToken(token: string): void {
  sessionStorage.setItem(TOKEN_KEY, token);
}

export function forgetToken(): void {
  sessionStorage.removeItem(TOKEN_KEY);
}

/** Id of the session in the address; `null` if the address has no session. */
export function sessionOfAddress(): string | null {
  return fragment().get('session');
}

/** Adds an entry to the history of the browser, so that its back button returns to the session before. */
export function showSessionInAddress(session: string | null): void {
  const hash = session === null ? '' : `#${new URLSearchParams({ session })}`;
  history.pushState(null, '', location.pathname + location.search + hash);
}
