// What a queued prompt waits for, if it is an answer that this client cannot give.
import type { Acpipe } from '../client.js';

export class PromptWait {
  #note: string | undefined;
  readonly #listeners = new Set<() => void>();
  readonly #stop: () => void;

  constructor(client: Acpipe, sessionId: string) {
    this.#stop = client.on('session/activity', (activity) => {
      if (activity.sessionId !== sessionId || activity.waitingFor?.party !== 'client') return;
      this.#stop();
      this.#note = activity.waitingFor.note;
      for (const listener of [...this.#listeners]) listener();
    });
  }

  /** The note, once. */
  take(): string | undefined {
    const note = this.#note;
    this.#note = undefined;
    return note;
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Ends the wait. */
  end(): void {
    this.#stop();
    this.#note = undefined;
  }
}
