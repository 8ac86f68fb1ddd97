//! What an agent says, in words that every dialect shares.
//!
//! Events borrow from the agent's line: on the hot path nothing is decoded or copied before it stands in
//! the client's output.

mod failing;

use super::cause::cause;
use super::error::{Error, ErrorKind, clip};
use super::host::HostRequest;
use super::inquiry::Inquiry;
use super::process_health::last_line;
use super::request_key::RequestKey;
use crate::proto::json::{JsonStr, Members};
use crate::proto::wire::{AgentCapabilities, AuthMethod, TokenUsage};
pub use failing::Failing;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// Names a call that the bridge made on an agent, until its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallId(pub u64);

/// One thing an agent said.
#[derive(Debug)]
pub enum AgentEvent<'a> {
    /// The handshake is done.
    Ready(Box<AgentInfo>),
    /// The handshake failed; the agent cannot be used.
    NotReady(Error),
    /// The answer to a call to open a session.
    SessionOpened {
        call: CallId,
        /// The agent's own name for the session.
        agent_session: String,
        /// Modes, models, options and what else came with the answer.
        state: Members<'a>,
    },
    /// The answer to a call for the agent's sessions.
    Listed {
        call: CallId,
        /// A page of them.
        sessions: Vec<ListedSession>,
        /// Where the next page begins, if there is one.
        next: Option<String>,
    },
    /// The agent has set what it was asked to set.
    Set {
        call: CallId,
        /// What it told with its answer of the session's state.
        state: Members<'a>,
    },
    /// The agent has done what it was asked to do, and says nothing of it.
    Done { call: CallId },
    /// News of a session.
    Update {
        session: Cow<'a, str>,
        update: Update<'a>,
        original: Original<'a>,
    },
    /// The agent asks whether it may run a tool, and waits.
    Permission(Box<Permission<'a>>),
    /// The agent tells of a tool that it is about to run without asking, and waits.
    Calls(Box<Permission<'a>>),
    /// The agent asks its user something, and waits.
    Elicitation(Box<Elicitation<'a>>),
    /// The user has been at the address to which the agent sent him by this id.
    Visited { id: String },
    /// The agent wants a file or a terminal of its client, and waits.
    Wanted(Box<RequestedOfHost<'a>>),
    /// The agent does not wait for the answer to this question of its any more.
    Withdrawn { key: RequestKey },
    /// The agent reports beside its answer whether the session's turn fails.
    TurnFailing { session: String, failing: Failing },
    /// The turn that the call began is over.
    TurnEnded { call: CallId, end: TurnEnd },
    /// A call failed.
    Failed { call: CallId, error: Error },
    /// A session is no more, though the agent serves others: it can be opened again.
    SessionLost { session: String, error: Error },
    /// The agent calls a session by another id from now on.
    SessionRenamed { session: String, to: String },
    /// The agent begins with a prompt that waited for what it did unasked.
    PromptBegun { call: CallId },
    /// The agent begins to do something unasked, the end of which it will tell: nothing more comes of the turn
    /// before.
    UnpromptedBegun { session: String },
    /// What the agent did unasked is over.
    UnpromptedEnded { session: String, end: TurnEnd },
}

/// A session, as the agent lists it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListedSession {
    /// The agent's id.
    pub id: String,
    pub cwd: Option<String>,
    pub title: Option<String>,
    /// When it last changed, in the agent's words: ISO 8601, as ACP has it.
    pub updated_at: Option<String>,
}

/// An update as it came, cut out of its line only where somebody needs it.
#[derive(Clone, Copy)]
pub struct Original<'a> {
    /// The whole line.
    pub line: &'a str,
    /// Finds the update in the line.
    pub cut: fn(&str) -> Option<&RawValue>,
    /// Finds what the update says, whatever its kind, and what was said beside it.
    pub fields: fn(&str) -> Members<'_>,
}

impl<'a> Original<'a> {
    /// The update as JSON.
    #[must_use]
    pub fn json(self) -> &'a RawValue {
        (self.cut)(self.line).unwrap_or(RawValue::NULL)
    }

    /// What the update says, without the name of its kind.
    #[must_use]
    pub fn fields(self) -> Members<'a> {
        (self.fields)(self.line)
    }
}

impl std::fmt::Debug for Original<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.line)
    }
}

/// News of a session.
#[derive(Debug)]
pub enum Update<'a> {
    /// A piece of a message.
    Message(MessagePiece<'a>),
    /// A tool call was made or changed.
    Tool(Box<ToolUpdate<'a>>),
    /// Output or end of a terminal that the agent runs itself.
    Terminal(TerminalUpdate<'a>),
    /// A whole plan, or the end of one.
    Plan { id: Cow<'a, str>, data: Members<'a> },
    /// How full the context is, and what the session cost so far where the agent says so.
    Context {
        cost: Option<f64>,
        /// The figures, where the update as it came does not hold them.
        figures: Option<Members<'a>>,
    },
    /// Modes, options, commands or titles changed.
    Session(Members<'a>),
    /// A notice to the user.
    Notice,
    /// The agent compacts its context.
    Compaction { id: Cow<'a, str> },
    /// A subagent was made or changed.
    Subagent { id: Cow<'a, str> },
    /// A message between the session and a subagent, or a piece of it.
    Letter { id: Cow<'a, str> },
    /// What a subagent says or does, by the id of the tool call that made it.
    OfSubagent {
        id: Cow<'a, str>,
        update: Box<Update<'a>>,
    },
    /// The model is asked once more: another step of the turn begins.
    Step,
    /// The words that were begun are complete.
    WordsEnd {
        /// What is said of them as a whole, under the name of the AI SDK's own provider that understands it.
        provider: Option<(&'static str, Members<'a>)>,
    },
    /// The agent refused by its own rules to run a tool.
    Refused {
        tool: Cow<'a, str>,
        reason: Cow<'a, str>,
    },
    /// The answer in the form that the client asked for.
    StructuredOutput(&'a RawValue),
    /// Something that is worth showing while it lasts, and worth nothing afterwards.
    Passing,
    /// Something for which there is no better word.
    Other,
}

/// Whose words a piece of a message holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Voice {
    /// The agent's answer.
    Answer,
    /// The agent's thoughts.
    Thought,
    /// The user's, repeated by the agent.
    User,
}

/// A piece of a message.
#[derive(Debug)]
pub struct MessagePiece<'a> {
    pub voice: Voice,
    /// The agent's id of the message; a new one begins a new block.
    pub message_id: Option<Cow<'a, str>>,
    pub content: Content<'a>,
    /// The tool call whose subagent says it, where it is not the agent itself.
    pub subagent: Option<Cow<'a, str>>,
    /// What else is said of it.
    pub about: Members<'a>,
}

/// What a piece of a message holds.
#[derive(Debug)]
pub enum Content<'a> {
    /// Text to append.
    Text(JsonStr<'a>),
    /// Text to append that stands in no line as such: the end of one whose beginning was shown before.
    Rest(Box<RawValue>),
    /// Base64 data of an image or a sound, or a resource that came as data.
    Data {
        media_type: Cow<'a, str>,
        base64: JsonStr<'a>,
        /// Where it is from and what else is known.
        details: &'a RawValue,
    },
    /// A link to a resource.
    Link {
        uri: Cow<'a, str>,
        name: Option<Cow<'a, str>>,
        media_type: Option<Cow<'a, str>>,
        details: &'a RawValue,
    },
    /// A text resource, embedded.
    Document {
        uri: Cow<'a, str>,
        media_type: Option<Cow<'a, str>>,
        details: &'a RawValue,
    },
    /// Something for which there is no better word.
    Other,
}

impl Content<'_> {
    /// The text, where it is text.
    #[must_use]
    pub fn text(&self) -> Option<JsonStr<'_>> {
        match self {
            Self::Text(text) => Some(*text),
            Self::Rest(text) => JsonStr::new(text),
            _ => None,
        }
    }
}

/// What is said of a tool call; absent fields say nothing.
#[derive(Debug, Default)]
pub struct ToolUpdate<'a> {
    pub id: Cow<'a, str>,
    /// Whether it begins the call: an id that was used before then names another call.
    pub begins: bool,
    pub name: Option<Cow<'a, str>>,
    pub title: Option<Cow<'a, str>>,
    pub kind: Option<Cow<'a, str>>,
    /// How far it is: a word of [`ToolStatus`], or one that it does not have.
    pub status: Option<Cow<'a, str>>,
    pub input: Option<Cow<'a, RawValue>>,
    /// A piece of the text of its input, while the model writes it; `input` has all of it when it is written.
    pub input_delta: Option<JsonStr<'a>>,
    pub output: Option<&'a RawValue>,
    /// Array of content, diffs and terminals.
    pub content: Option<Cow<'a, RawValue>>,
    /// Array of places in files.
    pub locations: Option<Cow<'a, RawValue>>,
    /// The dialect's own additions.
    pub meta: Option<&'a RawValue>,
    /// Fields that the protocol does not have, and fields of it whose values are none that it has.
    pub other: Members<'a>,
}

impl ToolUpdate<'_> {
    /// Whether the agent reports the end of the call.
    #[must_use]
    pub fn ends(&self) -> bool {
        let status = self.status.as_deref().and_then(ToolStatus::of);
        matches!(status, Some(ToolStatus::Completed | ToolStatus::Failed))
    }
}

/// How far a tool call is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolStatus {
    Pending,
    InProgress,
    Completed,
    Failed,
}

impl ToolStatus {
    /// The word for it, as clients see it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::InProgress => "in_progress",
            Self::Completed => "completed",
            Self::Failed => "failed",
        }
    }

    /// What a word means; `None` for one that says nothing about how far the call is.
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

/// Output or end of a terminal that the agent runs itself.
#[derive(Debug)]
pub struct TerminalUpdate<'a> {
    pub id: Cow<'a, str>,
    pub tool: Cow<'a, str>,
    /// Text to append.
    pub output: Option<JsonStr<'a>>,
    /// What else is said: working directory, exit status.
    pub details: Option<&'a RawValue>,
}

/// A permission question.
#[derive(Debug)]
pub struct Permission<'a> {
    pub session: Cow<'a, str>,
    pub key: RequestKey,
    pub tool: ToolUpdate<'a>,
    pub options: Vec<PermissionOption>,
    /// The options as they came.
    pub raw_options: Option<&'a RawValue>,
    /// What the user is asked with it, where "allowed" alone is no answer.
    pub form: Option<Inquiry>,
    /// What else was said with the question.
    pub other: Members<'a>,
}

/// A question to the user that is about no permission.
#[derive(Debug)]
pub struct Elicitation<'a> {
    /// The session, where the agent names one.
    pub session: Option<Cow<'a, str>>,
    /// The call that the agent asks for, where it names that.
    pub call: Option<CallId>,
    pub key: RequestKey,
    /// The tool call that asks.
    pub tool: Option<Cow<'a, str>>,
    pub inquiry: Inquiry,
}

/// Something that an agent wants of its client.
#[derive(Debug)]
pub struct RequestedOfHost<'a> {
    pub session: Cow<'a, str>,
    pub key: RequestKey,
    pub request: HostRequest,
}

/// One of the answers an agent offers to its question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PermissionOption {
    pub id: String,
    pub name: String,
    pub kind: OptionKind,
}

/// What an answer means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OptionKind {
    AllowOnce,
    AllowAlways,
    RejectOnce,
    RejectAlways,
    /// A kind that the protocol does not have: never chosen by a policy.
    Unknown,
}

impl OptionKind {
    /// Whether it refuses, once or always.
    #[must_use]
    pub fn refuses(self) -> bool {
        matches!(self, Self::RejectOnce | Self::RejectAlways)
    }
}

/// How a turn ended.
#[derive(Debug, Default)]
pub struct TurnEnd {
    pub stop_reason: StopReason,
    /// The agent's own word for it.
    pub reported: String,
    /// Why the turn failed, where the agent says so with its answer.
    pub error: Option<Error>,
    /// Whether the prompt was a command of the agent's own, which asks no model and may have nothing to say.
    pub of_command: bool,
    pub usage: Option<TokenUsage>,
    /// What the session cost so far.
    pub cost: Option<f64>,
    /// Turns of the agent's own loop.
    pub num_turns: Option<u64>,
    /// The answer in the form that the client asked for.
    pub structured_output: Option<Box<RawValue>>,
    /// The dialect's own additions to the answer.
    pub details: Option<Box<RawValue>>,
    /// What else came with the answer: fields that the protocol does not have.
    pub other: Members<'static>,
}

impl TurnEnd {
    /// The end of a turn that was cancelled: what was asked for is no failure.
    #[must_use]
    pub fn without_error(mut self) -> Self {
        if let Some(error) = self.error.take_if(|e| e.kind != ErrorKind::Timeout) {
            self.stop_reason = StopReason::Cancelled;
            "cancelled".clone_into(&mut self.reported);
            self.other.set_owned("error", &error.message);
        }
        self
    }
}

/// Why an agent stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StopReason {
    #[default]
    EndTurn,
    MaxTokens,
    MaxTurns,
    Refusal,
    Cancelled,
    /// A reason that the protocol does not have.
    Unknown,
}

/// How a process ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Exit {
    pub code: Option<i32>,
    pub signal: Option<i32>,
    /// The last it wrote to stderr.
    pub stderr: String,
}

impl Exit {
    /// What it means for whoever needed the process.
    #[must_use]
    pub fn error(&self, kind: ErrorKind, when: &str) -> Error {
        let mut error = Error::new(kind, format!("{when}: {}", self.describe()));
        if let Some(code) = self.code {
            error = error.with("exitCode", code);
        }
        if let Some(signal) = self.signal {
            error = error.with("signal", signal);
        }
        if !self.stderr.is_empty() {
            error = error.with_end("stderr", &self.stderr);
        }
        error
    }

    fn describe(&self) -> String {
        let how = match (self.code, self.signal) {
            (Some(code), _) => format!("exit code {code}"),
            (None, Some(signal)) => format!("killed by signal {signal}"),
            (None, None) => "no exit code".to_owned(),
        };
        match cause(&self.stderr) {
            Some(cause) => format!("{how}; its stderr says: {cause}"),
            None => match last_line(&self.stderr) {
                Some(last) => format!("{how}; the last line of its stderr: {}", clip(last)),
                None => how,
            },
        }
    }
}

/// What an agent is and can do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentInfo {
    pub name: Option<String>,
    pub title: Option<String>,
    pub version: Option<String>,
    pub capabilities: AgentCapabilities,
    pub auth_methods: Vec<AuthMethod>,
}
