import type { SessionInfo } from '../rpc/types';
import { clip } from '../text/LongText';

/** Last part of a path. */
export function baseName(path: string): string {
  return path.split(/[\\/]/).filter(Boolean).at(-1) ?? path;
}

/** Title of a session for people; agents report one after the first turn. */
export function sessionLabel({ title, cwd }: SessionInfo): string {
  return clip(title?.trim() ?? '') || `New chat in ${baseName(cwd)}`;
}

export type Badge = 'waiting' | 'running' | 'idle';

/** What the session does: `waiting` needs the user. */
export function sessionBadge({ activity, turnId, state }: SessionInfo): Badge {
  if (activity) return activity;
  return turnId !== null || state === 'opening' ? 'running' : 'idle';
}
