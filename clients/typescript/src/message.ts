// The parts of the AI SDK's types that this package uses: they have to fit every major version, and work without it.

/** A `UIMessage` of the AI SDK, for programs without it. */
export interface ChatMessage {
  id: string;
  role: 'system' | 'user' | 'assistant';
  parts: ChatMessagePart[];
  /** Tokens, cost, stop reason and error of the turn, under the name of the agent's protocol, such as `acp`. */
  metadata?: any;
}

/** A part of a message. Its other fields depend on the type: `text` has `text`, `dynamic-tool` has `toolName` and `state`. */
export interface ChatMessagePart {
  type: string;
  [field: string]: any;
}
