//! Events of agents, in a form that all dialects share.
//!
//! Events borrow from the agent's line: on the hot path nothing is decoded or copied before it is written to
//! the client's output.

mod call_id;
mod failure_report;
mod text_run;
mod update;

use super::cause::{cause, cause_or_end};
use super::elicitation::ElicitationDetails;
use super::error::{Error, ErrorKind, clip};
use super::host::HostRequest;
use super::process_health::last_line;
use super::request_key::RequestKey;
use acpipe_json::Members;
use acpipe_protocol::wire::{AgentCapabilities, AuthMethod, TokenUsage};
pub use call_id::{NO_CALL_ID, call_id, is_text};
pub use failure_report::FailureReport;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::sync::Arc;
pub use text_run::TextRun;
pub use update::{
    Content, MessagePiece, MessageRole, TerminalUpdate, ToolStatus, ToolUpdate, Update,
};

/// Id of a call to an agent, until its result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallId(pub u64);

#[derive(Debug)]
pub enum AgentEvent<'a> {
    /// The handshake succeeded.
    Ready(Box<AgentInfo>),
    /// The handshake failed, so the agent cannot be used.
    NotReady(Error),
    SessionOpened {
        call: CallId,
        agent_session: String,
        /// State of the session: modes, models, options and other members of the result.
        state: Members<'a>,
    },
    Listed {
        call: CallId,
        /// One page of sessions.
        sessions: Vec<ListedSession>,
        /// Cursor of the next page; `None` on the last page.
        next: Option<String>,
    },
    /// Result of a call that sets a mode, a model or an option.
    Set {
        call: CallId,
        /// State of the session, as far as the result contains it.
        state: Members<'a>,
    },
    /// Result of a call without data.
    Done {
        call: CallId,
    },
    Update {
        /// The agent's id of the session.
        session: Cow<'a, str>,
        update: Update<'a>,
        original: Original<'a>,
    },
    /// A message about a tool call cannot be read.
    CallLost(Box<LostCall>),
    Permission(Box<Permission<'a>>),
    /// Request of a hook before a tool runs for which the agent does not request permission.
    ToolHook(Box<Permission<'a>>),
    Elicitation(Box<Elicitation<'a>>),
    /// The user has visited the address of the elicitation with this id.
    UrlCompleted {
        id: String,
    },
    /// Request for a file or a terminal of the client.
    Wanted(Box<HostRequestReceived<'a>>),
    /// Request or notification of a method that acpipe does not interpret.
    Forward(Box<ForwardReceived<'a>>),
    /// Result of a call that passed on a request of a client.
    Forwarded {
        call: CallId,
        result: &'a RawValue,
    },
    Withdrawn {
        key: RequestKey,
    },
    /// The agent reports outside of its result whether the session's turn fails.
    TurnFailing {
        /// The agent's id of the session.
        session: String,
        failing: FailureReport,
    },
    TurnEnded {
        call: CallId,
        end: TurnEnd,
    },
    Failed {
        call: CallId,
        error: Error,
    },
    /// A session ended, but the agent still serves others; the session can be opened again.
    SessionLost {
        /// The agent's id of the session.
        session: String,
        error: Error,
    },
    /// The agent uses another id for a session from now on.
    SessionRenamed {
        /// The agent's previous id of the session.
        session: String,
        to: String,
    },
    /// The agent starts a prompt that was queued behind its own background activity.
    QueuedPromptBegan {
        call: CallId,
    },
    /// The agent starts a background turn, whose end it will report. The previous turn produces no more
    /// events.
    BackgroundTurnBegan {
        /// The agent's id of the session.
        session: String,
    },
    BackgroundTurnEnded {
        /// The agent's id of the session.
        session: String,
        end: TurnEnd,
    },
}

impl AgentEvent<'_> {
    pub fn request_key(&self) -> Option<&RequestKey> {
        match self {
            Self::Permission(asked) | Self::ToolHook(asked) => Some(&asked.key),
            Self::Elicitation(asked) => Some(&asked.key),
            Self::Wanted(wanted) => Some(&wanted.key),
            Self::Forward(message) => message.key.as_ref(),
            _ => None,
        }
    }
}

/// Tool call of a message that cannot be read.
#[derive(Debug)]
pub struct LostCall {
    /// The agent's id of the session; `None` if it cannot be read either.
    pub session: Option<String>,
    /// The agent's id of the call, if the message updates one that it has begun.
    pub updates: Option<String>,
    /// Fault of the line of the message, for a sentence that begins with "the line".
    pub fault: String,
}

/// Session in the agent's list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListedSession {
    /// The agent's id of the session.
    pub id: String,
    pub cwd: Option<String>,
    pub title: Option<String>,
    /// Time of the last change as the agent writes it, in ACP ISO 8601; `None` if the agent gives none.
    pub updated_at: Option<String>,
}

/// An update as the agent sent it, extracted from its line only if needed.
#[derive(Clone, Copy)]
pub struct Original<'a> {
    pub line: &'a str,
    /// Function that finds the update in the line.
    pub cut: fn(&str) -> Option<&RawValue>,
    /// Function that returns the members of the update, of any kind, and those next to it.
    pub fields: fn(&str) -> Members<'_>,
}

impl<'a> Original<'a> {
    #[must_use]
    pub fn json(self) -> &'a RawValue {
        (self.cut)(self.line).unwrap_or(RawValue::NULL)
    }

    /// Returns the members of the update without the name of its kind.
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

/// Request for permission to run a tool.
#[derive(Debug)]
pub struct Permission<'a> {
    /// The agent's id of the session.
    pub session: Cow<'a, str>,
    pub key: RequestKey,
    pub tool: ToolUpdate<'a>,
    pub options: Vec<PermissionOption>,
    pub raw_options: Option<&'a RawValue>,
    /// Question to the user in the request, which an approval alone does not answer.
    pub form: Option<ElicitationDetails>,
    /// Parameters of the request in ACP; `None` if the agent does not speak ACP, or did not ask itself.
    pub acp: Option<&'a RawValue>,
    pub other: Members<'a>,
}

/// Question of an agent to its user that is not about a permission.
#[derive(Debug)]
pub struct Elicitation<'a> {
    /// The agent's id of the session; `None` if the question belongs to none.
    pub session: Option<Cow<'a, str>>,
    /// Call during which the agent asks; `None` if the agent names none.
    pub call: Option<CallId>,
    pub key: RequestKey,
    pub tool: Option<Cow<'a, str>>,
    pub elicitation: ElicitationDetails,
    /// Parameters of the request in ACP; `None` if the agent does not speak ACP.
    pub acp: Option<&'a RawValue>,
}

/// Request of an agent for a file or a terminal of its client.
#[derive(Debug)]
pub struct HostRequestReceived<'a> {
    /// The agent's id of the session.
    pub session: Cow<'a, str>,
    pub key: RequestKey,
    pub request: HostRequest,
    /// Method of the request in ACP.
    pub method: Cow<'a, str>,
    /// Parameters of the request in ACP.
    pub acp: Option<&'a RawValue>,
}

/// Message of an agent to its client, of a method that acpipe does not interpret.
#[derive(Debug)]
pub struct ForwardReceived<'a> {
    /// The agent's id of the session that the message names; `None` if it names none.
    pub session: Option<Cow<'a, str>>,
    /// Key of the agent's request, for the response; `None` for a notification.
    pub key: Option<RequestKey>,
    pub method: Cow<'a, str>,
    pub params: Option<&'a RawValue>,
}

/// Possible answer to a permission request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PermissionOption {
    pub id: String,
    /// Label of the option for people.
    pub name: String,
    pub kind: OptionKind,
}

/// Effect of an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OptionKind {
    AllowOnce,
    /// Allows this action; the agent remembers the choice.
    AllowAlways,
    RejectOnce,
    /// Rejects this action; the agent remembers the choice.
    RejectAlways,
    /// A kind that the protocol does not define; a policy never chooses it.
    Unknown,
}

impl OptionKind {
    #[must_use]
    pub fn refuses(self) -> bool {
        matches!(self, Self::RejectOnce | Self::RejectAlways)
    }
}

/// Result of a turn.
#[derive(Debug, Default)]
pub struct TurnEnd {
    pub stop_reason: StopReason,
    /// Stop reason as the agent reported it.
    pub reported: String,
    pub error: Option<Error>,
    /// Whether the prompt was a command of the agent itself, which sends no request to the model and may have
    /// no output.
    pub of_command: bool,
    /// Tokens of the turn; `None` if the agent does not report them.
    pub usage: Option<TokenUsage>,
    /// Cost of the session so far; `None` if the agent does not report it.
    pub cost: Option<f64>,
    /// Number of turns of the agent's own loop; `None` if the agent does not report it.
    pub num_turns: Option<u64>,
    /// Answer that matches the schema which the client requested.
    pub structured_output: Option<Box<RawValue>>,
    /// Extension data of the dialect in the result.
    pub details: Option<Box<RawValue>>,
    /// Other members of the result, which the protocol does not define.
    pub other: Members<'static>,
    /// Result of `session/prompt` in ACP; `None` if the agent does not speak ACP.
    pub acp: Option<Arc<str>>,
}

impl TurnEnd {
    /// Returns `true` if the agent ended the turn with a word for a failure in place of a stop reason of the protocol.
    #[must_use]
    pub fn is_named_failure(&self) -> bool {
        let words = ["error", "failed", "failure"];
        let is_named = |word: &&str| self.reported.eq_ignore_ascii_case(word);
        self.stop_reason == StopReason::Unknown && words.iter().any(is_named)
    }

    /// Converts the end of a turn that the client cancelled: an error, except a timeout, and a failure in place of a
    /// stop reason (`error`) become the stop reason `cancelled`, since the client asked for it.
    #[must_use]
    pub fn of_cancelled(mut self) -> Self {
        let error = self.error.take_if(|e| e.kind != ErrorKind::Timeout);
        let is_failure = self.error.is_none() && self.is_named_failure();
        if error.is_some() || is_failure {
            self.stop_reason = StopReason::Cancelled;
            let reported = std::mem::replace(&mut self.reported, "cancelled".to_owned());
            self.acp = None;
            match error {
                Some(error) => self.other.set_owned("error", &error.message),
                None => self.other.set_owned("stopReason", &reported),
            }
        }
        self
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StopReason {
    /// The agent completed its answer.
    #[default]
    EndTurn,
    MaxTokens,
    /// The agent reached its limit of turns of its own loop.
    MaxTurns,
    Refusal,
    Cancelled,
    /// A stop reason that the protocol does not define.
    Unknown,
}

impl StopReason {
    /// Returns the name of the reason in ACP; `None` for a reason that ACP does not define.
    #[must_use]
    pub fn acp_name(self) -> Option<&'static str> {
        Some(match self {
            Self::EndTurn => "end_turn",
            Self::MaxTokens => "max_tokens",
            Self::MaxTurns => "max_turn_requests",
            Self::Refusal => "refusal",
            Self::Cancelled => "cancelled",
            Self::Unknown => return None,
        })
    }
}

/// Exit status of a process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Exit {
    /// Exit code; `None` if a signal ended the process, or if unknown.
    pub code: Option<i32>,
    /// Number of the signal that ended the process; `None` if it exited by itself.
    pub signal: Option<i32>,
    /// Last output of the process on stderr.
    pub stderr: String,
    /// Last lines of the process on stdout that are no messages of the protocol.
    pub stdout: String,
}

impl Exit {
    /// Builds an error for the loss of the process; `when` describes the situation and begins the message.
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
        if !self.stdout.is_empty() {
            error = error.with_end("stdout", &self.stdout);
        }
        error
    }

    fn describe(&self) -> String {
        let how = match (self.code, self.signal) {
            (Some(code), _) => format!("exit code {code}"),
            (None, Some(signal)) => format!("killed by signal {signal}"),
            (None, None) => "unknown exit code".to_owned(),
        };
        let of_stderr = || {
            let last = clip(last_line(&self.stderr)?);
            Some(format!("{how}; last line of stderr: {last}"))
        };
        if let Some(cause) = cause(&self.stderr) {
            return format!("{how}; stderr: {cause}");
        }
        if let Some(cause) = cause(&self.stdout) {
            return format!("{how}; stdout: {cause}");
        }
        let of_stdout = || {
            let end = cause_or_end(&self.stdout)?;
            Some(format!("{how}; end of stdout: {end}"))
        };
        of_stderr().or_else(of_stdout).unwrap_or(how)
    }
}

/// Data that an agent reports about itself in the handshake.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentInfo {
    /// Name for programs; `None` if the agent gives none.
    pub name: Option<String>,
    /// Name for people; `None` if the agent gives none.
    pub title: Option<String>,
    pub version: Option<String>,
    pub capabilities: AgentCapabilities,
    pub auth_methods: Vec<AuthMethod>,
    /// Result of `initialize` in ACP; `None` if the agent does not speak ACP.
    pub acp: Option<Arc<str>>,
}
