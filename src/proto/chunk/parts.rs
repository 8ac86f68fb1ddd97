//! What chunks hold.

use super::Named;
use crate::proto::json::Raw;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

/// A tool call as far as it is known before its output.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolInput<'a> {
    /// Id of the call.
    pub tool_call_id: &'a str,
    /// Name of the tool, or its kind where the agent names none.
    pub tool_name: &'a str,
    /// The input; absent in `tool-input-start`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<Raw<'a>>,
    /// Always true.
    pub dynamic: bool,
    /// Always true.
    pub provider_executed: bool,
    /// One line for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<&'a str>,
    /// The call's state apart from its input, by the dialect's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_metadata: Option<Named<'a, ToolState<'a>>>,
}

/// Why a message ended, in the AI SDK's words (the six that all of its majors know).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FinishReason {
    /// The agent was done.
    Stop,
    /// A limit of tokens or turns was reached.
    Length,
    /// The agent refused.
    ContentFilter,
    /// The turn failed.
    Error,
    /// Cancelled, or a reason that acpipe does not know.
    Other,
}

/// A tool's output, as the agent gave it.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolOutput<'a> {
    /// Content, diffs and terminals.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<Raw<'a>>,
    /// The raw output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw_output: Option<Raw<'a>>,
    /// The last 64 KiB of the output of the call's terminals, where neither content nor raw output holds text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub terminal_output: Option<&'a str>,
    /// States that the agent ended its turn without reporting a result of the call; absent otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<&'a str>,
}

/// A tool call's state: what no other field of its chunk shows.
#[derive(Debug, Clone, Copy, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolState<'a> {
    /// Name of the tool, where the chunk has no field for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_name: Option<&'a str>,
    /// The name that the agent gave the tool later, where it is another: a part keeps its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<&'a str>,
    /// The title, where it changed after the chunks that can show it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<&'a str>,
    /// What kind of tool it is: read, edit, delete, move, search, execute, think, fetch, other …
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<&'a str>,
    /// pending, `in_progress`, completed or failed, or another word of the agent's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<&'a str>,
    /// The input, where it changed after the chunks that can show it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw_input: Option<Raw<'a>>,
    /// True where the agent gave no input: the `{}` shown is acpipe's.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub no_input: bool,
    /// The raw output, where the chunk shows none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw_output: Option<Raw<'a>>,
    /// Content, diffs and terminals, where the chunk shows none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<Raw<'a>>,
    /// Places in files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub locations: Option<Raw<'a>>,
    /// Why acpipe settled the call, where the agent did not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settled: Option<&'a str>,
    /// The agent's own additions, merged.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<&'a Value>,
    /// Fields that the protocol does not have, and values that it does not have for its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub other: Option<&'a Map<String, Value>>,
}

/// A subagent: what is known of it, and what it did.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SubagentState<'a> {
    /// What the agent told of it: title, description, state, capabilities …
    pub info: &'a Map<String, Value>,
    /// Its modes, options and commands, by the agent's own names.
    pub state: &'a Map<String, Value>,
    /// What it said and did in this turn: an assistant `UIMessage`.
    pub message: &'a Value,
}
