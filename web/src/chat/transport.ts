// The AI SDK's transport, for acpipe's endpoints.

import { DefaultChatTransport, type UIMessage } from 'ai';
import { authorization, request } from './http';

export class Transport extends DefaultChatTransport<UIMessage> {
  /** `GET /api/chat/ID/stream` sends the running turn from its beginning. */
  readonly resumeStreamIsReplay = true;
  /** Whether the last attempt to resume found a running turn. */
  foundTurn = false;

  constructor(token: string) {
    super({
      headers: authorization(token),
      // The dialog answers through the WebSocket, so the stream need not end for it.
      body: { approvals: 'inline' },
      prepareReconnectToStreamRequest: ({ api, id }) => ({ api: `${api}/${encodeURIComponent(id)}/stream?approvals=inline` }),
      fetch: request,
    });
  }

  override async reconnectToStream(options: Parameters<DefaultChatTransport<UIMessage>['reconnectToStream']>[0]) {
    this.foundTurn = false;
    const stream = await super.reconnectToStream(options);
    this.foundTurn = stream !== null;
    return stream;
  }
}
