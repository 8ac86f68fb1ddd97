// A turn of the mock server: the chunks so far, their readers, and what a scenario can do in it.

import { readUIMessageStream } from 'ai';

/** Thrown in a scenario whose turn was cancelled. */
class Cancelled extends Error {}

export class Turn {
  readers = new Set();
  chunks = [];
  #session;
  #gates;
  #blocks = 0;
  #questions = 0;
  #kinds = new Map();
  #cancel = deferred();

  constructor(session, gates, id) {
    this.#session = session;
    this.#gates = gates;
    this.id = id;
    this.messageId = `msg-${id}`;
    this.#cancel.promise.catch(() => undefined);
  }

  async run(scenario, prompt) {
    this.emit({ type: 'start', messageId: this.messageId, messageMetadata: { acp: { sessionId: 'mock' } } });
    this.emit({ type: 'start-step' });
    try {
      await scenario(this, prompt);
      this.emit({ type: 'finish-step' });
      this.emit({ type: 'finish', finishReason: 'stop', messageMetadata: { acp: { stopReason: 'end_turn' } } });
    } catch (error) {
      this.emit({ type: 'finish-step' });
      if (error instanceof Cancelled) {
        this.emit({ type: 'message-metadata', messageMetadata: { acp: { stopReason: 'cancelled' } } });
        this.emit({ type: 'abort', reason: 'cancelled by the client' });
      } else {
        const failure = { kind: 'session', message: error.message };
        this.emit({ type: 'message-metadata', messageMetadata: { acp: { error: failure } } });
        this.emit({ type: 'error', errorText: error.message });
      }
    }
  }

  emit(chunk) {
    this.chunks.push(chunk);
    for (const reader of this.readers) reader(chunk);
  }

  /** The message so far, as it is stored. */
  async message() {
    const stream = new ReadableStream({
      start: (controller) => {
        for (const chunk of this.chunks) if (!chunk.transient && chunk.type !== 'error') controller.enqueue(chunk);
        controller.close();
      },
    });
    let last;
    for await (const message of readUIMessageStream({ stream })) last = message;
    return last;
  }

  cancel() {
    this.#cancel.reject(new Cancelled('cancelled'));
  }

  /** Waits until the test opens the gate. */
  gate(name) {
    return Promise.race([this.#gates.passed(name), this.#cancel.promise]);
  }

  text(text) {
    const id = `${this.messageId}.${++this.#blocks}`;
    this.emit({ type: 'text-start', id });
    this.emit({ type: 'text-delta', id, delta: text });
    this.emit({ type: 'text-end', id });
  }

  /** Text in pieces; the last call has `isLast`. */
  beginText() {
    const id = `${this.messageId}.${++this.#blocks}`;
    this.emit({ type: 'text-start', id });
    return {
      add: (delta) => this.emit({ type: 'text-delta', id, delta }),
      end: () => this.emit({ type: 'text-end', id }),
    };
  }

  thought(text) {
    const id = `${this.messageId}.${++this.#blocks}`;
    this.emit({ type: 'reasoning-start', id });
    this.emit({ type: 'reasoning-delta', id, delta: text });
    this.emit({ type: 'reasoning-end', id });
  }

  tool(toolCallId, { toolName, title, kind, input, content }) {
    this.#kinds.set(toolCallId, kind);
    this.emit({
      type: 'tool-input-available',
      toolCallId,
      toolName,
      input: input ?? {},
      dynamic: true,
      providerExecuted: true,
      title,
      toolMetadata: { acp: { kind, status: 'in_progress', ...(content && { content }) } },
    });
    this.#session.notify('session/activity', { activity: { toolName, description: title }, waitingFor: null });
  }

  toolOutput(toolCallId, output) {
    const toolMetadata = { acp: { kind: this.#kinds.get(toolCallId), status: 'completed' } };
    this.emit({ type: 'tool-output-available', toolCallId, output, dynamic: true, providerExecuted: true, toolMetadata });
    this.#session.notify('session/activity', { activity: null, waitingFor: null });
  }

  toolError(toolCallId, errorText) {
    this.emit({ type: 'tool-output-error', toolCallId, errorText, dynamic: true, providerExecuted: true });
  }

  /** A terminal in a tool call. */
  terminal(toolCallId, id, cwd) {
    let output = '';
    const show = (details) => this.data('terminal', id, { toolCallId, output, details: { cwd, ...details } });
    return {
      write(data) {
        output += data;
        show();
      },
      exit: (code) => show({ exit_code: code }),
    };
  }

  plan(entries) {
    this.data('plan', 'plan', { entries });
  }

  data(type, id, data) {
    this.emit({ type: `data-${type}`, ...(id && { id }), data });
  }

  setTitle(title) {
    this.#session.setState({ title });
  }

  async permission(toolCallId, tool, options, extra = {}) {
    const questionId = `${this.messageId}.ask${++this.#questions}`;
    const data = { toolCallId, toolCall: { title: tool.title, kind: tool.kind, rawInput: tool.input }, options };
    this.data('permission', questionId, data);
    this.emit({ type: 'tool-approval-request', approvalId: questionId, toolCallId, approvalDescriptor: { options }, isAutomatic: false });
    const { result, by = 'client' } = await this.#ask('permission/request', questionId, {
      toolCall: { toolCallId, toolName: tool.toolName, title: tool.title, kind: tool.kind, input: tool.input, content: tool.content ?? null, locations: null },
      options,
      command: extra.command ?? null,
      paths: extra.paths ?? [],
      standsFor: [],
      rule: 'permissions "ask"',
      ...(extra.answeredBefore && { answeredBefore: extra.answeredBefore }),
    });
    const chosen = options.find(({ optionId }) => optionId === result.outcome.optionId);
    const approved = chosen?.kind.startsWith('allow') ?? false;
    const why = by === 'message' ? 'because the user sent a new message' : 'by client';
    const reason = `${approved ? 'approved' : 'refused'} ${why}: ${chosen?.name ?? 'dismissed'}`;
    this.emit({ type: 'tool-approval-response', approvalId: questionId, approved, reason });
    const feedback = result.outcome.message;
    this.data('permission', questionId, { ...data, outcome: result.outcome, approved, reason, by, ...(feedback && { feedback }) });
    if (!approved) this.emit({ type: 'tool-output-denied', toolCallId });
    return { approved, chosen: chosen?.optionId };
  }

  async question(details) {
    const questionId = `${this.messageId}.ask${++this.#questions}`;
    const data = { kind: details.kind, message: details.message, schema: details.schema };
    this.data('question', questionId, data);
    const { result } = await this.#ask('question/ask', questionId, { schema: null, url: null, options: [], toolCall: null, ...details });
    const { action, content } = result;
    this.data('question', questionId, { ...data, action, by: 'client', ...(content && { content }) });
    return { action, content };
  }

  async #ask(method, questionId, params) {
    this.#session.setWaiting(true);
    const request = this.#session.ask(method, { questionId, turnId: this.id, deadlineMs: 300_000, ...params });
    try {
      return await Promise.race([request.answer, this.#cancel.promise]);
    } catch (error) {
      request.withdraw('cancel');
      throw error;
    } finally {
      this.#session.setWaiting(false);
    }
  }
}

export function deferred() {
  let resolve, reject;
  const promise = new Promise((onResolve, onReject) => ([resolve, reject] = [onResolve, onReject]));
  return { promise, resolve, reject };
}
