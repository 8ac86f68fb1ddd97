//! What comes of a turn on the wire: its chunks and its summary.

use crate::proto::chunk::Chunk;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// The summary of a turn: the answer to `session/prompt`, and what `acpipe run -o json` prints.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TurnSummary {
    /// The session; empty where a run failed before it had one.
    pub session_id: String,
    /// The turn; empty where a run failed before it had one.
    pub turn_id: String,
    /// The assistant message that the chunks build.
    pub message_id: Option<String>,
    /// The text of the answer: all text blocks, nothing added. Where the prompt was sent again, those of the
    /// last attempt; where that gave nothing but a transient error, what `errors` says of it.
    pub text: String,
    /// Why the agent stopped, in its own words; `error` where it failed.
    pub stop_reason: String,
    /// The same in the AI SDK's words.
    pub finish_reason: String,
    /// True exactly when `errors` is not empty.
    pub is_error: bool,
    /// What went wrong.
    pub errors: Vec<TurnError>,
    /// A short fixed text for the common endings: `max_turns limit reached`, `subprocess terminated
    /// unexpectedly`, `tool execution failed: <name>`, `timeout exceeded`.
    pub error_reason: Option<String>,
    /// The tool calls, in order.
    pub tool_calls: Vec<ToolCall>,
    /// The results of tools, in the order of the calls.
    pub tool_results: Vec<ToolResult>,
    /// Names of the tools, in the order of their first use.
    pub tools_used: Vec<String>,
    /// Tokens of this turn, in all attempts.
    pub usage: Option<TokenUsage>,
    /// What the turn cost, in the currency of `metadata.context.cost`.
    pub cost: Option<f64>,
    /// Turns of the agent's own loop, in all attempts.
    pub num_turns: Option<u64>,
    /// The answer in the form that the client asked for; `null` where it asked for none or got none.
    pub structured_output: Option<Value>,
    /// Wall time from the call to its end, in milliseconds.
    pub duration_ms: u64,
    /// Wall time in which acpipe was not waiting for the agent: starting, parsing, translating, writing.
    /// In milliseconds, with a fraction.
    pub overhead_ms: f64,
    /// How often the prompt was sent: again after a transient error, where `retry` allows it, and to a new
    /// session when the agent did not have the one that was brought back. 0 where a run failed before its turn.
    pub attempts: u32,
    /// What was left out of this summary because there was too much of it; absent as a rule. The chunks have
    /// all of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub omitted: Option<Omitted>,
    /// What else is known: context figures, skipped parts of the prompt, the agent's own additions;
    /// `recovery`, where the turn went on in a new session.
    pub metadata: serde_json::Map<String, Value>,
}

/// How much was left out of a summary, in bytes: of text, arguments and results it has 4 MiB each.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Omitted {
    /// Of `text`, which ends earlier.
    pub text: u64,
    /// Of the arguments of `toolCalls`, as JSON: those of a call are there or are `{}`.
    pub arguments: u64,
    /// Of the results of `toolResults`, which end earlier.
    pub results: u64,
}

/// One thing that went wrong in a turn.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TurnError {
    /// Its kind, as in the table of errors.
    pub kind: String,
    /// One line: what happened and what to do.
    pub message: String,
    /// Raw facts; bounded.
    pub data: Value,
}

/// A tool call in a summary.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolCall {
    /// Name of the tool.
    pub name: String,
    /// Its input; `{}` where the agent gave none.
    pub arguments: Value,
    /// Id of the call.
    pub call_id: String,
}

/// A tool's result in a summary.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolResult {
    /// Id of the call.
    pub call_id: String,
    /// What the tool said, as text: the text of its content, else its raw output; where these hold no text, the last
    /// 64 KiB of its terminals. Where the agent ended its turn without reporting a result, a sentence that says so.
    pub result: String,
    /// Whether it failed or was refused.
    pub is_error: bool,
}

/// Tokens of a turn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TokenUsage {
    /// Tokens read.
    pub input_tokens: Option<u64>,
    /// Tokens written.
    pub output_tokens: Option<u64>,
    /// Both, or the agent's own total.
    pub total_tokens: Option<u64>,
    /// Of those read, from the cache.
    pub cached_read_tokens: Option<u64>,
    /// Written to the cache.
    pub cached_write_tokens: Option<u64>,
    /// Of those written, thoughts.
    pub thought_tokens: Option<u64>,
}

/// `session/chunk`, to the client: the next chunk of a session.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChunkParams<'a> {
    /// The session.
    pub session_id: &'a str,
    /// The turn, prompted or not; `null` for what is part of no message.
    pub turn_id: Option<&'a str>,
    /// Rises by one with every chunk of the session.
    pub seq: u64,
    /// The chunk.
    pub chunk: Chunk<'a>,
}
