'use client';
// The React hook for a chat that follows other tabs and clients.
import { Chat, useChat, type UseChatHelpers } from '@ai-sdk/react';
import type { ChatInit, UIMessage } from 'ai';
import { useCallback, useEffect, useMemo, useRef, useState } from 'react';
import { HttpChatTransport, type HttpChatTransportOptions } from './ai/http-transport.js';
import { LiveChat, openRequests, type LiveState, type OpenRequest } from './ai/live-chat.js';
import type { Approval } from './ai/open-requests.js';
import type { LiveTransport } from './ai/transport.js';
import type { QuestionAnswer } from './protocol.js';

export type { LiveTransport, OpenRequest };

/** Options of `useAcpipeChat`: those of `useChat`, and the address. Only `id` is needed. */
export interface UseAcpipeChatOptions<Message extends UIMessage>
  extends Omit<ChatInit<Message>, 'id' | 'transport' | 'sendAutomaticallyWhen' | 'experimental_queue'>,
    HttpChatTransportOptions {
  /** Id of the chat, which is the id of the session. */
  id: string;
  /** Transport in place of the address. Must be the same object each time. */
  transport?: LiveTransport<Message>;
  /** Time between two updates of the messages, in milliseconds. Default: each chunk updates them. */
  throttle?: number;
}

/** Result of `useAcpipeChat`: that of `useChat`, and what follows. */
export interface AcpipeChat<Message extends UIMessage> extends Omit<UseChatHelpers<Message>, 'stop' | 'addToolApprovalResponse'> {
  /** Whether the stored messages have been read. */
  isLoaded: boolean;
  /** Whether a turn runs, also one that another client prompted. */
  isRunning: boolean;
  /** Permission requests and questions that wait for the user. A request goes when any client has answered it. */
  requests: OpenRequest[];
  /**
   * Answers a permission request, optionally with one of the agent's options. Returns `false` if another client has answered
   * it: the part `data-permission` has that decision (`approved`, `reason`, `by`).
   */
  approve(requestId: string, answer: Omit<Approval, 'approvalId'>): Promise<boolean>;
  /** Answers a question. Returns `false` if another client has answered it. */
  answer(requestId: string, answer: QuestionAnswer): Promise<boolean>;
  /** Like `approve`, for components that are written for `useChat`. */
  addToolApprovalResponse(answer: { id: string; approved: boolean; reason?: string }): Promise<void>;
  /** Cancels the running turn, also one that another client prompted. */
  stop(): Promise<void>;
  /** Deletes the chat with its messages. Other tabs show it empty. */
  deleteChat(): Promise<void>;
}

const INITIAL: LiveState = { isLoaded: false, error: undefined };

/**
 * A chat with an agent, for React: `useChat` that also shows the stored messages, a turn that runs when the page is loaded, and
 * the prompts, answers and decisions of other tabs and clients while they happen. It is connected again after a lost connection.
 *
 * @example
 * const chat = useAcpipeChat({ id, api: '/api/chat' });
 */
export function useAcpipeChat<Message extends UIMessage = UIMessage>(options: UseAcpipeChatOptions<Message>): AcpipeChat<Message> {
  const latest = useRef(options);
  latest.current = options;
  const { id, api, token, major, transport: given, throttle } = options;
  const [state, setState] = useState(INITIAL);
  const { chat, live, transport } = useMemo(() => {
    const { transport: _given, throttle: _throttle, api, token, major, body, headers, credentials, fetch, ...init } = latest.current;
    const http = Object.entries({ api, token, major, body, headers, credentials, fetch }).filter(([, value]) => value !== undefined);
    const transport = given ?? (new HttpChatTransport(Object.fromEntries(http)) as LiveTransport<Message>);
    const live = new LiveChat<Message>(transport, setState);
    const chat = new Chat<Message>({
      ...(init as ChatInit<Message>),
      transport: live.transport,
      onError: (error) => latest.current.onError?.(error),
      onData: (part) => latest.current.onData?.(part),
      onFinish: (event) => latest.current.onFinish?.(event),
      onToolCall: (event) => latest.current.onToolCall?.(event),
    });
    return { chat, live, transport };
  }, [id, api, token, major, given]);

  useEffect(() => {
    setState(INITIAL);
    const end = live.follow(chat);
    return () => {
      end();
      void live.leave();
    };
  }, [chat, live]);

  const shown = useChat<Message>({ chat, ...(throttle !== undefined && { throttle, experimental_throttle: throttle }) });
  const { messages, status } = shown;
  const requests = useMemo(() => openRequests(messages), [messages]);

  const sendMessage: typeof shown.sendMessage = useCallback(
    async (...message) => {
      await live.leave();
      await chat.sendMessage(...message);
    },
    [chat, live],
  );
  const regenerate: typeof shown.regenerate = useCallback(
    async (...message) => {
      await live.leave();
      await chat.regenerate(...message);
    },
    [chat, live],
  );
  const approve = useCallback(
    (approvalId: string, answer: Omit<Approval, 'approvalId'>) => transport.approve(id, { ...answer, approvalId }),
    [id, transport],
  );
  const addToolApprovalResponse = useCallback(
    async ({ id, approved, reason }: { id: string; approved: boolean; reason?: string }) => {
      await approve(id, { approved, ...(reason !== undefined && { reason }) });
    },
    [approve],
  );
  const answer = useCallback(
    (questionId: string, answer: QuestionAnswer) => transport.answer(id, { ...answer, questionId }),
    [id, transport],
  );
  const stop = useCallback(async () => void (await transport.cancel(id)), [id, transport]);
  const deleteChat = useCallback(() => live.delete(), [live]);

  return {
    ...shown,
    error: shown.error ?? state.error,
    isLoaded: state.isLoaded,
    isRunning: status === 'submitted' || status === 'streaming',
    requests,
    sendMessage,
    regenerate,
    approve,
    answer,
    addToolApprovalResponse,
    stop,
    deleteChat,
  };
}
