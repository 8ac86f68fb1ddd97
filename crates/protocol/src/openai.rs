//! Chat completions of OpenAI and the servers that imitate it, read tolerantly.

use acpipe_json::raw_object;

raw_object! {
    /// A completion, or a chunk of one.
    pub struct Completion { choices = "choices", usage = "usage", error = "error", .. }
}

raw_object! {
    /// One of the answers of a completion.
    pub struct CompletionChoice {
        index = "index",
        /// The next piece, in a chunk.
        delta = "delta",
        /// The whole message.
        message = "message",
        finish_reason = "finish_reason",
        ..
    }
}

raw_object! {
    /// A message, or a piece of one.
    pub struct CompletionMessage {
        role = "role",
        content = "content",
        /// Reasoning of DeepSeek, vLLM, LiteLLM and others.
        reasoning_content = "reasoning_content",
        /// Reasoning of OpenRouter, Groq, Ollama and others.
        reasoning = "reasoning",
        /// Reasoning of some gateways.
        reasoning_text = "reasoning_text",
        refusal = "refusal",
        tool_calls = "tool_calls",
        /// Tool call of old servers.
        function_call = "function_call",
        ..
    }
}

raw_object! {
    /// A part of a message whose content is a list.
    pub struct ContentPart { kind = "type", text = "text", thinking = "thinking" }
}

raw_object! {
    /// A tool call, or a piece of one.
    pub struct CompletionToolCall { index = "index", id = "id", function = "function", .. }
}

raw_object! {
    /// Function of a tool call, or a piece of one.
    pub struct Function { name = "name", arguments = "arguments" }
}
