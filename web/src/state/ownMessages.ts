// Ids of the messages that this window has sent.

const own = new Set<string>();

export function addOwnMessage(id: string): void {
  own.add(id);
}

export function isOwnMessage(id: string): boolean {
  return own.has(id);
}
