// The whole page: asks for the token, then connects.

import { useEffect, useState } from 'react';
import { storeToken, takeToken } from '../address';
import { connect } from '../state/client';
import { model } from '../state/model';
import { useStore } from '../state/store';
import { Shell } from './Shell';
import { TokenForm } from './TokenForm';

export function Page() {
  const [token, setToken] = useState(takeToken);
  const isRefused = useStore(model, ({ link }) => link === 'refused');

  useEffect(() => (token === null ? undefined : connect(token)), [token]);
  // A second link with a token may be opened in this tab: only its fragment changes, so the page is not loaded again.
  useEffect(() => {
    const read = () => setToken(takeToken());
    addEventListener('hashchange', read);
    return () => removeEventListener('hashchange', read);
  }, []);

  const submit = (entered: string) => {
    storeToken(entered);
    model.set({ link: 'connecting' });
    setToken(entered);
  };
  if (token === null || isRefused) return <TokenForm isRefused={isRefused} submit={submit} />;
  return <Shell token={token} />;
}
