//! Output of a turn on the wire: its chunks and its summary.

use crate::agui::AguiEvent;
use crate::chunk::Chunk;
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;

/// Summary of a turn: the result of `session/prompt` and `execute`, and the output of `acpipe run -o json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct TurnSummary {
    /// The client's id of the session. Empty if a run failed before its session was opened.
    pub session_id: String,
    /// Id of the turn. Empty if a run failed before its turn began.
    pub turn_id: String,
    /// Id of the assistant message that the turn's chunks form. `null` if the turn never began.
    pub message_id: Option<String>,
    /// Text of the answer: all text blocks, joined without a separator. If the prompt was sent again, the
    /// text of the last attempt; if that attempt produced only a transient error, the error's message in
    /// `errors`.
    pub text: String,
    /// Files of the answer in the order in which they came: images, audio, embedded resources and links, without their
    /// data, which the chunks have. If the prompt was sent again, those of the last attempt.
    #[serde(default)]
    pub files: Vec<AnswerFile>,
    /// Stop reason as the agent reported it; `error` if the turn failed.
    pub stop_reason: String,
    /// Finish reason of the AI SDK: `stop`, `length`, `content-filter`, `error` or `other`.
    pub finish_reason: String,
    /// How the turn ended, for clients that only want to show it and to go on.
    #[serde(default)]
    pub outcome: TurnOutcome,
    /// `true` exactly if `errors` is not empty.
    pub is_error: bool,
    /// Errors of the turn. Empty if it succeeded.
    pub errors: Vec<TurnError>,
    /// Fixed text for common failures: `max_turns limit reached`, `subprocess terminated unexpectedly`, `tool
    /// execution failed: <name>`, `timeout exceeded`. `null` otherwise.
    pub error_reason: Option<String>,
    /// Tool calls in the order in which they began.
    pub tool_calls: Vec<ToolCall>,
    /// Results of tools, in the order of `toolCalls`.
    pub tool_results: Vec<ToolResult>,
    /// Names of the tools, each once, in the order of first use.
    pub tools_used: Vec<String>,
    /// Tokens of this turn, summed over all attempts. `null` if the agent reports none.
    pub usage: Option<TokenUsage>,
    /// Cost of this turn, in the currency of `metadata.context.cost`. `null` if unknown.
    pub cost: Option<f64>,
    /// Number of turns of the agent's own loop, summed over all attempts. `null` if the agent reports none.
    pub num_turns: Option<u64>,
    /// JSON value of the answer, if the session has an `outputSchema`. It matches the schema unless `errors` has
    /// `schemaMismatch`. `null` without such a schema or a JSON value.
    pub structured_output: Option<Value>,
    /// Wall time from the call to the end of the turn, in milliseconds.
    pub duration_ms: u64,
    /// Part of the wall time in which acpipe did not wait for the agent (starting, parsing, translating,
    /// writing), in milliseconds with a fraction.
    pub overhead_ms: f64,
    /// How often the prompt was sent. More than 1 after a transient error with `retry`, after a crash in
    /// `execute`, if the agent had to correct a structured answer, and if it turned out not to have the restored
    /// session, so that the prompt went to a new one. 0 if a run failed before its turn began.
    pub attempts: u32,
    /// Data that this summary omits because of its size; the chunks have everything. Absent if nothing is omitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub omitted: Option<Omitted>,
    /// Additional data: `context` (context figures), `skippedParts` (parts of the prompt that were not sent),
    /// `undeliveredFeedback`, `recovery` (the receipt of the turn's last `data-recovery` chunk: the session was restored),
    /// `cancelRequested`, and `agent` (the agent's own fields). Each is absent if there is nothing to report.
    pub metadata: serde_json::Map<String, Value>,
    /// The agent's result of `session/prompt` in ACP, for clients that speak ACP. `None` if the agent did not answer
    /// with a result. Not part of the neutral protocol.
    #[serde(skip)]
    #[cfg_attr(feature = "schema", schemars(skip))]
    pub acp: Option<Arc<str>>,
}

/// How a turn ended: decided once, for all clients.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct TurnOutcome {
    /// Kind of the end.
    pub kind: OutcomeKind,
    /// One sentence for the user about the end: the message of the error if the turn failed. `null` if the answer says
    /// all.
    pub note: Option<String>,
    /// `true` if the same prompt will fail again until a person acts: signs in, installs the agent, or corrects an
    /// argument, a file or a permission. `false` if it may succeed when it is sent again, or if nothing failed.
    pub needs_person: bool,
    /// Time in milliseconds after which the same prompt may succeed. `null` if it is not known.
    pub retry_after_ms: Option<u64>,
    /// Exit code of `acpipe run` for this end, 0 to 255, see `docs/reference/errors.md`.
    pub exit_code: u8,
}

/// Kind of the end of a turn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum OutcomeKind {
    /// The agent ended its turn normally.
    #[default]
    Completed,
    /// The agent stopped early: it reached its token limit, or has a stop reason of its own.
    Incomplete,
    /// The agent refused to answer.
    Refused,
    /// The turn was cancelled, by a client or by the agent itself.
    Cancelled,
    /// The turn failed; `errors` says why.
    Failed,
}

/// A file of an answer: data that the agent sent, or a link to a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct AnswerFile {
    /// Media type, such as `image/png`. `null` if the agent gives none.
    pub media_type: Option<String>,
    /// Name that the agent gives, otherwise the last part of `uri`. `null` without both.
    pub name: Option<String>,
    /// Target of a link; for data, the URI under which the agent knows it. `null` if it gives none.
    pub uri: Option<String>,
    /// `true` if the agent sent only a link to the file, `false` if it sent the data.
    pub is_link: bool,
    /// Size of the data in bytes. For a link, the size that the agent states, `null` if it states none.
    pub size: Option<u64>,
    /// Path of the file to which `acpipe run --save-files` wrote the data. Absent everywhere else, and for a link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
}

/// Data that a summary omits. Text, files, arguments and results are limited to 4 MiB each.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Omitted {
    /// Bytes cut off the end of `text`.
    pub text: u64,
    /// Bytes of `toolCalls[].arguments` as JSON. The arguments of a call are either complete or `{}`.
    pub arguments: u64,
    /// Bytes cut off the ends of `toolResults[].result`.
    pub results: u64,
    /// Number of files left out at the end of `files`.
    #[serde(default)]
    pub files: u64,
}

/// An error of a turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct TurnError {
    /// Kind of the error, see the table in `docs/reference/errors.md`.
    pub kind: String,
    /// One line: the failure, its cause, and the next step.
    pub message: String,
    /// Details for programs, of limited size.
    pub data: Value,
    /// Error object of an ACP agent, for clients that speak ACP. Not part of the neutral protocol.
    #[serde(skip)]
    #[cfg_attr(feature = "schema", schemars(skip))]
    pub acp: Option<Arc<str>>,
}

/// A tool call in a summary.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ToolCall {
    /// Name of the tool.
    pub name: String,
    /// Input of the tool. `{}` if the agent sent none.
    pub arguments: Value,
    /// Id of the tool call.
    pub call_id: String,
}

/// Result of a tool in a summary.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ToolResult {
    /// Name of the tool, as in `toolCalls`.
    pub name: String,
    /// Id of the tool call.
    pub call_id: String,
    /// Result as text: the text of the tool's content, otherwise its raw output; if these contain no text,
    /// the last 64 KiB of its terminals. If the agent ended its turn without a result, a sentence that states
    /// this.
    pub result: String,
    /// Whether the tool failed or was rejected.
    pub is_error: bool,
}

/// Token counts of a turn. A count that the agent does not report is `null`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct TokenUsage {
    /// Input tokens.
    pub input_tokens: Option<u64>,
    /// Output tokens.
    pub output_tokens: Option<u64>,
    /// The agent's own total, otherwise the sum of input and output tokens.
    pub total_tokens: Option<u64>,
    /// Input tokens read from the cache.
    pub cached_read_tokens: Option<u64>,
    /// Input tokens written to the cache.
    pub cached_write_tokens: Option<u64>,
    /// Output tokens used for reasoning.
    pub thought_tokens: Option<u64>,
}

/// Parameters of the notification `session/chunk`, sent to the client: the next chunk of a session.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ChunkParams<'a> {
    /// The client's id of the session.
    pub session_id: &'a str,
    /// Id of the turn, which is a generated one for output without a prompt. `null` for a chunk that belongs
    /// to no message.
    pub turn_id: Option<&'a str>,
    /// Sequence number of the chunk, increasing by one with every chunk of the session, also across restarts.
    /// Profiles 6 and 5, and clients that lag, may skip numbers.
    pub seq: u64,
    /// The chunk.
    pub chunk: Chunk<'a>,
}

/// Parameters of the notification `session/events`, sent in place of `session/chunk` to a client with the capability
/// `agui`: the AG-UI events of the next chunk of a session. A chunk without events has no notification.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct EventsParams<'a> {
    /// The client's id of the session, which is the `threadId` of its runs.
    pub session_id: &'a str,
    /// Id of the turn, which is the `runId`. `null` for events that belong to no run.
    pub turn_id: Option<&'a str>,
    /// Sequence number of the chunk, increasing with every chunk of the session, also across restarts.
    pub seq: u64,
    /// The events, in order.
    pub events: Vec<AguiEvent<'a>>,
}
