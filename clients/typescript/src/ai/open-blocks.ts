import type { Chunk } from '../protocol.js';

/**
 * Blocks of text that a stream has begun. A reader forgets open blocks between two streams of one message, so that a
 * stream that continues a message must begin them again.
 */
export class OpenBlocks {
  readonly #open = new Set<string>();

  /** Returns what the stream sends for a chunk. */
  pass(chunk: Chunk): Chunk[] {
    switch (chunk.type) {
      case 'text-start':
      case 'reasoning-start':
        this.#open.add(chunk.id);
        return [chunk];
      case 'text-delta':
      case 'reasoning-delta': {
        if (this.#open.has(chunk.id)) return [chunk];
        this.#open.add(chunk.id);
        return [{ type: chunk.type === 'text-delta' ? 'text-start' : 'reasoning-start', id: chunk.id }, chunk];
      }
      case 'text-end':
      case 'reasoning-end':
        return this.#open.delete(chunk.id) ? [chunk] : [];
      default:
        return [chunk];
    }
  }
}
