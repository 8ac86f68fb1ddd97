// Checks of the bodies that a browser sends.
import { invalid } from '../errors.js';
import type { QuestionAnswer } from '../protocol.js';
import type { Approval } from './open-requests.js';
import type { ChatRequest } from './request.js';

/** Checks the fields of a chat's request; `actionOf` checks its messages. */
export function checkChat(body: object): ChatRequest {
  const request = body as ChatRequest;
  oneOf('trigger', request.trigger, ['submit-message', 'regenerate-message']);
  checkApprovals(request.approvals);
  return request;
}

/** Checks how a page answers permission requests. */
export function checkApprovals(approvals: string | undefined): ChatRequest['approvals'] {
  return oneOf('approvals', approvals, ['nextRequest', 'inline']);
}

/** Checks a parameter of a query that is `true` or `false`. */
export function checkFlag(name: string, value: string | null): boolean {
  return oneOf(name, value ?? undefined, ['true', 'false']) === 'true';
}

/** Checks the answer to a permission request. */
export function checkApproval(body: object): Approval {
  const approval = body as Approval;
  if (typeof approval.approvalId !== 'string') throw invalid('approvalId: must be the id of the permission request');
  if (typeof approval.approved !== 'boolean') throw invalid('approved: must be true or false');
  for (const name of ['optionId', 'reason'] as const) {
    if (approval[name] !== undefined && typeof approval[name] !== 'string') throw invalid(`${name}: must be a string`);
  }
  return approval;
}

/** Checks the answer to a question. */
export function checkAnswer(body: object): QuestionAnswer & { questionId: string } {
  const answer = body as QuestionAnswer & { questionId: string };
  if (typeof answer.questionId !== 'string') throw invalid('questionId: must be the id of the question');
  if (oneOf('action', answer.action, ['accept', 'decline', 'cancel']) === undefined) {
    throw invalid('action: must be accept, decline or cancel');
  }
  return answer;
}

function oneOf<Value extends string>(name: string, value: Value | string | undefined, allowed: Value[]): Value | undefined {
  if (value === undefined || allowed.includes(value as Value)) return value as Value | undefined;
  throw invalid(`${name}: ${JSON.stringify(value)} is not known; use ${allowed.join(' or ')}`);
}
