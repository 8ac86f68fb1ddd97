import { invalid } from './errors.js';
import type { AskedTool, OfferedKind, OfferedOption, PermissionAnswer, PermissionParams, SelectedPermissionOutcome } from './protocol.js';

/** Extra fields of an answer. */
export type AnswerDetails = Omit<SelectedPermissionOutcome, 'outcome' | 'optionId'>;

/** A question of the agent: whether it may run a tool. */
export class PermissionRequest implements PermissionParams {
  declare readonly sessionId: string;
  declare readonly turnId: string | null;
  declare readonly questionId: string;
  /** Tool call to be approved. */
  declare readonly toolCall: AskedTool;
  /** Possible answers, in the agent's order. */
  declare readonly options: OfferedOption[];
  /** Command line that the tool runs. `null` if unknown. */
  declare readonly command: string | null;
  /** Paths that the tool works on. */
  declare readonly paths: string[];
  declare readonly standsFor: string[];
  declare readonly rule: string;
  declare readonly deadlineMs: number | null;

  constructor(params: PermissionParams) {
    // Not what has the name of a method, or of the prototype.
    for (const [name, value] of Object.entries(params)) if (!(name in this)) Object.assign(this, { [name]: value });
  }

  /** Allows this call once, or with the agent's closest option. */
  allow(details?: AnswerDetails): PermissionAnswer {
    return this.#choose('allow', details);
  }

  /** Refuses this call; `message` in the details is a reason for the agent. */
  deny(details?: AnswerDetails): PermissionAnswer {
    return this.#choose('reject', details);
  }

  /** Answers with one of `options`; throws if there is none with this id. */
  choose(optionId: string, details: AnswerDetails = {}): PermissionAnswer {
    const offered = this.options.map((option) => option.optionId);
    if (!offered.includes(optionId)) throw invalid(`the option "${optionId}" is not offered; use one of ${offered.join(', ')}`);
    return { outcome: { outcome: 'selected', optionId, ...details } };
  }

  #choose(effect: 'allow' | 'reject', details?: AnswerDetails): PermissionAnswer {
    const of = (kind: OfferedKind) => this.options.filter((option) => option.kind === kind);
    const usable = (kind: OfferedKind) => of(kind).filter((option) => !asksLess(option));
    // Any option that rejects is right; it is unknown which of several that allow is meant.
    const option =
      effect === 'reject'
        ? [...of('reject_once'), ...of('reject_always')][0]
        : only(usable('allow_once').length > 0 ? usable('allow_once') : usable('allow_always'));
    // An agent that offers no such option: acpipe counts it as a refusal.
    return option ? this.choose(option.optionId, details) : { outcome: { outcome: 'cancelled' } };
  }
}

function only<T>(list: T[]): T | undefined {
  return list.length === 1 ? list[0] : undefined;
}

/** Whether the agent asks less in general after this option: it changes the agent's mode, which is not what was asked about. */
function asksLess({ optionId, name }: OfferedOption): boolean {
  const elevated = /\b(auto|autopilot|bypass|dangerously|unrestricted|yolo|accept edits|full access|skip permissions)\b/;
  const words = (text: string) =>
    text
      .replace(/`[^`]*`/g, ' ')
      .replace(/(\p{Ll})(\p{Lu})/gu, '$1 $2')
      .replace(/[^\p{L}\p{N}]+/gu, ' ')
      .toLowerCase();
  return [optionId, name].some((text) => elevated.test(words(text)));
}
