//! Events of the AG-UI protocol (Agent-User Interaction), version 1.0, as acpipe sends them.
//!
//! Optional fields are absent, never `null`. `metadata` is an object: metadata of the agent under the name of its
//! dialect, and under `acpipe` the fields of the chunk that the event has no other place for.

use acpipe_json::Raw;
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::Serialize;

/// Version of the protocol.
pub const AGUI_VERSION: &str = "1.0";

/// An event of the AG-UI protocol.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(
    tag = "type",
    rename_all = "SCREAMING_SNAKE_CASE",
    rename_all_fields = "camelCase"
)]
pub enum AguiEvent<'a> {
    /// First event of a run, which is a turn of a session.
    RunStarted {
        /// Id of the session.
        thread_id: &'a str,
        /// Id of the turn.
        run_id: &'a str,
        /// Always `1.0`.
        protocol_version: &'a str,
        /// Data about the agent and its session. Absent if there is none.
        #[serde(skip_serializing_if = "Option::is_none")]
        metadata: Option<AnyObject<'a>>,
    },
    /// Last event of a run that did not fail.
    RunFinished {
        /// Id of the session.
        thread_id: &'a str,
        /// Id of the turn.
        run_id: &'a str,
        /// Whether the turn was cancelled.
        outcome: RunOutcome,
        /// Why the message ended, and the structured output. Absent if the turn was cancelled.
        #[serde(skip_serializing_if = "Option::is_none")]
        result: Option<RunResult<'a>>,
        /// Token usage, the agent's own stop reason, and other data of the agent's result. Absent if there is
        /// none.
        #[serde(skip_serializing_if = "Option::is_none")]
        metadata: Option<AnyObject<'a>>,
    },
    /// Last event of a run that failed.
    RunError {
        /// One line: the failure, its cause, and the next step.
        message: &'a str,
        /// Kind of the error, as `data.kind` of a JSON-RPC error. Absent if unknown.
        #[serde(skip_serializing_if = "Option::is_none")]
        code: Option<&'a str>,
        /// Other fields of the chunk, under `acpipe`. Absent if there are none.
        #[serde(skip_serializing_if = "Option::is_none")]
        metadata: Option<AnyObject<'a>>,
    },
    /// A step begins: a request to the model if the agent reports these, otherwise the whole turn.
    StepStarted {
        /// `step` and the number of the step in its run.
        step_name: &'a str,
    },
    /// The current step ended.
    StepFinished {
        /// Name of the step.
        step_name: &'a str,
    },
    /// A text begins.
    TextMessageStart {
        /// Id of the text, unique among all turns.
        message_id: &'a str,
        /// Always `assistant`.
        role: &'a str,
        /// The agent's own message id. Absent if the agent gives none.
        #[serde(skip_serializing_if = "Option::is_none")]
        metadata: Option<AnyObject<'a>>,
    },
    /// Text to append.
    TextMessageContent {
        /// Id of the text.
        message_id: &'a str,
        /// Text to append.
        #[cfg_attr(feature = "schema", schemars(with = "String"))]
        delta: Raw<'a>,
        /// Metadata of the agent for this piece. Absent if there is none.
        #[serde(skip_serializing_if = "Option::is_none")]
        metadata: Option<AnyObject<'a>>,
    },
    /// A text ended.
    TextMessageEnd {
        /// Id of the text.
        message_id: &'a str,
        /// Metadata of the text. Absent if there is none.
        #[serde(skip_serializing_if = "Option::is_none")]
        metadata: Option<AnyObject<'a>>,
    },
    /// Reasoning begins; it contains one message of the same id.
    ReasoningStart {
        /// Id of the reasoning, unique among all turns.
        message_id: &'a str,
    },
    /// A message of the reasoning begins.
    ReasoningMessageStart {
        /// Id of the message.
        message_id: &'a str,
        /// Always `reasoning`.
        role: &'a str,
        /// The agent's own message id. Absent if the agent gives none.
        #[serde(skip_serializing_if = "Option::is_none")]
        metadata: Option<AnyObject<'a>>,
    },
    /// Text to append to a message of the reasoning.
    ReasoningMessageContent {
        /// Id of the message.
        message_id: &'a str,
        /// Text to append.
        #[cfg_attr(feature = "schema", schemars(with = "String"))]
        delta: Raw<'a>,
        /// Metadata of the agent for this piece. Absent if there is none.
        #[serde(skip_serializing_if = "Option::is_none")]
        metadata: Option<AnyObject<'a>>,
    },
    /// A message of the reasoning ended.
    ReasoningMessageEnd {
        /// Id of the message.
        message_id: &'a str,
        /// Metadata of the message, for example the signature of the reasoning. Absent if there is none.
        #[serde(skip_serializing_if = "Option::is_none")]
        metadata: Option<AnyObject<'a>>,
    },
    /// Reasoning ended.
    ReasoningEnd {
        /// Id of the reasoning.
        message_id: &'a str,
    },
    /// A tool call begins.
    ToolCallStart {
        /// Id of the tool call.
        tool_call_id: &'a str,
        /// Name of the tool; its kind if the agent gives no name.
        tool_call_name: &'a str,
        /// Id of the text directly before the call. Absent if there is none.
        #[serde(skip_serializing_if = "Option::is_none")]
        parent_message_id: Option<&'a str>,
        /// State of the call under the name of the agent's dialect, and `title` under `acpipe`. Absent if there is
        /// none.
        #[serde(skip_serializing_if = "Option::is_none")]
        metadata: Option<AnyObject<'a>>,
    },
    /// Text to append to the input of a tool call, which is JSON.
    ToolCallArgs {
        /// Id of the tool call.
        tool_call_id: &'a str,
        /// Text to append.
        #[cfg_attr(feature = "schema", schemars(with = "String"))]
        delta: Raw<'a>,
    },
    /// The input of a tool call is complete.
    ToolCallEnd {
        /// Id of the tool call.
        tool_call_id: &'a str,
        /// State of the call, and under `acpipe` its whole input if it was sent in pieces. Absent if there is none.
        #[serde(skip_serializing_if = "Option::is_none")]
        metadata: Option<AnyObject<'a>>,
    },
    /// Result of a tool call.
    ToolCallResult {
        /// Id of the result, unique among all turns.
        message_id: &'a str,
        /// Id of the tool call.
        tool_call_id: &'a str,
        /// Text of the result.
        content: &'a str,
        /// Always `tool`.
        role: &'a str,
        /// State of the call, and under `acpipe` the whole `output`, or `isError` or `denied`. Absent if there is
        /// none.
        #[serde(skip_serializing_if = "Option::is_none")]
        metadata: Option<AnyObject<'a>>,
    },
    /// Modes, models, options, commands and title of the session.
    StateSnapshot {
        /// Complete state of the session.
        snapshot: Raw<'a>,
    },
    /// A plan, a file, the progress of a tool or another part of the message that is not text; an event replaces the
    /// previous one of the same id.
    ActivitySnapshot {
        /// Id of the part, unique among all turns.
        message_id: &'a str,
        /// Type of the chunk, for example `data-plan`; `tool-call` for the state of a tool call.
        activity_type: &'a str,
        /// The part.
        content: AnyObject<'a>,
    },
    /// A chunk that AG-UI has no event for.
    Custom {
        /// Type of the chunk, for example `data-notice`.
        name: &'a str,
        /// All other fields of the chunk.
        value: Raw<'a>,
    },
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum RunOutcome {
    /// The turn ended.
    Success,
    /// The turn was cancelled.
    Cancelled,
}

/// Result of a run.
#[derive(Debug, Clone, Copy, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RunResult<'a> {
    /// Why the message ended: `stop`, `length`, `content-filter`, `error` or `other`.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub finish_reason: Raw<'a>,
    /// JSON value of the answer, if the session has an `outputSchema`. Absent otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub structured_output: Option<Raw<'a>>,
}

/// Any JSON object.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(transparent)]
pub struct AnyObject<'a>(pub Raw<'a>);

#[cfg(feature = "schema")]
impl JsonSchema for AnyObject<'_> {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "AnyObject".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "object" })
    }
}
