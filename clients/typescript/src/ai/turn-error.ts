import { AcpipeError, type ErrorKind } from '../errors.js';
import type { Chunk } from '../protocol.js';

interface ReportedError {
  kind?: ErrorKind;
  message?: string;
  data?: Record<string, unknown>;
}

/**
 * A stream that fails with an `AcpipeError` at the chunk `error`, from which the AI SDK makes an error without a kind. The
 * metadata before the chunk has the kind; without it, the chunk is passed on.
 */
export function failingAtError(chunks: ReadableStream<Chunk>): ReadableStream<Chunk> {
  let reported: ReportedError | undefined;
  return chunks.pipeThrough(
    new TransformStream<Chunk, Chunk>({
      transform(chunk, controller) {
        reported = errorIn(chunk) ?? reported;
        if (chunk.type !== 'error' || reported?.kind === undefined) return controller.enqueue(chunk);
        const { kind, message: _, data, ...details } = reported;
        controller.error(new AcpipeError(kind, chunk.errorText, { ...details, ...data }));
      },
    }),
  );
}

/**
 * The end of a stream whose turn cannot be followed to its end, for example because acpipe cannot be started again. Like the
 * errors of agents, it has the kind in the metadata.
 */
export function errorChunks(error: unknown): Chunk[] {
  const { kind, message = String(error) } = error as Partial<AcpipeError>;
  const end: Chunk = { type: 'error', errorText: message };
  if (kind === undefined) return [end];
  return [{ type: 'message-metadata', messageMetadata: { acpipe: { error: { kind, message } } } }, end];
}

/** The error with a kind in the metadata of a chunk, under the name of the agent's protocol or `acpipe`. */
function errorIn(chunk: Chunk): ReportedError | undefined {
  const metadata = 'messageMetadata' in chunk ? chunk.messageMetadata : undefined;
  const details = Object.values((metadata ?? {}) as Record<string, { error?: ReportedError } | undefined>);
  return details.find((detail) => typeof detail?.error?.kind === 'string')?.error;
}
