//! Data types inside chunks.

use super::Named;
use acpipe_json::Raw;
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

/// A tool call before its output.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ToolInput<'a> {
    /// Id of the tool call.
    pub tool_call_id: &'a str,
    /// Name of the tool; its kind if the agent gives no name.
    pub tool_name: &'a str,
    /// Input of the tool. Absent in `tool-input-start`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<Raw<'a>>,
    /// Always `true`.
    pub dynamic: bool,
    /// Always `true`.
    pub provider_executed: bool,
    /// Summary of the call for people, one line. Absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<&'a str>,
    /// State of the call except its input, under the name of the agent's dialect. Absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_metadata: Option<Named<'a, ToolState<'a>>>,
}

/// Finish reason of a message: the values of the AI SDK that all of its major versions have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum FinishReason {
    /// The agent completed its answer.
    Stop,
    /// A limit of tokens or of turns was reached.
    Length,
    /// The agent refused to answer.
    ContentFilter,
    /// The turn failed.
    Error,
    /// The turn was cancelled, or acpipe does not know the agent's stop reason.
    Other,
}

/// Output of a tool, as the agent sent it.
#[derive(Debug, Clone, Copy, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ToolOutput<'a> {
    /// Content blocks, diffs and terminals. Absent if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<Raw<'a>>,
    /// Raw output. Absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw_output: Option<Raw<'a>>,
    /// Last 64 KiB of the output of the call's terminals. Absent unless `content` and `rawOutput` contain no
    /// text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub terminal_output: Option<&'a str>,
    /// Statement that the agent ended its turn without a result of the call. Absent otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<&'a str>,
}

/// State of a tool call: everything that the other fields of the chunk do not contain.
#[derive(Debug, Clone, Copy, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ToolState<'a> {
    /// Name of the tool. Absent if the chunk has a field for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_name: Option<&'a str>,
    /// Name that the agent gave the tool after the call began, since a message part cannot change its name.
    /// Absent if the name did not change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<&'a str>,
    /// Title that changed after the chunks that can contain it. Absent otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<&'a str>,
    /// Kind of the tool: `read`, `edit`, `delete`, `move`, `search`, `execute`, `think`, `fetch`, `other` …
    /// Absent if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<&'a str>,
    /// Status: `pending`, `in_progress`, `completed`, `failed`, or another value of the agent. Absent if
    /// unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<&'a str>,
    /// Input that changed after the chunks that can contain it. Absent otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw_input: Option<Raw<'a>>,
    /// `true` if the agent sent no input, so that the `{}` in the chunk comes from acpipe. Absent otherwise.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub no_input: bool,
    /// Raw output. Absent if there is none, or if the chunk has a field for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw_output: Option<Raw<'a>>,
    /// Content blocks, diffs and terminals. Absent if there are none, or if the chunk has a field for them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<Raw<'a>>,
    /// Files that the call works on, as `{path, line}` objects. Absent if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub locations: Option<Raw<'a>>,
    /// Why acpipe settled the call in place of the agent. Absent if the agent settled it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settled: Option<&'a str>,
    /// Extension data of the agent, merged from all updates. Absent if there is none.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<&'a Value>,
    /// Fields that the agent's protocol does not define, and fields with values that it does not define.
    /// Absent if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub other: Option<&'a Map<String, Value>>,
}

/// A subagent and its output.
#[derive(Debug, Clone, Copy, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SubagentState<'a> {
    /// Data of the agent about the subagent: title, description, state, capabilities …
    pub info: &'a Map<String, Value>,
    /// Modes, options and commands of the subagent, by the agent's own names.
    pub state: &'a Map<String, Value>,
    /// Output of the subagent in this turn, as an assistant `UIMessage`.
    pub message: &'a Value,
}
