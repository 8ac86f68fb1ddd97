//! `UIMessageChunk`: an event of the AI SDK's UI message stream (`ai` 7), as acpipe sends it.
//!
//! Optional fields are absent, never `null`. All tools of agents have `dynamic: true` (their names are not
//! known in advance) and `providerExecuted: true` (the client must not run them).

mod facts;
mod parts;
mod weight;

use acpipe_json::{Raw, write_json};
pub use facts::ChunkFacts;
pub use parts::{FinishReason, SubagentState, ToolInput, ToolOutput, ToolState};
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

/// An event of the stream that builds an assistant `UIMessage`.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(
    tag = "type",
    rename_all = "kebab-case",
    rename_all_fields = "camelCase"
)]
pub enum Chunk<'a> {
    /// First chunk of a turn: an assistant message begins.
    Start {
        /// Id of the message, unique among all turns.
        message_id: &'a str,
        /// Data about the agent and its session, under the name of the agent's dialect. Absent if there is
        /// none.
        #[serde(skip_serializing_if = "Option::is_none")]
        message_metadata: Option<Raw<'a>>,
    },
    /// A step of the message begins: a request to the model if the agent reports these, otherwise the whole
    /// turn.
    StartStep,
    /// The current step ended.
    FinishStep,
    /// The message is complete.
    Finish {
        /// Why the message ended.
        finish_reason: FinishReason,
        /// Token usage, the agent's own stop reason, and other data of the agent's result. Absent if there is
        /// none.
        #[serde(skip_serializing_if = "Option::is_none")]
        message_metadata: Option<Raw<'a>>,
    },
    /// The turn was cancelled. All open blocks and tool calls were closed before.
    Abort {
        /// Why, for people. Absent if unknown.
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<&'a str>,
    },
    /// The turn failed. Always the last chunk of its turn.
    Error {
        /// One line: the failure, its cause, and the next step.
        error_text: &'a str,
    },
    /// Metadata to merge deeply into that of the message.
    MessageMetadata {
        /// Metadata to merge.
        message_metadata: Raw<'a>,
    },
    /// A text block begins.
    TextStart {
        /// Id of the block.
        id: &'a str,
        /// The agent's own message id. Absent if the agent gives none.
        #[serde(skip_serializing_if = "Option::is_none")]
        provider_metadata: Option<Raw<'a>>,
    },
    /// Text to append to an open block.
    TextDelta {
        /// Id of the block.
        id: &'a str,
        /// Text to append.
        #[cfg_attr(feature = "schema", schemars(with = "String"))]
        delta: Raw<'a>,
        /// Metadata of the agent for this delta; it replaces that of the block. Absent if there is none.
        #[serde(skip_serializing_if = "Option::is_none")]
        provider_metadata: Option<Raw<'a>>,
    },
    /// A text block ended.
    TextEnd {
        /// Id of the block.
        id: &'a str,
        /// Metadata of the block; data about the whole block is under the name of the AI SDK's provider.
        /// Absent if there is none.
        #[serde(skip_serializing_if = "Option::is_none")]
        provider_metadata: Option<Raw<'a>>,
    },
    /// A reasoning block begins.
    ReasoningStart {
        /// Id of the block.
        id: &'a str,
        /// The agent's own message id. Absent if the agent gives none.
        #[serde(skip_serializing_if = "Option::is_none")]
        provider_metadata: Option<Raw<'a>>,
    },
    /// Text to append to an open reasoning block.
    ReasoningDelta {
        /// Id of the block.
        id: &'a str,
        /// Text to append.
        #[cfg_attr(feature = "schema", schemars(with = "String"))]
        delta: Raw<'a>,
        /// Metadata of the agent for this delta; it replaces that of the block. Absent if there is none.
        #[serde(skip_serializing_if = "Option::is_none")]
        provider_metadata: Option<Raw<'a>>,
    },
    /// A reasoning block ended.
    ReasoningEnd {
        /// Id of the block.
        id: &'a str,
        /// Metadata of the block; data about the whole block is under the name of the AI SDK's provider.
        /// Absent if there is none.
        #[serde(skip_serializing_if = "Option::is_none")]
        provider_metadata: Option<Raw<'a>>,
    },
    /// A tool call begins; its input is not known yet.
    ToolInputStart(ToolInput<'a>),
    /// Text to append to the input of a tool call while the model generates it.
    ToolInputDelta {
        /// Id of the tool call.
        tool_call_id: &'a str,
        /// Text to append.
        #[cfg_attr(feature = "schema", schemars(with = "String"))]
        input_text_delta: Raw<'a>,
    },
    /// A tool call failed before its input was complete.
    ToolInputError {
        /// Id of the tool call.
        tool_call_id: &'a str,
        /// Name of the tool.
        tool_name: &'a str,
        /// Partial input, as generated so far.
        input: Raw<'a>,
        /// Why the call failed.
        error_text: &'a str,
        /// Always `true`.
        dynamic: bool,
        /// Always `true`.
        provider_executed: bool,
        /// State of the call except its input, under the name of the agent's dialect. Absent if there is
        /// none.
        #[serde(skip_serializing_if = "Option::is_none")]
        tool_metadata: Option<Named<'a, ToolState<'a>>>,
    },
    /// A tool call with its input; repeated whenever the state of the call changes before its output.
    ToolInputAvailable(ToolInput<'a>),
    /// Output of a tool. With `preliminary`, output so far: each such chunk replaces the previous one.
    ToolOutputAvailable {
        /// Id of the tool call.
        tool_call_id: &'a str,
        /// Output of the tool. `null` if it is empty.
        output: Option<ToolOutput<'a>>,
        /// `true` while the tool runs; absent otherwise.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        preliminary: bool,
        /// Always `true`.
        dynamic: bool,
        /// Always `true`.
        provider_executed: bool,
        /// State of the call except input and output, under the name of the agent's dialect. Absent if there
        /// is none.
        #[serde(skip_serializing_if = "Option::is_none")]
        tool_metadata: Option<Named<'a, ToolState<'a>>>,
    },
    /// A tool failed, or never completed.
    ToolOutputError {
        /// Id of the tool call.
        tool_call_id: &'a str,
        /// Output of the tool, as text.
        error_text: &'a str,
        /// Always `true`.
        dynamic: bool,
        /// Always `true`.
        provider_executed: bool,
        /// State of the call except its input, under the name of the agent's dialect. Absent if there is
        /// none.
        #[serde(skip_serializing_if = "Option::is_none")]
        tool_metadata: Option<Named<'a, ToolState<'a>>>,
    },
    /// A tool did not run because permission was denied.
    ToolOutputDenied {
        /// Id of the tool call.
        tool_call_id: &'a str,
        /// Whether the client received the permission request. Not serialized; profile 6 depends on it.
        #[serde(skip)]
        asked: bool,
    },
    /// The agent requested permission to run a tool.
    ToolApprovalRequest {
        /// Id of the question.
        approval_id: &'a str,
        /// Id of the tool call.
        tool_call_id: &'a str,
        /// `{options}` as the agent offers them.
        approval_descriptor: Raw<'a>,
        /// `true` if a policy decides instead of a person; `false` otherwise. Absent in profile 6, which
        /// contains only requests to the client.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "schema", schemars(with = "bool"))]
        is_automatic: Option<bool>,
    },
    /// Decision on a permission request.
    ToolApprovalResponse {
        /// Id of the question.
        approval_id: &'a str,
        /// Whether the tool may run.
        approved: bool,
        /// Chosen option, and who chose it.
        reason: &'a str,
    },
    /// A link from the agent.
    SourceUrl {
        /// Id of the source, which is its URL.
        source_id: &'a str,
        /// Address of the link.
        url: &'a str,
        /// Title of the link. Absent if the agent gives none.
        #[serde(skip_serializing_if = "Option::is_none")]
        title: Option<&'a str>,
        /// Other data of the agent about the link. Absent if there is none.
        #[serde(skip_serializing_if = "Option::is_none")]
        provider_metadata: Option<Raw<'a>>,
    },
    /// A document from the agent.
    SourceDocument {
        /// Id of the source, which is its URI.
        source_id: &'a str,
        /// Media type of the document.
        media_type: &'a str,
        /// Title of the document.
        title: &'a str,
        /// File name of the document. Absent if unknown.
        #[serde(skip_serializing_if = "Option::is_none")]
        filename: Option<&'a str>,
        /// Other data of the agent about the document, including the text of an embedded resource. Absent if
        /// there is none.
        #[serde(skip_serializing_if = "Option::is_none")]
        provider_metadata: Option<Raw<'a>>,
    },
    /// An image, audio or another file from the agent.
    File {
        /// Data URL or absolute URL.
        url: &'a str,
        /// Media type of the file.
        media_type: &'a str,
        /// Other data of the agent about the file. Absent if there is none.
        #[serde(skip_serializing_if = "Option::is_none")]
        provider_metadata: Option<Raw<'a>>,
    },
    /// A file that belongs to the agent's reasoning.
    ReasoningFile {
        /// Data URL or absolute URL.
        url: &'a str,
        /// Media type of the file.
        media_type: &'a str,
        /// Other data of the agent about the file. Absent if there is none.
        #[serde(skip_serializing_if = "Option::is_none")]
        provider_metadata: Option<Raw<'a>>,
    },
    /// Complete plan of the agent; a chunk replaces the previous one of the same id.
    DataPlan {
        /// `plan`, or the id of one of several plans.
        id: &'a str,
        /// `{entries: [{content, priority, status}]}`, or the agent's data for another form of plan;
        /// `{removed: true}` if the plan no longer exists.
        data: Raw<'a>,
    },
    /// A permission request with its options and, once decided, its outcome; a chunk replaces the previous
    /// one of the same id.
    DataPermission {
        /// Id of the question.
        id: &'a str,
        /// `{toolCallId, options}` and other data of the request; once decided also `outcome`, `approved` and
        /// `reason`.
        data: Raw<'a>,
    },
    /// A question of the agent to its user and, once decided, the answer; a chunk replaces the previous one
    /// of the same id.
    DataQuestion {
        /// Id of the question.
        id: &'a str,
        /// `{kind, message}` with `schema`, `url` or `options`, and `toolCallId` if the question belongs to a
        /// tool call. Once decided also `action`, `reason`, `by`, and `content`: the answer without secrets.
        /// `completed` if the agent reports that the user has visited the address.
        data: Raw<'a>,
    },
    /// A terminal that a tool displays; a chunk replaces the previous one of the same id.
    DataTerminal {
        /// Id of the terminal.
        id: &'a str,
        /// `{toolCallId, output, offset, details}`: the end of the output, the number of bytes before it
        /// (absent if 0), and working directory and exit status as the agent reports them.
        data: Raw<'a>,
    },
    /// Data about a tool call that arrived after its result or its denial.
    DataToolCall {
        /// Id of the tool call.
        id: &'a str,
        /// Complete state of the call.
        data: ToolState<'a>,
    },
    /// A subagent of the turn; a chunk replaces the previous one of the same id.
    DataSubagent {
        /// Id of the subagent's session, or of the tool call that started the subagent.
        id: &'a str,
        /// Complete state of the subagent.
        data: SubagentState<'a>,
    },
    /// A message between the session and a subagent; a chunk replaces the previous one of the same id.
    DataSessionMessage {
        /// Id of the message.
        id: &'a str,
        /// Data of the agent so far: content, sender and recipient.
        data: Raw<'a>,
    },
    /// A message of the user during the turn: repeated by the agent, or sent with `session/steer`.
    DataUserMessage {
        /// Data of the agent: `content` and `messageId`. With `session/steer`: `messageId`, `message` and
        /// `steering: true`.
        data: Raw<'a>,
    },
    /// Modes, models, options, commands and title of the session. Not part of the message.
    DataSession {
        /// Always `session`.
        id: &'a str,
        /// Complete state of the session.
        data: Raw<'a>,
        /// Always `true`.
        transient: bool,
    },
    /// A notice for the user. Not part of the message.
    DataNotice {
        /// Severity, title and description, and other data of the agent.
        data: Raw<'a>,
        /// Always `true`.
        transient: bool,
    },
    /// The agent compacted its context; a chunk replaces the previous one of the same id.
    DataCompaction {
        /// Id of the compaction.
        id: &'a str,
        /// Data of the agent so far: status, summary and error.
        data: Raw<'a>,
    },
    /// Receipt of a restore of the session, in the first turn after it.
    DataRecovery {
        /// The receipt, as `recovery` in the result of `session/ensure`.
        data: Raw<'a>,
    },
    /// JSON value of the answer, if the session has an `outputSchema`. An answer that does not match is followed by
    /// an error.
    DataStructuredOutput {
        /// Always `structured-output`.
        id: &'a str,
        /// The answer.
        data: Raw<'a>,
    },
    /// Data of the agent that no other chunk carries: `data-acp`, `data-claude` and so on.
    #[serde(untagged)]
    DataDialect {
        /// `data-` and the name of the dialect.
        #[serde(rename = "type")]
        kind: DataKind<'a>,
        /// `{update}` as the agent sent it; `{event}` if `transient` is `true`.
        data: Raw<'a>,
        /// `true` if the data is only worth showing while the turn runs and is not part of the message;
        /// absent otherwise.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        transient: bool,
    },
    /// A chunk of an endpoint that streams chunks itself (`protocol = "ui-stream"`), as it sent it.
    #[serde(untagged)]
    #[cfg_attr(feature = "schema", schemars(skip))]
    Passed(Raw<'a>),
}

/// Type `data-<dialect>` of a chunk; holds the name of the dialect.
#[derive(Debug, Clone, Copy)]
pub struct DataKind<'a>(pub &'a str);

impl Serialize for DataKind<'_> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(&format_args!("data-{}", self.0))
    }
}

#[cfg(feature = "schema")]
impl JsonSchema for DataKind<'_> {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "DataKind".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "enum": ["data-acp", "data-claude", "data-command", "data-openai", "data-ui-stream"] })
    }
}

/// `{name: value}`: an object with one member, used for metadata under the name of the agent's dialect.
#[derive(Debug, Clone, Copy)]
pub struct Named<'a, T>(pub &'a str, pub T);

impl<T: Serialize> Serialize for Named<'_, T> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let mut map = s.serialize_map(Some(1))?;
        map.serialize_entry(self.0, &self.1)?;
        map.end()
    }
}

#[cfg(feature = "schema")]
impl<T: JsonSchema> JsonSchema for Named<'_, T> {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        format!("Named{}", T::schema_name()).into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(g: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let value = g.subschema_for::<T>();
        schemars::json_schema!({ "type": "object", "additionalProperties": value })
    }
}

impl Chunk<'_> {
    /// Appends the chunk as JSON.
    pub fn write(&self, out: &mut Vec<u8>) {
        write_json(out, self);
    }
}
