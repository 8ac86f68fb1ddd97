// Adapter for `node:http` and Express. Without imports of Node: browsers load this module, too.

/** The parts of `http.IncomingMessage` and Express's `Request` that are used. */
export interface NodeRequest extends AsyncIterable<Uint8Array> {
  method?: string | undefined;
  url?: string | undefined;
  /** Express: the path with the part at which a router is mounted. */
  originalUrl?: string;
  headers: Record<string, string | string[] | undefined>;
  /** Express: the body, if a parser has read it. */
  body?: unknown;
}

/** The parts of `http.ServerResponse` that are used. */
export interface NodeResponse {
  writeHead(status: number, headers: Record<string, string>): unknown;
  flushHeaders(): void;
  write(bytes: Uint8Array): boolean;
  end(): unknown;
  destroy(): unknown;
  once(event: 'close' | 'drain', listener: () => void): unknown;
  off(event: 'close' | 'drain', listener: () => void): unknown;
  destroyed: boolean;
}

/** Makes a handler of `Request`s one of `node:http`, for `createServer(…)` and Express's `app.use(…)`. */
export function toNodeHandler(
  handler: (request: Request) => Promise<Response>,
): (request: NodeRequest, response: NodeResponse) => Promise<void> {
  return async (request, response) => {
    const answer = await answerOf(handler, request);
    response.writeHead(answer.status, Object.fromEntries(answer.headers));
    response.flushHeaders();
    const reader = answer.body?.getReader();
    const left = () => void reader?.cancel().catch(() => {});
    response.once('close', left);
    try {
      for (let part = await reader?.read(); part && !part.done; part = await reader!.read()) {
        if (!response.write(part.value)) await drained(response);
      }
    } catch {
      return void response.destroy(); // without its end, so that the browser knows that something is missing
    }
    response.off('close', left);
    response.end();
  };
}

/** The answer to a request. A rejection would end the program: `node:http` does not handle it. */
async function answerOf(handler: (request: Request) => Promise<Response>, request: NodeRequest): Promise<Response> {
  let valid: Request;
  try {
    valid = await toRequest(request);
  } catch {
    // `Request` has no such address or method, or the body did not arrive.
    return new Response('the request is not valid', { status: 400 });
  }
  try {
    return await handler(valid);
  } catch (error) {
    console.error('acpipe: the handler of a request failed', error);
    return new Response('the handler failed', { status: 500 });
  }
}

async function toRequest(request: NodeRequest): Promise<Request> {
  const url = new URL(request.originalUrl ?? request.url ?? '/', `http://${String(request.headers['host'] ?? 'localhost')}`);
  const headers = new Headers();
  for (const [name, value] of Object.entries(request.headers)) {
    for (const one of [value ?? []].flat()) headers.append(name, one);
  }
  const method = request.method ?? 'GET';
  const hasBody = method !== 'GET' && method !== 'HEAD';
  return new Request(url, { method, headers, ...(hasBody && { body: await bodyOf(request) }) });
}

async function bodyOf(request: NodeRequest): Promise<string | Blob> {
  if (request.body !== undefined) return typeof request.body === 'string' ? request.body : JSON.stringify(request.body);
  const parts: BlobPart[] = [];
  for await (const part of request) parts.push(part as Uint8Array<ArrayBuffer>);
  return new Blob(parts);
}

/** Waits until more can be written, or the connection is closed. */
function drained(response: NodeResponse): Promise<void> {
  return new Promise((resolve) => {
    if (response.destroyed) return resolve();
    const done = () => {
      response.off('drain', done);
      response.off('close', done);
      resolve();
    };
    response.once('drain', done);
    response.once('close', done);
  });
}
