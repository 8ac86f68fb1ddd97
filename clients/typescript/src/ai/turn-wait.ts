// The wait of a page for the next turn of its chat.
import type { Acpipe } from '../client.js';

/** Events of a chat while no turn runs. */
export class TurnWait {
  /** The first turn that began since the wait did. */
  turnId: string | undefined;
  /** Whether the chat was deleted, or closed for this client. */
  hasEnded = false;
  /** Number of the connection's events, which detach the client from the chat. */
  #reconnects = 0;
  readonly #signal: AbortSignal;
  readonly #listeners = new Set<() => void>();
  readonly #stops: Array<() => void>;

  /** Begins a wait, which the signal ends. */
  constructor(client: Acpipe, sessionId: string, signal: AbortSignal) {
    this.#signal = signal;
    const changed = () => this.#changed();
    signal.addEventListener('abort', changed);
    this.#stops = [
      () => signal.removeEventListener('abort', changed),
      client.on('session/chunk', (entry) => {
        if (entry.sessionId !== sessionId || entry.turnId === null || this.turnId !== undefined) return;
        this.turnId = entry.turnId;
        this.#changed();
      }),
      client.on('session/presence', ({ sessionId: of, clients }) => of === sessionId && clients.length === 0 && this.end()),
      client.on('connection', () => {
        this.#reconnects += 1;
        this.#changed();
      }),
    ];
  }

  /** Ends the wait: the chat was deleted. */
  end(): void {
    this.hasEnded = true;
    this.#changed();
  }

  /** Waits for a turn, for the end of the wait, for another state of the connection, or for a time. */
  async change(limitMs?: number): Promise<void> {
    const reconnects = this.#reconnects;
    const isDone = () => this.turnId !== undefined || this.hasEnded || this.#signal.aborted || this.#reconnects !== reconnects;
    if (isDone()) return;
    await new Promise<void>((resolve) => {
      const timer = limitMs === undefined ? undefined : setTimeout(done, limitMs);
      const listener = () => isDone() && done();
      const listeners = this.#listeners;
      function done(): void {
        clearTimeout(timer);
        listeners.delete(listener);
        resolve();
      }
      listeners.add(listener);
    });
  }

  /** Removes its listeners. */
  close(): void {
    for (const stop of this.#stops) stop();
  }

  #changed(): void {
    for (const listener of [...this.#listeners]) listener();
  }
}
