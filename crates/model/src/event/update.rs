//! Updates: reports of an agent about a session, such as pieces of a message and changes of a tool call.

use super::text_run::TextRun;
use acpipe_json::{JsonStr, Members};
use acpipe_protocol::ui_chunk::UiChunk;
use serde_json::value::RawValue;
use std::borrow::Cow;

#[derive(Debug)]
pub enum Update<'a> {
    Message(MessagePiece<'a>),
    Tool(Box<ToolUpdate<'a>>),
    Terminal(TerminalUpdate<'a>),
    /// A complete plan, or its removal.
    Plan {
        /// Id of the plan; `plan` if the agent has only one.
        id: Cow<'a, str>,
        /// The plan as the agent sent it, or `removed: true`.
        data: Members<'a>,
    },
    /// Usage of the context window, and the cost of the session so far if the agent reports it.
    Context {
        /// Cost of the session so far; `None` if the agent does not report it.
        cost: Option<f64>,
        /// Context figures, if the original update does not contain them.
        figures: Option<Members<'a>>,
    },
    /// Modes, options, commands or title of the session changed.
    Session(Members<'a>),
    Notice,
    Compaction {
        id: Cow<'a, str>,
    },
    Subagent {
        /// Id of the subagent's session.
        id: Cow<'a, str>,
    },
    /// A message between the session and a subagent, or a piece of it.
    SubagentMessage {
        id: Cow<'a, str>,
    },
    FromSubagent {
        /// Id of the tool call that started the subagent.
        id: Cow<'a, str>,
        update: Box<Update<'a>>,
    },
    /// The agent sends another request to the model: the next step of the turn begins.
    Step,
    /// The current text or reasoning block is complete.
    TextEnd {
        /// Metadata of the whole block, under the name of the AI SDK provider that understands it.
        provider: Option<(&'static str, Members<'a>)>,
    },
    /// The agent refused to run a tool by its own rules.
    Refused {
        /// Id of the tool call.
        tool: Cow<'a, str>,
        reason: Cow<'a, str>,
    },
    /// Answer that matches the schema which the client requested.
    StructuredOutput(&'a RawValue),
    /// An event that is only worth showing while the turn runs.
    TransientUpdate,
    /// A chunk of the AI SDK, which is passed on unchanged.
    Chunk {
        json: &'a RawValue,
        chunk: Box<UiChunk<'a>>,
    },
    /// Metadata of the message, which is merged into it.
    MessageMetadata(&'a RawValue),
    Other,
}

impl Update<'_> {
    #[inline]
    pub fn names_call(&self) -> bool {
        match self {
            Self::Message(piece) => piece.subagent.is_some(),
            Self::Chunk { chunk, .. } => chunk.names_call(),
            Self::Tool(_)
            | Self::Terminal(_)
            | Self::Refused { .. }
            | Self::FromSubagent { .. }
            | Self::Subagent { .. } => true,
            _ => false,
        }
    }
}

/// Author and kind of a piece of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageRole {
    Answer,
    Thought,
    /// Message of the user, repeated by the agent.
    User,
}

#[derive(Debug)]
pub struct MessagePiece<'a> {
    pub role: MessageRole,
    /// The agent's id of the message; another id begins another block.
    pub message_id: Option<Cow<'a, str>>,
    pub content: Content<'a>,
    /// Id of the tool call whose subagent sent the piece; `None` if the agent itself sent it.
    pub subagent: Option<Cow<'a, str>>,
    /// Metadata of the piece.
    pub about: Members<'a>,
}

#[derive(Debug)]
pub enum Content<'a> {
    /// Text to append.
    Text(JsonStr<'a>),
    /// Text to append that is not part of the line: the end of a text whose beginning was already shown.
    Rest(Box<RawValue>),
    /// Texts to append, each of which is shown for itself.
    Texts(TextRun<'a>),
    /// Base64 data of an image, audio or a binary resource.
    Data {
        media_type: Cow<'a, str>,
        base64: JsonStr<'a>,
        /// The whole content block: origin and other data.
        details: &'a RawValue,
    },
    Link {
        uri: Cow<'a, str>,
        name: Option<Cow<'a, str>>,
        media_type: Option<Cow<'a, str>>,
        /// The whole content block.
        details: &'a RawValue,
    },
    /// An embedded text resource.
    Document {
        uri: Cow<'a, str>,
        media_type: Option<Cow<'a, str>>,
        /// The whole content block, including the text.
        details: &'a RawValue,
    },
    Other,
}

impl Content<'_> {
    pub fn text(&self) -> Option<JsonStr<'_>> {
        match self {
            Self::Text(text) => Some(*text),
            Self::Rest(text) => JsonStr::new(text),
            Self::Texts(run) => Some(run.all),
            _ => None,
        }
    }
}

/// Change of a tool call; absent fields are unchanged.
#[derive(Debug, Default)]
pub struct ToolUpdate<'a> {
    pub id: Cow<'a, str>,
    /// Whether the agent wrote no string as the id: its line does not have this id.
    pub is_id_made: bool,
    /// Whether the agent says that this update begins a call. If the call of this id is over, it is another
    /// call.
    pub begins: bool,
    pub name: Option<Cow<'a, str>>,
    /// Summary of the call for people.
    pub title: Option<Cow<'a, str>>,
    /// Kind of the tool, as the agent writes it.
    pub kind: Option<Cow<'a, str>>,
    /// Status of the call: the text of a [`ToolStatus`], or another one.
    pub status: Option<Cow<'a, str>>,
    /// Complete input of the tool.
    pub input: Option<Cow<'a, RawValue>>,
    /// Text to append to the input while the model generates it; `input` has all of it when it is complete.
    pub input_delta: Option<JsonStr<'a>>,
    pub output: Option<&'a RawValue>,
    /// Array of content blocks, diffs and terminals.
    pub content: Option<Cow<'a, RawValue>>,
    /// Array of files that the call works on.
    pub locations: Option<Cow<'a, RawValue>>,
    /// Extension data of the dialect.
    pub meta: Option<&'a RawValue>,
    /// Fields that the protocol does not define, and fields with values that it does not define.
    pub other: Members<'a>,
}

impl ToolUpdate<'_> {
    pub fn ends(&self) -> bool {
        let status = self.status.as_deref().and_then(ToolStatus::of);
        matches!(status, Some(ToolStatus::Completed | ToolStatus::Failed))
    }

    pub fn fails(&self) -> bool {
        let status = self.status.as_deref().and_then(ToolStatus::of);
        status == Some(ToolStatus::Failed)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolStatus {
    /// The call was announced, but the tool does not run yet.
    Pending,
    InProgress,
    Completed,
    Failed,
}

impl ToolStatus {
    /// Returns the status as clients receive it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::InProgress => "in_progress",
            Self::Completed => "completed",
            Self::Failed => "failed",
        }
    }

    #[must_use]
    pub fn of(word: &str) -> Option<Self> {
        match word {
            "pending" => Some(Self::Pending),
            "in_progress" => Some(Self::InProgress),
            "completed" => Some(Self::Completed),
            "failed" => Some(Self::Failed),
            _ => None,
        }
    }
}

/// Output or exit of a terminal that the agent itself runs.
#[derive(Debug)]
pub struct TerminalUpdate<'a> {
    pub id: Cow<'a, str>,
    /// Id of the tool call that runs the terminal.
    pub tool: Cow<'a, str>,
    /// Whether the message that has this update begins a tool call of this id.
    pub begins: bool,
    /// Text to append.
    pub output: Option<JsonStr<'a>>,
    /// Other data: working directory, exit status.
    pub details: Option<&'a RawValue>,
}
