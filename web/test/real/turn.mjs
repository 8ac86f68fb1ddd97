// A turn of the ACP agent: what a scenario can do in it, as updates and requests of ACP.

import { deferred } from '../mock/turn.mjs';

/** Thrown in a scenario whose turn was cancelled. */
class Cancelled extends Error {}

/** Gates at which scenarios wait, until a test opens them. */
export class GateList {
  #gates = new Map();

  #gate(name) {
    if (!this.#gates.has(name)) this.#gates.set(name, deferred());
    return this.#gates.get(name);
  }

  open(name) {
    this.#gate(name).resolve();
  }

  passed(name) {
    return this.#gate(name).promise;
  }
}

export class AcpTurn {
  #outgoing;
  #gates;
  #sessionId;
  #number;
  #cancel = deferred();

  constructor(outgoing, gates, sessionId, number) {
    this.#outgoing = outgoing;
    this.#gates = gates;
    this.#sessionId = sessionId;
    this.#number = number;
    this.#cancel.promise.catch(() => undefined);
  }

  async run(scenario, prompt) {
    try {
      await scenario(this, prompt);
      return { stopReason: 'end_turn' };
    } catch (error) {
      if (error instanceof Cancelled) return { stopReason: 'cancelled' };
      throw error;
    }
  }

  cancel() {
    this.#cancel.reject(new Cancelled('cancelled'));
  }

  #update(sessionUpdate, fields) {
    this.#outgoing.update(this.#sessionId, { sessionUpdate, ...fields });
  }

  #request(method, params) {
    const answer = this.#outgoing.request(method, { sessionId: this.#sessionId, ...params });
    return Promise.race([answer, this.#cancel.promise]);
  }

  /** Calls of a session have different ids. */
  #call(toolCallId) {
    return `${toolCallId}-of-${this.#number}`;
  }

  gate(name) {
    return Promise.race([this.#gates.passed(name), this.#cancel.promise]);
  }

  text(text) {
    this.#update('agent_message_chunk', { content: { type: 'text', text } });
  }

  beginText() {
    return { add: (delta) => this.text(delta), end() {} };
  }

  thought(text) {
    this.#update('agent_thought_chunk', { content: { type: 'text', text } });
  }

  tool(toolCallId, { title, kind, input, content }) {
    const call = { toolCallId: this.#call(toolCallId), title, kind, status: 'in_progress', rawInput: input ?? {} };
    this.#update('tool_call', { ...call, ...(content && { content }) });
  }

  toolOutput(toolCallId, output) {
    this.#update('tool_call_update', { toolCallId: this.#call(toolCallId), status: 'completed', ...output });
  }

  toolError(toolCallId, text) {
    const content = [{ type: 'content', content: { type: 'text', text } }];
    this.#update('tool_call_update', { toolCallId: this.#call(toolCallId), status: 'failed', content });
  }

  /** A terminal of the agent's own, in a tool call. */
  terminal(toolCallId, id, cwd) {
    const terminal = { terminal_id: `${id}-of-${this.#number}` };
    const send = (meta, fields) => this.#update('tool_call_update', { toolCallId: this.#call(toolCallId), ...fields, _meta: meta });
    send({ terminal_info: { ...terminal, cwd } }, { content: [{ type: 'terminal', terminalId: terminal.terminal_id }] });
    return {
      write: (data) => send({ terminal_output: { ...terminal, data } }),
      exit: (code) => send({ terminal_exit: { ...terminal, exit_code: code, signal: null } }),
    };
  }

  plan(entries) {
    this.#update('plan', { entries });
  }

  setTitle(title) {
    this.#update('session_info_update', { title });
  }

  async permission(toolCallId, tool, options) {
    const toolCall = { toolCallId: this.#call(toolCallId), title: tool.title, kind: tool.kind, rawInput: tool.input };
    const { outcome } = await this.#request('session/request_permission', { toolCall, options });
    const chosen = options.find(({ optionId }) => optionId === outcome.optionId);
    return { approved: chosen?.kind.startsWith('allow') ?? false, chosen: chosen?.optionId };
  }

  /** A form, or the approval of a plan, which is a permission request in ACP. */
  async question({ kind, message, schema, options }) {
    if (kind !== 'plan') return this.#request('elicitation/create', { mode: 'form', message, requestedSchema: schema });
    const content = [{ type: 'content', content: { type: 'text', text: message } }];
    const toolCall = { toolCallId: this.#call('plan'), title: 'Ready to code?', kind: 'switch_mode', content };
    const { outcome } = await this.#request('session/request_permission', { toolCall, options });
    return { action: 'accept', content: { optionId: outcome.optionId } };
  }
}
