// What the page knows, beside the messages of the open session.

import type { Activity, PermissionRequest, Question, SessionClient, SessionInfo, SessionState, Waiting } from '../rpc/types';
import { createStore } from './store';

/** A request of acpipe that waits for the answer of the user. */
export type Ask =
  | { requestId: string | number; kind: 'permission'; params: PermissionRequest }
  | { requestId: string | number; kind: 'question'; params: Question };

/** The open session, as far as it is not messages. */
export interface OpenSession {
  sessionId: string;
  /** `null` until the agent has reported modes, models and the like. */
  state: SessionState | null;
  clients: SessionClient[];
  activity: Activity | null;
  waitingFor: Waiting | null;
}

export interface Notice {
  id: number;
  level: 'info' | 'error';
  text: string;
}

export interface Model {
  link: 'connecting' | 'open' | 'lost' | 'refused';
  /** Whether this window may only watch. */
  isObserver: boolean;
  sessions: SessionInfo[] | null;
  open: OpenSession | null;
  asks: Ask[];
  /** Questions that another window has answered, with its name. */
  answeredBy: Record<string, string>;
  notices: Notice[];
  /** Counts the turns that other windows began and the connections that came back: the messages may be old. */
  changes: number;
}

export const model = createStore<Model>({
  link: 'connecting',
  isObserver: false,
  sessions: null,
  open: null,
  asks: [],
  answeredBy: {},
  notices: [],
  changes: 0,
});

let lastNotice = 0;

export function showNotice(level: Notice['level'], text: string): void {
  const others = model.get().notices.filter((notice) => notice.text !== text);
  model.set({ notices: [...others.slice(-3), { id: ++lastNotice, level, text }] });
}

export function dismissNotice(id: number): void {
  model.set({ notices: model.get().notices.filter((notice) => notice.id !== id) });
}

/** Changes the open session, unless another one has been opened meanwhile. */
export function updateOpen(sessionId: string, change: Partial<OpenSession>): void {
  const { open } = model.get();
  if (open?.sessionId === sessionId) model.set({ open: { ...open, ...change } });
}
