//! `UIMessageChunk`: one event of the AI SDK's UI message stream (`ai` 7), as acpipe emits it.
//!
//! Optional fields are absent, never `null`. All agent tools carry `dynamic: true` (their names are not
//! known in advance) and `providerExecuted: true` (the client must not try to run them).

use super::json::Raw;
use schemars::JsonSchema;
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use serde_json::{Map, Value};
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
    /// A step of the message begins; acpipe makes one step a turn.
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
    },
    /// A tool call is announced; its input is not known yet.
    ToolInputStart(ToolInput<'a>),
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
    },
    /// The agent asked whether it may run a tool.
    ToolApprovalRequest {
        /// Id of the question.
        approval_id: &'a str,
        /// Id of the call.
        tool_call_id: &'a str,
        /// `{options}` as the agent offered them.
        approval_descriptor: Raw<'a>,
        /// True when a policy answers, not a person.
        is_automatic: bool,
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
    /// A terminal that a tool shows.
    DataTerminal {
        /// Id of the terminal.
        id: &'a str,
        /// `{toolCallId, output, details}`: working directory and exit as the agent tells them; each
        /// replaces the last.
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
    /// An ACP message that has no chunk of its own.
    DataAcp {
        /// `{update}` as it came.
        data: Raw<'a>,
    },
}

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
