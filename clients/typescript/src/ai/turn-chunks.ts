// Chunks of a turn for one browser.
import type { ChunkLog } from '../chunk-log.js';
import type { Chunk } from '../protocol.js';
import type { OpenRequests } from './open-requests.js';
import type { PromptWait } from './prompt-wait.js';
import { OpenBlocks } from './open-blocks.js';
import type { Step } from './step.js';
import { errorChunks } from './turn-error.js';

/** Time that a stream stays open at a permission request while other tool calls run. */
const CALLS_FINISH_MS = 3_000;

export interface TurnView {
  log: ChunkLog;
  turnId: string;
  /** Number of the last chunk that the browser has. */
  afterSeq: number;
  /** Calls of the message that the stream continues. */
  step: Step;
  /** Open permission requests at which the stream ends; `undefined` if it stays open. */
  requests: OpenRequests | undefined;
  /** What the turn's prompt waits for, until the first chunk. */
  wait?: PromptWait | undefined;
}

/** Reads a turn until its end, or until the user must answer. */
export async function* turnChunks({ log, turnId, afterSeq, step, requests, wait: promptWait }: TurnView): AsyncGenerator<Chunk, void, undefined> {
  const blocks = new OpenBlocks();
  let lastSeq = afterSeq;
  let callsEnd: number | undefined;
  for (let position = 0; ; ) {
    const entry = log.at(position);
    if (entry) {
      position += 1;
      if (entry.seq <= afterSeq) continue;
      lastSeq = entry.seq;
      step.observe(entry.chunk);
      yield* blocks.pass(entry.chunk);
      if (isLast(entry.chunk)) return;
    } else if (log.hasEnded) {
      return log.check();
    }
    const waits = position === 0 && promptWait?.take();
    if (waits) yield notice('info', 'The message waits', waits);
    const wait = requests ? step.userWait(requests.isOpen) : 'no';
    if (wait === 'no') callsEnd = undefined;
    else if (wait === 'whileCallsRun') callsEnd ??= Date.now() + CALLS_FINISH_MS;
    const next = log.at(position);
    const mustEnd = wait === 'yes' || (wait === 'whileCallsRun' && !next && Date.now() >= callsEnd!);
    // Chunks with the same number belong together: the browser's position is between numbers.
    if (mustEnd && next?.seq !== lastSeq) {
      // The browser sends the metadata back, so that the next stream continues here.
      yield { type: 'message-metadata', messageMetadata: { acpipe: { turnId, afterSeq: lastSeq } } };
      return;
    }
    if (!next && !log.hasEnded) await change(log, [requests, position === 0 ? promptWait : undefined], callsEnd);
  }
}

interface Source {
  onChange(listener: () => void): () => void;
}

/** A notice that belongs to no message. */
export function notice(severity: string, title: string, description: string): Chunk {
  return { type: 'data-notice', data: { severity, title, description }, transient: true } as Chunk;
}

/** Whether a chunk is the last one of its turn. */
export function isLast({ type }: Chunk): boolean {
  return type === 'finish' || type === 'abort' || type === 'error';
}

/** Waits until the log or another source changes, or until a time. */
async function change(log: ChunkLog, others: Array<Source | undefined>, until: number | undefined): Promise<void> {
  const stops: Array<() => void> = [];
  await new Promise<void>((resolve) => {
    stops.push(log.onChange(resolve));
    for (const other of others) if (other) stops.push(other.onChange(resolve));
    if (until !== undefined) {
      const timer = setTimeout(resolve, Math.max(0, until - Date.now()));
      stops.push(() => clearTimeout(timer));
    }
  });
  for (const stop of stops) stop();
}

/** A stream of the chunks. Waits for the first one, so that a turn that cannot begin fails here. */
export async function streamOf(chunks: AsyncGenerator<Chunk, void, undefined>): Promise<ReadableStream<Chunk>> {
  const first = await chunks.next();
  return lazyStreamOf(chunks, () => {}, first);
}

/** A stream of the chunks, of which the first one may be known. `left` is called when the reader leaves. */
export function lazyStreamOf(chunks: AsyncGenerator<Chunk, void, undefined>, left: () => void, first?: IteratorResult<Chunk, void>): ReadableStream<Chunk> {
  let next = first;
  return new ReadableStream<Chunk>({
    async pull(controller) {
      try {
        const { done, value } = next ?? (await chunks.next());
        next = undefined;
        if (done) controller.close();
        else controller.enqueue(value!);
      } catch (error) {
        for (const chunk of errorChunks(error)) controller.enqueue(chunk);
        controller.close();
      }
    },
    // The turn goes on, and can be resumed.
    async cancel() {
      left();
      void chunks.return();
    },
  });
}
