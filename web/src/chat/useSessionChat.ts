// The messages of a session: `useChat`, the stored messages, and turns that other windows began.

import { useChat } from '@ai-sdk/react';
import { generateId, type UIMessage } from 'ai';
import { useCallback, useEffect, useMemo, useRef, useState } from 'react';
import { refreshSessions, report } from '../state/client';
import { model, showNotice, updateOpen } from '../state/model';
import { addOwnMessage } from '../state/ownMessages';
import { useStore } from '../state/store';
import { cancelTurn, fetchMessages } from './http';
import { Transport } from './transport';

const THROTTLE_MS = 50;

export interface SessionChat {
  messages: UIMessage[];
  isLoaded: boolean;
  isRunning: boolean;
  error: string | null;
  send(text: string): void;
  stop(): void;
}

function words(error: Error): string {
  const isNetwork = error instanceof TypeError;
  return isNetwork ? 'The connection to acpipe was lost. The turn continues there; the page shows it when it is back.' : error.message;
}

/** Shows transient data of the stream that belongs to no message. */
function receiveData(sessionId: string, part: { type: string; data: any }): void {
  if (part.type === 'data-session') updateOpen(sessionId, { state: part.data });
  if (part.type === 'data-notice') {
    const { title, description, content, severity, level } = part.data ?? {};
    const text = [title, description ?? content].filter((line) => typeof line === 'string').join(': ');
    if (text !== '') showNotice((severity ?? level) === 'error' ? 'error' : 'info', text);
  }
}

export function useSessionChat(token: string, sessionId: string): SessionChat {
  const transport = useMemo(() => new Transport(token), [token]);
  const onData = useCallback((part: { type: string; data: any }) => receiveData(sessionId, part), [sessionId]);
  const { messages, setMessages, sendMessage, resumeStream, stop: leaveStream, clearError, status, error } = useChat({
    id: sessionId,
    transport,
    throttle: THROTTLE_MS,
    onData,
  });
  const [isLoaded, setIsLoaded] = useState(false);
  const isRunning = status === 'submitted' || status === 'streaming';
  /** The turns and changes that the messages have. */
  const shown = useRef<{ changes: number; turn: string | null }>({ changes: -1, turn: null });

  // A prompt that is sent while the stored messages are read must stay in the list.
  const isBusy = useRef(false);
  isBusy.current = isRunning;
  const load = useCallback(async () => {
    const stored = await fetchMessages(token, sessionId);
    if (!isBusy.current) setMessages(stored);
    setIsLoaded(true);
    return stored;
  }, [token, sessionId, setMessages]);

  const synchronize = useCallback(async () => {
    try {
      const stored = await load();
      if (isBusy.current) return;
      await resumeStream();
      // A turn that ended between the two requests is complete in neither of their responses.
      const turnMayHaveEnded = stored.at(-1)?.role === 'user' || shown.current.turn !== null;
      if (!transport.foundTurn && turnMayHaveEnded) await load();
    } catch (failure) {
      setIsLoaded(true);
      report(failure);
    }
  }, [load, transport, resumeStream]);

  // While this window's own turn runs, changes wait until it is over.
  const changes = useStore(model, ({ changes }) => changes);
  const runningTurn = useStore(model, (now) => now.sessions?.find((info) => info.sessionId === sessionId)?.turnId ?? null);
  useEffect(() => {
    if (isRunning) return;
    const isNewTurn = runningTurn !== null && runningTurn !== shown.current.turn;
    if (changes === shown.current.changes && !isNewTurn) return;
    shown.current = { changes, turn: runningTurn ?? shown.current.turn };
    void synchronize();
  }, [changes, runningTurn, isRunning, synchronize]);

  // The list has the new title and the state of the session.
  useEffect(() => {
    if (isLoaded) void refreshSessions().catch(() => undefined);
  }, [isRunning, isLoaded]);

  /** A message instead of an answer: it is sent when this window has left the stream of the turn that asks. */
  const [instead, setInstead] = useState<string | null>(null);

  const send = useCallback(
    (text: string) => {
      if (isBusy.current) {
        setInstead(text);
        void leaveStream();
        return;
      }
      const id = generateId();
      addOwnMessage(id);
      shown.current.turn = id;
      isBusy.current = true;
      clearError();
      void sendMessage({ id, role: 'user', parts: [{ type: 'text', text }] });
    },
    [sendMessage, leaveStream, clearError],
  );

  useEffect(() => {
    if (instead === null || isRunning) return;
    setInstead(null);
    send(instead);
    // The messages miss the end of the turn that asked.
    shown.current.changes = -1;
  }, [instead, isRunning, send]);

  const stop = useCallback(() => void cancelTurn(token, sessionId).catch(report), [token, sessionId]);

  return { messages, isLoaded, isRunning, error: error ? words(error) : null, send, stop };
}
