// Requests to acpipe's chat endpoints.

import type { UIMessage } from 'ai';
import { forgetToken } from '../address';
import { model } from '../state/model';

/** Like `fetch`, but fails with the server's own words if the response is an error. */
export async function request(url: RequestInfo | URL, init?: RequestInit): Promise<Response> {
  const response = await fetch(url, init);
  if (response.ok) return response;
  if (response.status === 401) {
    forgetToken();
    model.set({ link: 'refused' });
  }
  if (response.status === 403) model.set({ isObserver: true });
  const text = (await response.text()).trim();
  throw new Error(text === '' ? `acpipe answered with the status ${response.status} and no reason` : text);
}

export function authorization(token: string): Record<string, string> {
  return { authorization: `Bearer ${token}` };
}

function endpoint(sessionId: string, name: string): string {
  return `/api/chat/${encodeURIComponent(sessionId)}/${name}`;
}

export async function fetchMessages(token: string, sessionId: string): Promise<UIMessage[]> {
  const response = await request(endpoint(sessionId, 'messages'), { headers: authorization(token) });
  const { messages } = await response.json();
  return messages;
}

export async function cancelTurn(token: string, sessionId: string): Promise<void> {
  await request(endpoint(sessionId, 'cancel'), {
    method: 'POST',
    headers: { ...authorization(token), 'content-type': 'application/json' },
    body: '{}',
  });
}
