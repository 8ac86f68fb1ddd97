//! `UIMessageChunk`: one event of the AI SDK's UI message stream (`ai` 7), as acpipe emits it.
//!
//! Optional fields are absent, never `null`. All agent tools carry `dynamic: true` (their names are not
//! known in advance) and `providerExecuted: true` (the client must not try to run them).

mod parts;
mod weight;

use super::json::Raw;
pub use parts::{FinishReason, SubagentState, ToolInput, ToolOutput, ToolState};
use schemars::JsonSchema;
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use std::borrow::Cow;

/// One event of the stream that builds an assistant `UIMessage`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(
    tag = "type",
    rename_all = "kebab-case",
    rename_all_fields = "camelCase"
)]
pub enum Chunk<'a> {
    /// The first chunk of a turn: an assistant message begins.
    Start {
        /// Id of the message, unique among all turns.
        message_id: &'a str,
        /// What is known about the agent and its session, by the dialect's name.
        #[serde(skip_serializing_if = "Option::is_none")]
        message_metadata: Option<Raw<'a>>,
    },
    /// A step of the message begins: the model is asked, where the agent tells of that; else one is the whole turn.
    StartStep,
    /// The step ended.
    FinishStep,
    /// The message is complete.
    Finish {
        /// Why the agent stopped.
        finish_reason: FinishReason,
        /// Usage, the agent's own stop reason and what else came with its answer.
        #[serde(skip_serializing_if = "Option::is_none")]
        message_metadata: Option<Raw<'a>>,
    },
    /// The turn was cancelled; everything that was open is closed.
    Abort {
        /// Why, for people.
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<&'a str>,
    },
    /// The turn failed; always the last chunk.
    Error {
        /// What happened and what to do, in one line.
        error_text: &'a str,
    },
    /// Metadata merged deeply into the message's own.
    MessageMetadata {
        /// The part to merge.
        message_metadata: Raw<'a>,
    },
    /// A text block begins.
    TextStart {
        /// Id of the block.
        id: &'a str,
        /// The agent's own message id, where it gave one.
        #[serde(skip_serializing_if = "Option::is_none")]
        provider_metadata: Option<Raw<'a>>,
    },
    /// More text for an open block.
    TextDelta {
        /// Id of the block.
        id: &'a str,
        /// The text to append.
        #[schemars(with = "String")]
        delta: Raw<'a>,
        /// What the agent said of this piece; replaces what it said of the block.
        #[serde(skip_serializing_if = "Option::is_none")]
        provider_metadata: Option<Raw<'a>>,
    },
    /// The text block ended.
    TextEnd {
        /// Id of the block.
        id: &'a str,
        /// What was said of the block, and of it as a whole under the name of the AI SDK's provider.
        #[serde(skip_serializing_if = "Option::is_none")]
        provider_metadata: Option<Raw<'a>>,
    },
    /// A block of the agent's thoughts begins.
    ReasoningStart {
        /// Id of the block.
        id: &'a str,
        /// The agent's own message id, where it gave one.
        #[serde(skip_serializing_if = "Option::is_none")]
        provider_metadata: Option<Raw<'a>>,
    },
    /// More thought for an open block.
    ReasoningDelta {
        /// Id of the block.
        id: &'a str,
        /// The text to append.
        #[schemars(with = "String")]
        delta: Raw<'a>,
        /// What the agent said of this piece; replaces what it said of the block.
        #[serde(skip_serializing_if = "Option::is_none")]
        provider_metadata: Option<Raw<'a>>,
    },
    /// The block of thoughts ended.
    ReasoningEnd {
        /// Id of the block.
        id: &'a str,
        /// What was said of the block, and of it as a whole under the name of the AI SDK's provider.
        #[serde(skip_serializing_if = "Option::is_none")]
        provider_metadata: Option<Raw<'a>>,
    },
    /// A tool call is announced; its input is not known yet.
    ToolInputStart(ToolInput<'a>),
    /// More of the input's text, while the model writes it.
    ToolInputDelta {
        /// Id of the call.
        tool_call_id: &'a str,
        /// The text to append.
        #[schemars(with = "String")]
        input_text_delta: Raw<'a>,
    },
    /// The call came to nothing before its input was written whole.
    ToolInputError {
        /// Id of the call.
        tool_call_id: &'a str,
        /// Name of the tool.
        tool_name: &'a str,
        /// The text that was written.
        input: Raw<'a>,
        /// Why it came to nothing.
        error_text: &'a str,
        /// Always true.
        dynamic: bool,
        /// Always true.
        provider_executed: bool,
        /// The call's state apart from its input, by the dialect's name.
        #[serde(skip_serializing_if = "Option::is_none")]
        tool_metadata: Option<Named<'a, ToolState<'a>>>,
    },
    /// A tool call with its input; sent again whenever the call's state changes before its output.
    ToolInputAvailable(ToolInput<'a>),
    /// A tool's output, or with `preliminary` what there is of it so far (each replaces the last).
    ToolOutputAvailable {
        /// Id of the call.
        tool_call_id: &'a str,
        /// What the tool gave; `null` where that is nothing.
        output: Option<ToolOutput<'a>>,
        /// True while the tool still runs.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        preliminary: bool,
        /// Always true.
        dynamic: bool,
        /// Always true.
        provider_executed: bool,
        /// The call's state apart from input and output, by the dialect's name.
        #[serde(skip_serializing_if = "Option::is_none")]
        tool_metadata: Option<Named<'a, ToolState<'a>>>,
    },
    /// The tool failed, or never came to an end.
    ToolOutputError {
        /// Id of the call.
        tool_call_id: &'a str,
        /// What the tool said, as text.
        error_text: &'a str,
        /// Always true.
        dynamic: bool,
        /// Always true.
        provider_executed: bool,
        /// The call's state apart from its input, by the dialect's name.
        #[serde(skip_serializing_if = "Option::is_none")]
        tool_metadata: Option<Named<'a, ToolState<'a>>>,
    },
    /// The tool was not run, because its permission was refused.
    ToolOutputDenied {
        /// Id of the call.
        tool_call_id: &'a str,
        /// Whether the client was asked for the permission. Not sent: profile 6 depends on it.
        #[serde(skip)]
        asked: bool,
    },
    /// The agent asked whether it may run a tool.
    ToolApprovalRequest {
        /// Id of the question.
        approval_id: &'a str,
        /// Id of the call.
        tool_call_id: &'a str,
        /// `{options}` as the agent offered them.
        approval_descriptor: Raw<'a>,
        /// True when a policy answers, not a person; absent in profile 6, which only has requests to the client.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(with = "bool")]
        is_automatic: Option<bool>,
    },
    /// The answer to a permission question.
    ToolApprovalResponse {
        /// Id of the question.
        approval_id: &'a str,
        /// Whether the tool may run.
        approved: bool,
        /// Which option was chosen, and by whom.
        reason: &'a str,
    },
    /// A link the agent showed.
    SourceUrl {
        /// Id of the source: its URL.
        source_id: &'a str,
        /// Where it leads.
        url: &'a str,
        /// Its name.
        #[serde(skip_serializing_if = "Option::is_none")]
        title: Option<&'a str>,
        /// What else the agent said about it.
        #[serde(skip_serializing_if = "Option::is_none")]
        provider_metadata: Option<Raw<'a>>,
    },
    /// A document the agent showed.
    SourceDocument {
        /// Id of the source: its URI.
        source_id: &'a str,
        /// Its media type.
        media_type: &'a str,
        /// Its name.
        title: &'a str,
        /// Its file name.
        #[serde(skip_serializing_if = "Option::is_none")]
        filename: Option<&'a str>,
        /// What else the agent gave, the text of an embedded resource included.
        #[serde(skip_serializing_if = "Option::is_none")]
        provider_metadata: Option<Raw<'a>>,
    },
    /// An image, a sound or another file.
    File {
        /// A data URL or an absolute URL.
        url: &'a str,
        /// Its media type.
        media_type: &'a str,
        /// What else the agent said about it.
        #[serde(skip_serializing_if = "Option::is_none")]
        provider_metadata: Option<Raw<'a>>,
    },
    /// A file that belongs to the agent's thoughts.
    ReasoningFile {
        /// A data URL or an absolute URL.
        url: &'a str,
        /// Its media type.
        media_type: &'a str,
        /// What else the agent said about it.
        #[serde(skip_serializing_if = "Option::is_none")]
        provider_metadata: Option<Raw<'a>>,
    },
    /// The agent's plan, whole; each replaces the last.
    DataPlan {
        /// `plan`, or the id of one of several plans.
        id: &'a str,
        /// `{entries: [{content, priority, status}]}`, or what the agent tells of another form of plan;
        /// `{removed: true}` when there is no such plan any more.
        data: Raw<'a>,
    },
    /// A permission question with its options and, once decided, its outcome.
    DataPermission {
        /// Id of the question.
        id: &'a str,
        /// `{toolCallId, options}`, what else came with the question, and once decided `outcome`, `approved` and `reason`.
        data: Raw<'a>,
    },
    /// A question to the user and, once it is decided, what was answered; each replaces the last.
    DataQuestion {
        /// Id of the question.
        id: &'a str,
        /// `{kind, message}` with `schema`, `url` or `options`, and `toolCallId` where a call asks; once decided
        /// `action`, `reason`, `by` and what of the answer is no secret as `content`; `completed` when the agent says
        /// that the user has been at the address.
        data: Raw<'a>,
    },
    /// A terminal that a tool shows.
    DataTerminal {
        /// Id of the terminal.
        id: &'a str,
        /// `{toolCallId, output, offset, details}`: the end of the output, the number of bytes before it (absent where
        /// there are none), and working directory and exit as the agent tells them. Each replaces the last.
        data: Raw<'a>,
    },
    /// What became known about a call after its result or refusal.
    DataToolCall {
        /// Id of the call.
        id: &'a str,
        /// The whole state of the call.
        data: ToolState<'a>,
    },
    /// A subagent of the turn; each replaces the last.
    DataSubagent {
        /// The subagent's session, or the tool call that made it.
        id: &'a str,
        /// All that is known of it.
        data: SubagentState<'a>,
    },
    /// A message between the session and a subagent; each replaces the last.
    DataSessionMessage {
        /// Id of the message.
        id: &'a str,
        /// What the agent told so far: content, sender and recipient.
        data: Raw<'a>,
    },
    /// A message of the user that the agent repeated in the turn.
    DataUserMessage {
        /// What the agent tells: content, messageId.
        data: Raw<'a>,
    },
    /// Modes, models, options, commands and title of the session; not part of the message.
    DataSession {
        /// Always `session`.
        id: &'a str,
        /// The whole state.
        data: Raw<'a>,
        /// Always true.
        transient: bool,
    },
    /// A notice of the agent to the user; not part of the message.
    DataNotice {
        /// What the agent tells: severity, title, description.
        data: Raw<'a>,
        /// Always true.
        transient: bool,
    },
    /// The agent compacted its context.
    DataCompaction {
        /// Id of the compaction.
        id: &'a str,
        /// What the agent told so far: status, summary, error; each replaces the last.
        data: Raw<'a>,
    },
    /// How the session was brought back, in the first turn after it.
    DataRecovery {
        /// The receipt: rung, memory, what failed, how much was replayed.
        data: Raw<'a>,
    },
    /// The answer in the form that the client asked for.
    DataStructuredOutput {
        /// Always `structured-output`.
        id: &'a str,
        /// The answer.
        data: Raw<'a>,
    },
    /// What the agent said and no other chunk tells: `data-acp`, or the name of another dialect.
    #[serde(untagged)]
    DataDialect {
        /// `data-` and the dialect's name.
        #[serde(rename = "type")]
        kind: DataKind<'a>,
        /// `{update}` as it came; `{event}` where it is transient.
        data: Raw<'a>,
        /// True for what is worth showing while it lasts, and no part of the message.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        transient: bool,
    },
}

/// `data-<dialect>`.
#[derive(Debug, Clone, Copy)]
pub struct DataKind<'a>(pub &'a str);

impl Serialize for DataKind<'_> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(&format_args!("data-{}", self.0))
    }
}

impl JsonSchema for DataKind<'_> {
    fn schema_name() -> Cow<'static, str> {
        "DataKind".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "enum": ["data-acp", "data-claude"] })
    }
}

/// `{name: value}`: provider and tool metadata stand under the name of the agent's dialect.
#[derive(Debug, Clone, Copy)]
pub struct Named<'a, T>(pub &'a str, pub T);

impl<T: Serialize> Serialize for Named<'_, T> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let mut map = s.serialize_map(Some(1))?;
        map.serialize_entry(self.0, &self.1)?;
        map.end()
    }
}

impl<T: JsonSchema> JsonSchema for Named<'_, T> {
    fn schema_name() -> Cow<'static, str> {
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
        let before = out.len();
        if self
            .serialize(&mut serde_json::Serializer::new(&mut *out))
            .is_err()
        {
            out.truncate(before);
        }
    }
}
