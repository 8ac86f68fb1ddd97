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
        if ('messageMetadata' in chunk) reported = errorIn(chunk.messageMetadata) ?? reported;
        if (chunk.type !== 'error' || reported?.kind === undefined) return controller.enqueue(chunk);
        const { kind, message: _, data, ...details } = reported;
        controller.error(new AcpipeError(kind, chunk.errorText, { ...details, ...data }));
      },
    }),
  );
}

/** The error in a message's metadata, which is under the name of the agent's protocol. */
function errorIn(metadata: unknown): ReportedError | undefined {
  const details = Object.values((metadata ?? {}) as Record<string, { error?: ReportedError } | undefined>);
  return details.find((detail) => detail?.error?.kind !== undefined)?.error;
}
