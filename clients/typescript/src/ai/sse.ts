// Server-sent events of the AI SDK: one chunk an event, then `[DONE]`.
import { LINE_LIMIT, tooLong } from '../connection.js';
import { BadMessages, isObject, parse } from '../frame.js';
import type { Chunk } from '../protocol.js';

/** Time without chunks after which a comment is sent: proxies and Bun end silent connections, Bun after 10 s. */
const KEEP_ALIVE_MS = 5_000;

/** Data of the last event. */
const DONE = '[DONE]';

/** The response for a stream of chunks. */
export function eventStream(chunks: ReadableStream<Chunk>): Response {
  const headers = {
    'content-type': 'text/event-stream',
    'cache-control': 'no-cache',
    'x-vercel-ai-ui-message-stream': 'v1',
    'x-accel-buffering': 'no', // else nginx buffers the stream
  };
  return new Response(encode(chunks), { headers });
}

function encode(chunks: ReadableStream<Chunk>): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  const reader = chunks.getReader();
  let timer: ReturnType<typeof setInterval>;
  return new ReadableStream<Uint8Array>({
    start(controller) {
      const comment = encoder.encode(': keep-alive\n\n');
      controller.enqueue(comment); // servers and proxies send the headers with the first bytes
      timer = setInterval(() => controller.enqueue(comment), KEEP_ALIVE_MS);
    },
    async pull(controller) {
      try {
        const { done, value } = await reader.read();
        controller.enqueue(encoder.encode(`data: ${done ? DONE : JSON.stringify(value)}\n\n`));
        if (!done) return;
        clearInterval(timer);
        controller.close();
      } catch (error) {
        // A chunk that is nested too deeply to be encoded. The timer would throw after the end of the stream.
        clearInterval(timer);
        controller.error(error);
        await reader.cancel(error);
      }
    },
    async cancel(reason) {
      clearInterval(timer);
      await reader.cancel(reason);
    },
  });
}

/** Reads the chunks of a response. A stream without its last event is an error: a proxy can end one in the middle. */
export function readEvents(body: ReadableStream<Uint8Array>): ReadableStream<Chunk> {
  const decoder = new TextDecoder();
  const bad = new BadMessages('the server');
  // The pieces of an unfinished line, which are joined once.
  let pieces: string[] = [];
  let length = 0;
  let isDone = false;
  const take = (line: string, controller: TransformStreamDefaultController<Chunk>) => {
    if (!line.startsWith('data:')) return;
    const data = line.slice('data:'.length).trim();
    if (data === DONE) isDone = true;
    if (data === '' || data === DONE) return;
    const chunk = parse(data);
    if (isObject(chunk) && typeof chunk['type'] === 'string') controller.enqueue(chunk as unknown as Chunk);
    else bad.log('it is not a chunk', data);
  };
  const read = (text: string, controller: TransformStreamDefaultController<Chunk>) => {
    const [first = '', ...rest] = text.split('\n');
    pieces.push(first);
    length += first.length;
    for (const part of rest) {
      take(pieces.join(''), controller);
      pieces = [part];
      length = part.length;
    }
    if (length > LINE_LIMIT) throw tooLong('the server sent an event');
  };
  return body.pipeThrough(
    new TransformStream<Uint8Array, Chunk>({
      transform: (bytes, controller) => read(decoder.decode(bytes, { stream: true }), controller),
      flush() {
        if (!isDone) throw new Error('the stream ended before the answer');
      },
    }),
  );
}
