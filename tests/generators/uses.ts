// A program on the generated types; tsc checks it.
import type { Chunk, ChunkParams, PromptParams } from "./bundle";
import type { Chunk as ChunkAlone } from "./chunk";
import type { TurnSummary } from "./turn-summary";

/** The discriminator of a union narrows its type. */
export function text({ chunk }: ChunkParams): string {
  return chunk.type === "text-delta" ? chunk.delta : "";
}

export const same = (chunk: ChunkAlone): Chunk => chunk;

export const failed = (summary: TurnSummary): boolean => summary.errors.some(({ kind }) => kind === "timeout");

// @ts-expect-error: a prompt has a message
export const empty: PromptParams = {};

// @ts-expect-error: there is no such chunk
export const unheard: Chunk["type"] = "unheard-of";
