/** Listeners by the name of an event. */
export class Emitter<Events> {
  readonly #listeners = new Map<keyof Events, Set<(value: never) => void>>();

  /** Adds a listener; returns a function that removes it. */
  on<Name extends keyof Events>(name: Name, listener: (value: Events[Name]) => void): () => void {
    const all = this.#listeners.get(name) ?? new Set();
    this.#listeners.set(name, all.add(listener));
    return () => void all.delete(listener);
  }

  emit<Name extends keyof Events>(name: Name, value: Events[Name]): void {
    for (const listener of [...(this.#listeners.get(name) ?? [])]) {
      // One listener that fails stops neither the others nor the program, also if it is asynchronous.
      const report = (error: unknown) => console.error(`acpipe: a listener of ${String(name)} failed`, error);
      try {
        Promise.resolve((listener as (value: Events[Name]) => unknown)(value)).catch(report);
      } catch (error) {
        report(error);
      }
    }
  }
}
