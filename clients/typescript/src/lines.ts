/**
 * Splits bytes into lines at `\n` only: JSON can contain U+2028 and U+2029, at which `node:readline` of some versions
 * splits, too.
 */
export class Lines {
  readonly #limit: number;
  // The pieces of an unfinished line, which are joined once: a line can have many megabytes.
  #pieces: Buffer[] = [];
  #length = 0;
  #wasCut = false;

  /** Creates a splitter that keeps this number of bytes of a line. */
  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Whether a line was longer than the limit. */
  get wasCut(): boolean {
    return this.#wasCut;
  }

  /** Bytes of the unfinished line. */
  get rest(): number {
    return this.#length;
  }

  /** Adds bytes; returns the lines that are complete. */
  push(bytes: Buffer): Buffer[] {
    const lines: Buffer[] = [];
    let begin = 0;
    for (let end = bytes.indexOf(0x0a); end !== -1; end = bytes.indexOf(0x0a, begin)) {
      this.#add(bytes.subarray(begin, end));
      lines.push(this.take());
      begin = end + 1;
    }
    this.#add(bytes.subarray(begin));
    return lines;
  }

  /** Removes and returns the unfinished line. */
  take(): Buffer {
    const line = this.#pieces.length === 1 ? this.#pieces[0]! : Buffer.concat(this.#pieces);
    this.#pieces = [];
    this.#length = 0;
    return line;
  }

  #add(piece: Buffer): void {
    const room = this.#limit - this.#length;
    if (piece.length > room) this.#wasCut = true;
    const kept = piece.subarray(0, room);
    if (kept.length === 0) return;
    this.#pieces.push(kept);
    this.#length += kept.length;
  }
}
