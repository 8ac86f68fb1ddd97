// Entry for browsers: everything but subprocesses.
export { connect, type ConnectOptions } from './connect.js';
export {
  Acpipe,
  type ClientOptions,
  type ConnectionState,
  type Events,
  type Handler,
  type Handlers,
} from './client.js';
export { AcpipeError, isKind, type ErrorKind } from './errors.js';
export { PermissionRequest, type AnswerDetails } from './permission.js';
export type { ChatMessage, ChatMessagePart } from './message.js';
export { Session } from './session.js';
export { FollowedTurn, Turn, type Message, type PromptOptions } from './turn.js';
export type { ChunkLog, Entry } from './chunk-log.js';
export type { WebSocketClass, WebSocketLike } from './websocket.js';
export type * from './protocol.js';
