// The page as a client of acpipe: calls, notifications, and the requests that the user answers.

import { deviceName } from '../device';
import { Link } from '../rpc/link';
import { RpcError } from '../rpc/connection';
import type { AgentSummary, SessionClient, SessionInfo, SessionState } from '../rpc/types';
import { model, showNotice, updateOpen, type Ask } from './model';
import { newId } from './newId';
import { isOwnMessage } from './ownMessages';

let link: Link | undefined;

export function connect(token: string): () => void {
  const current = new Link(token, {
    opened: initialize,
    lost: () => model.set({ link: 'lost', asks: [] }),
    refused: () => model.set({ link: 'refused' }),
    notified,
    requested,
  });
  link = current;
  model.set({ link: 'connecting' });
  current.start();
  return () => current.stop();
}

async function initialize(): Promise<void> {
  const result = await call<{ role?: string; access?: string }>('initialize', {
    protocolVersion: 1,
    clientInfo: { name: deviceName() },
    // Chunks come through `useChat`.
    capabilities: { chunks: false, permissions: true, questions: true },
    // A page that stayed open while acpipe was updated keeps working.
    unknownFields: 'ignore',
  });
  const isObserver = result.role === 'observer' || result.access === 'observer';
  model.set({ link: 'open', isObserver: isObserver || model.get().isObserver });
  await refreshSessions();
  const { open } = model.get();
  if (open) {
    await attach(open.sessionId);
    model.set({ changes: model.get().changes + 1 });
  }
}

/** Calls a method of acpipe. A refused call makes the window an observer. */
export async function call<T>(method: string, params: object): Promise<T> {
  try {
    if (!link) throw new RpcError('the page is not connected to acpipe; open it again', 'disconnected');
    return await link.call<T>(method, params);
  } catch (error) {
    if (error instanceof RpcError && error.kind === 'forbidden') model.set({ isObserver: true });
    throw error;
  }
}

export async function refreshSessions(): Promise<void> {
  const { sessions } = await call<{ sessions: SessionInfo[] }>('session/list', { limit: 200 });
  model.set({ sessions });
  const open = model.get().open;
  const info = open && sessions.find(({ sessionId }) => sessionId === open.sessionId);
  if (info?.state === 'live' && open?.state === null) await readState(open.sessionId);
}

/** Makes a session the open one, and the one before no longer attached. */
export async function openSession(sessionId: string | null): Promise<void> {
  const before = model.get().open;
  if (before?.sessionId === sessionId) return;
  const open = sessionId === null ? null : { sessionId, state: null, clients: [], activity: null, waitingFor: null };
  model.set({ open, asks: [] });
  if (model.get().link !== 'open') return;
  if (before) void call('session/detach', { sessionId: before.sessionId }).catch(() => undefined);
  if (sessionId !== null) await attach(sessionId);
}

async function attach(sessionId: string): Promise<void> {
  try {
    const { isObserver } = model.get();
    await attachAs(sessionId, isObserver ? 'observer' : 'controller');
  } catch (error) {
    if (error instanceof RpcError && error.kind === 'forbidden') await attachAs(sessionId, 'observer').catch(report);
    else report(error);
  }
  const info = model.get().sessions?.find((session) => session.sessionId === sessionId);
  if (info?.state === 'live') await readState(sessionId);
}

async function attachAs(sessionId: string, role: 'controller' | 'observer'): Promise<void> {
  const { clients, role: given } = await call<{ clients: SessionClient[]; role: string }>('session/attach', { sessionId, role });
  if (given === 'observer') model.set({ isObserver: true });
  updateOpen(sessionId, { clients });
}

/** Reads modes, models and options of a live session. `session/ensure` changes nothing of such a session. */
async function readState(sessionId: string): Promise<void> {
  if (model.get().isObserver) return;
  try {
    const { state } = await call<{ state: SessionState }>('session/ensure', { sessionId });
    updateOpen(sessionId, { state });
  } catch {
    // The session rests again: its next turn reports the state.
  }
}

export async function createSession(agent: string, cwd: string): Promise<string> {
  const sessionId = newId();
  // The server answers at once if the agent runs.
  await call('agent/connect', { agent });
  await call('session/ensure', { sessionId, agent, ...(cwd === '' ? {} : { cwd }) });
  await refreshSessions();
  return sessionId;
}

export async function listAgents(): Promise<AgentSummary[]> {
  const { agents } = await call<{ agents: AgentSummary[] }>('agent/list', { builtIn: true });
  return agents.filter(({ installed, isDefault, state }) => installed || isDefault || state === 'ready');
}

export async function changeSetting(method: string, params: object): Promise<void> {
  const { open } = model.get();
  if (!open) return;
  try {
    const { state } = await call<{ state: SessionState }>(method, { sessionId: open.sessionId, ...params });
    updateOpen(open.sessionId, { state });
  } catch (error) {
    report(error);
  }
}

/** The last answers of this window. Another one may have been faster. */
let answered: Ask[] = [];

export function answer(ask: Ask, result: object): void {
  answered = [...answered.slice(-7), ask];
  link?.respond(ask.requestId, result);
  removeAsk(ask.requestId);
}

export function report(error: unknown): void {
  showNotice('error', error instanceof Error ? error.message : String(error));
}

function removeAsk(requestId: string | number): void {
  model.set({ asks: model.get().asks.filter((ask) => ask.requestId !== requestId) });
}

function requested(id: string | number, method: string, params: any): void {
  if (method === 'permission/request') model.set({ asks: [...model.get().asks, { requestId: id, kind: 'permission', params }] });
  else if (method === 'question/ask') model.set({ asks: [...model.get().asks, { requestId: id, kind: 'question', params }] });
  else link?.refuse(id, `the page does not answer ${method}`);
}

function notified(method: string, params: any): void {
  switch (method) {
    case '$/cancelRequest':
      return withdrawn(params);
    case 'session/state':
      return updateOpen(params.sessionId, { state: params.state });
    case 'session/activity':
      return updateOpen(params.sessionId, { activity: params.activity, waitingFor: params.waitingFor });
    case 'session/presence':
      return presenceChanged(params);
    case 'session/userMessage':
      return turnBegan(params);
  }
}

function presenceChanged({ sessionId, clients }: { sessionId: string; clients: SessionClient[] }): void {
  updateOpen(sessionId, { clients });
  // Another client closed the session, which detaches all of its clients.
  if (clients.length === 0 && model.get().open?.sessionId === sessionId) void attach(sessionId);
}

function withdrawn({ id, by, client }: { id: string | number; by: string; client?: { name: string | null } }): void {
  const isMeant = ({ requestId }: Ask) => requestId === id;
  const open = model.get().asks.find(isMeant);
  const ask = open ?? answered.find(isMeant);
  if (!ask) return;
  removeAsk(id);
  const late = open ? '' : 'Your answer came too late. ';
  if (by === 'otherClient') {
    const name = client?.name ?? 'another window';
    model.set({ answeredBy: { ...model.get().answeredBy, [ask.params.questionId]: name } });
    showNotice('info', `${late}Answered by ${name}.`);
  } else if (by === 'timeout') {
    showNotice('info', 'The time to answer is over: the policy decided.');
  } else if (by === 'message' && late !== '') {
    showNotice('info', `${late}A new message took its place.`);
  }
}

function turnBegan({ sessionId, turnId, message }: { sessionId: string; turnId: string; message?: { id?: string } }): void {
  // The prompts of this window come back, too: its chat endpoint is another client.
  const isOwn = isOwnMessage(turnId) || (message?.id !== undefined && isOwnMessage(message.id));
  if (!isOwn && model.get().open?.sessionId === sessionId) model.set({ changes: model.get().changes + 1 });
  void refreshSessions().catch(() => undefined);
}
