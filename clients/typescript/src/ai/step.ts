import type { Chunk } from '../protocol.js';
import type { PermissionData } from './data.js';

/** A part of a message, as far as approvals need it. */
export interface MessagePart {
  type: string;
  toolCallId?: string;
  state?: string;
  preliminary?: boolean;
  approval?: { id: string; approved?: boolean; reason?: string };
}

/**
 * Tool calls of the current step, to decide when a stream ends for an approval: `useChat` sends answers when the stream
 * has ended, and only when every call of the step is finished or answered.
 */
export class Step {
  /** Call → whether it is finished. */
  readonly #calls = new Map<string, boolean>();
  /** Approval → its call, until it is decided. */
  readonly #asked = new Map<string, string>();

  /** Records the calls of a message that a stream continues. */
  continue(parts: MessagePart[]): void {
    const begin = parts.findLastIndex(({ type }) => type === 'step-start') + 1;
    for (const { toolCallId, state, preliminary, approval } of parts.slice(begin)) {
      if (toolCallId === undefined) continue;
      this.#calls.set(toolCallId, !preliminary && ['output-available', 'output-error', 'output-denied'].includes(state ?? ''));
      if (approval && state === 'approval-requested') this.#asked.set(approval.id, toolCallId);
    }
  }

  /** Records a chunk. */
  observe(chunk: Chunk): void {
    switch (chunk.type) {
      case 'start-step':
        return this.#calls.clear();
      case 'tool-input-start':
      case 'tool-input-available':
        return void this.#calls.set(chunk.toolCallId, false);
      case 'tool-output-available':
        return chunk.preliminary ? undefined : this.#finish(chunk.toolCallId);
      case 'tool-output-error':
      case 'tool-input-error':
      case 'tool-output-denied':
        return this.#finish(chunk.toolCallId);
      case 'tool-approval-request':
        return void (chunk.isAutomatic || this.#asked.set(chunk.approvalId, chunk.toolCallId));
      case 'tool-approval-response':
        return void this.#asked.delete(chunk.approvalId);
      case 'data-permission':
        // Majors 6 and 5 report the decision only here.
        if ((chunk.data as PermissionData | null | undefined)?.approved !== undefined) this.#asked.delete(chunk.id);
    }
  }

  /** Whether the user must answer: `whileCallsRun` if other calls of the step are not finished. */
  userWait(isOpen: (approvalId: string) => boolean): 'no' | 'whileCallsRun' | 'yes' {
    const waiting = new Set([...this.#asked].filter(([approval]) => isOpen(approval)).map(([, call]) => call));
    if (waiting.size === 0) return 'no';
    const others = [...this.#calls].filter(([call, isFinished]) => !isFinished && !waiting.has(call));
    return others.length === 0 ? 'yes' : 'whileCallsRun';
  }

  #finish(call: string): void {
    this.#calls.set(call, true);
    for (const [approval, asked] of this.#asked) if (asked === call) this.#asked.delete(approval);
  }
}
