export { ClientChatTransport, type ClientChatTransportOptions } from './client-transport.js';
export { HttpChatTransport, type HttpChatTransportOptions } from './http-transport.js';
export { createChatHandler, type ChatHandlerOptions } from './handler.js';
export { sharedClient } from './shared-client.js';
export { toNodeHandler, type NodeRequest, type NodeResponse } from './node.js';
export type { ChatSession } from './chats.js';
export type { Approval } from './open-requests.js';
export type { ReconnectOptions, RequestOptions, SendOptions } from './transport.js';
export type { ChatMessage, ChatMessagePart } from '../message.js';
