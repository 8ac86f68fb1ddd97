// How a turn ended, by the metadata of its message.

/** Error of the turn, which is in the metadata under the name of the agent's protocol. */
export function turnError(metadata: unknown): string | null {
  for (const value of Object.values((metadata ?? {}) as Record<string, any>)) {
    const error = value?.error;
    if (typeof error?.message === 'string') return error.message;
    if (typeof error === 'string') return error;
  }
  return null;
}

export function wasCancelled(metadata: unknown): boolean {
  return Object.values((metadata ?? {}) as Record<string, any>).some((value) => value?.stopReason === 'cancelled');
}
