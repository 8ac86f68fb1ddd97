// Permission requests and questions of agents that wait for a browser.
import type { Acpipe } from '../client.js';
import { PermissionRequest } from '../permission.js';
import type { OfferedOption, PermissionAnswer, PermissionParams, QuestionAnswer, QuestionParams } from '../protocol.js';
import { invalid } from '../errors.js';

/** Answer of the user to a permission request. */
export interface Approval {
  approvalId: string;
  approved: boolean;
  /** Option of the agent. Default: the one that allows or rejects once. */
  optionId?: string;
  /** Reason of the user, for the agent. */
  reason?: string;
}

interface OpenRequest {
  sessionId: string | null;
  approve(approval: Approval): void;
  answer(answer: QuestionAnswer): boolean;
}

export class OpenRequests {
  readonly #open = new Map<string, OpenRequest>();
  /** Answers to requests that acpipe sends again to a new connection. */
  readonly #early = new Map<string, Approval & { used: () => void }>();
  readonly #listeners = new Set<() => void>();

  /** Handles the requests of a client, unless the app does. */
  async handle(client: Acpipe, withQuestions: boolean): Promise<void> {
    if (!client.handles('permission/request')) {
      await client.handle('permission/request', (params, { signal }) => this.#permission(params, signal));
    }
    if (withQuestions && !client.handles('question/ask')) {
      await client.handle('question/ask', (params, { signal }) => this.#question(params, signal));
    }
  }

  readonly isOpen = (id: string): boolean => this.#open.has(id);

  /** Answers a permission request or a plan; returns whether it is open. Throws if it does not offer the option. */
  approve(sessionId: string, approval: Approval): boolean {
    const request = this.#of(sessionId, approval.approvalId);
    request?.approve(approval);
    return request !== undefined;
  }

  /** Answers a permission request now, or when acpipe sends it; then calls `used`. Returns a function that drops the answer. */
  approveWhenOpen(sessionId: string, approval: Approval, used: () => void): () => void {
    if (this.approve(sessionId, approval)) used();
    else this.#early.set(approval.approvalId, { ...approval, used });
    return () => void this.#early.delete(approval.approvalId);
  }

  /** Answers a question; returns whether it is open. */
  answer(sessionId: string, questionId: string, answer: QuestionAnswer): boolean {
    return this.#of(sessionId, questionId)?.answer(answer) ?? false;
  }

  /** Calls the listener when a request arrives or is decided; returns a function that removes it. */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  #of(sessionId: string, id: string): OpenRequest | undefined {
    const request = this.#open.get(id);
    return request?.sessionId === sessionId ? request : undefined;
  }

  #permission(params: PermissionParams, signal: AbortSignal): Promise<PermissionAnswer> {
    const request = new PermissionRequest(params);
    return this.#wait<PermissionAnswer>(params.questionId, signal, (resolve) => ({
      sessionId: params.sessionId,
      approve: ({ approved, optionId, reason }) => {
        if (optionId !== undefined) checkOption(params.options, optionId, approved);
        const details = reason === undefined ? {} : { message: reason };
        if (optionId !== undefined) resolve(request.choose(optionId, details));
        else resolve(approved ? request.allow(details) : request.deny(details));
      },
      answer: () => false,
    }));
  }

  #question(params: QuestionParams, signal: AbortSignal): Promise<QuestionAnswer> {
    return this.#wait<QuestionAnswer>(params.questionId, signal, (resolve) => ({
      sessionId: params.sessionId,
      // A plan is shown as a tool with an approval, too.
      approve: ({ approved, optionId, reason }) => {
        const content = { ...(optionId !== undefined && { optionId }), ...(reason !== undefined && { feedback: reason }) };
        resolve({ action: approved ? 'accept' : 'decline', ...(Object.keys(content).length > 0 && { content }) });
      },
      answer: (answer) => {
        resolve(answer);
        return true;
      },
    }));
  }

  #wait<Answer>(id: string, signal: AbortSignal, create: (resolve: (answer: Answer) => void) => OpenRequest): Promise<Answer> {
    return new Promise<Answer>((resolve, reject) => {
      const close = () => {
        if (this.#open.get(id) === request) this.#open.delete(id);
        this.#changed();
      };
      const request = create((answer) => {
        close();
        resolve(answer);
      });
      signal.addEventListener('abort', () => {
        close();
        reject(signal.reason);
      });
      this.#open.set(id, request);
      const early = this.#early.get(id);
      if (early) {
        early.used();
        request.approve(early);
      }
      this.#changed();
    });
  }

  #changed(): void {
    for (const listener of [...this.#listeners]) listener();
  }
}

/** acpipe would refuse the tool call for an option that is not offered, while the browser reads that it was allowed. */
function checkOption(options: OfferedOption[], optionId: string, approved: boolean): void {
  const option = options.find((offered) => offered.optionId === optionId);
  const id = JSON.stringify(optionId);
  if (!option) throw invalid(`optionId: ${id} is not offered; use one of ${options.map((offered) => offered.optionId).join(', ')}`);
  if (option.kind.startsWith('allow') === approved) return;
  throw invalid(`optionId: ${id} is of the kind ${option.kind}, but approved is ${approved}`);
}
