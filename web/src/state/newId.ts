/** Returns a random id. `crypto.randomUUID` does not exist on pages without TLS, such as those in a home network. */
export function newId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return `chat-${Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')}`;
}
