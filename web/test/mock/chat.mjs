// The chat endpoints of the mock server.

import { json } from 'node:stream/consumers';

const STREAM_HEADERS = {
  'content-type': 'text/event-stream',
  'cache-control': 'no-cache',
  'x-vercel-ai-ui-message-stream': 'v1',
};

/** Sends the chunks of a turn from its beginning, then the live ones. */
function stream(turn, response) {
  response.writeHead(200, STREAM_HEADERS);
  const send = (chunk) => {
    if (chunk === null) response.end('data: [DONE]\n\n');
    else response.write(`data: ${JSON.stringify(chunk)}\n\n`);
  };
  turn.chunks.forEach(send);
  turn.readers.add(send);
  response.on('close', () => turn.readers.delete(send));
}

export async function serveChat(server, request, response, pathname, isObserver) {
  const [, id, action = 'prompt'] = pathname.match(/^\/api\/chat(?:\/([^/]+)\/([a-z]+))?$/) ?? [];
  const text = (status, words) => response.writeHead(status, { 'content-type': 'text/plain' }).end(words);
  const reply = (value) => response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(value));
  if (request.method === 'POST' && isObserver) return text(403, 'this token only allows to watch');

  const body = request.method === 'POST' ? await json(request) : null;
  const session = server.sessions.get(id ? decodeURIComponent(id) : body?.id);
  if (!session) return action === 'messages' ? reply({ messages: [] }) : text(404, 'session not found; call `session/ensure` first');
  switch (`${request.method} ${action}`) {
    case 'GET messages':
      return reply({ messages: await session.messages() });
    case 'GET stream':
      if (!request.url.endsWith('?approvals=inline')) return text(400, 'approvals: the mock server only has "inline"');
      return session.turn ? stream(session.turn, response) : response.writeHead(204).end();
    case 'POST cancel':
      session.turn?.cancel();
      return reply({ cancelled: session.turn !== null });
    case 'POST prompt':
      if (body.approvals !== 'inline') return text(400, 'approvals: the mock server only has "inline"');
      return stream(await session.prompt(body.messages.at(-1)), response);
    default:
      return text(404, 'no such endpoint');
  }
}
