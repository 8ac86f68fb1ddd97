// Server-sent events of the AI SDK: one chunk an event, then `[DONE]`.
import type { Chunk } from '../protocol.js';

/** Time without chunks after which a comment is sent: proxies and Bun end silent connections, Bun after 10 s. */
const KEEP_ALIVE_MS = 5_000;

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
      timer = setInterval(() => controller.enqueue(encoder.encode(': keep-alive\n\n')), KEEP_ALIVE_MS);
    },
    async pull(controller) {
      const { done, value } = await reader.read();
      controller.enqueue(encoder.encode(`data: ${done ? '[DONE]' : JSON.stringify(value)}\n\n`));
      if (!done) return;
      clearInterval(timer);
      controller.close();
    },
    async cancel(reason) {
      clearInterval(timer);
      await reader.cancel(reason);
    },
  });
}

/** Reads the chunks of a response. */
export function readEvents(body: ReadableStream<Uint8Array>): ReadableStream<Chunk> {
  const decoder = new TextDecoder();
  let rest = '';
  const read = (text: string, controller: TransformStreamDefaultController<Chunk>) => {
    const lines = (rest + text).split('\n');
    rest = lines.pop()!;
    for (const line of lines) {
      const data = line.startsWith('data: ') ? line.slice('data: '.length).trimEnd() : '';
      if (data !== '' && data !== '[DONE]') controller.enqueue(JSON.parse(data) as Chunk);
    }
  };
  return body.pipeThrough(
    new TransformStream<Uint8Array, Chunk>({
      transform: (bytes, controller) => read(decoder.decode(bytes, { stream: true }), controller),
    }),
  );
}
