import type { Chunk } from './protocol.js';

/** A chunk and its number in the session. */
export interface Entry {
  seq: number;
  turnId: string | null;
  chunk: Chunk;
}

/** Chunks in order, each once, for any number of readers. */
export class ChunkLog {
  #entries: Entry[] = [];
  #lastSeq: number | undefined;
  /** Live chunks that wait while stored ones before them are added. */
  #held: Entry[] | undefined;
  /** Whether chunks that the log has may come again. */
  #mayRepeat = false;
  #end: { error: unknown } | undefined;
  readonly #listeners = new Set<() => void>();

  /** Creates a log of the chunks after a number; without one, of those that come. */
  constructor(lastSeq?: number) {
    this.#lastSeq = lastSeq;
  }

  /** Number of the last chunk. */
  get lastSeq(): number | undefined {
    return this.#lastSeq;
  }

  get hasEnded(): boolean {
    return this.#end !== undefined;
  }

  /** Whether the log has the last chunk of a turn. */
  get hasLastChunk(): boolean {
    const type = this.#entries.at(-1)?.chunk.type;
    return type === 'finish' || type === 'abort' || type === 'error';
  }

  /** Adds a chunk that was received. */
  push(entry: Entry): void {
    if (this.#held) this.#held.push(entry);
    else this.#add(entry);
  }

  /** Makes live chunks wait for `catchUp`: after a lost connection, or before the first chunk, others are missing. */
  hold(): void {
    this.#held ??= [];
  }

  /** Drops waiting chunks up to a number: acpipe sends them again. */
  dropHeld(lastSeq: number): void {
    this.#held = this.#held?.filter(({ seq }) => seq > lastSeq);
  }

  /** Adds stored chunks after those that the log has, then the live ones that waited. */
  async catchUp(stored: () => AsyncIterable<Entry>): Promise<void> {
    this.hold();
    this.#mayRepeat = true;
    try {
      for await (const entry of stored()) this.#add(entry);
    } catch (error) {
      this.#held = []; // they are stored, too: the next attempt reads them
      throw error;
    }
    const held = this.#held!;
    this.#held = undefined;
    this.#mayRepeat = true;
    for (const entry of held) this.#add(entry);
  }

  /** Ends the log; readers get the error after the last chunk. */
  end(error?: unknown): void {
    this.#end ??= { error };
    this.#changed();
  }

  /** Calls the listener at every change; returns a function that removes it. */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** The entry at a position; `undefined` if there is none yet. */
  at(position: number): Entry | undefined {
    return this.#entries[position];
  }

  /** Reads the entries from the first one on, and waits for more until the log ends. */
  async *read(): AsyncGenerator<Entry, void, undefined> {
    for (let position = 0; ; position += 1) {
      while (position >= this.#entries.length && !this.#end) await this.#change();
      const entry = this.#entries[position];
      if (!entry) return this.check();
      yield entry;
    }
  }

  /** Like `read`, for the only reader: the log drops what was read. */
  async *take(): AsyncGenerator<Entry, void, undefined> {
    for (;;) {
      while (this.#entries.length === 0 && !this.#end) await this.#change();
      const taken = this.#entries;
      this.#entries = [];
      if (taken.length === 0) return this.check();
      yield* taken;
    }
  }

  /** Throws if the log ended with an error. */
  check(): void {
    if (this.#end?.error !== undefined) throw this.#end.error;
  }

  /** Waits for the next change. */
  #change(): Promise<void> {
    return new Promise((resolve) => {
      const stop = this.onChange(() => {
        stop();
        resolve();
      });
    });
  }

  #add(entry: Entry): void {
    const last = this.#lastSeq ?? 0;
    // A repetition begins at a smaller number. Chunks of profiles 6 and 5 can share a number, so that an equal number
    // is a repetition only after a reconnect.
    if (entry.seq < last) this.#mayRepeat = true;
    else if (entry.seq > last) this.#mayRepeat = false;
    if (this.#mayRepeat || this.#end) return;
    this.#lastSeq = entry.seq;
    this.#entries.push(entry);
    this.#changed();
  }

  #changed(): void {
    for (const listener of [...this.#listeners]) listener();
  }
}
