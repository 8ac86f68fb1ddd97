//! Failures of an agent, and the JSON-RPC errors that clients get.

use acpipe_json::rpc::{ErrorObject, code};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};
use std::fmt;

/// Member of `data` in a JSON-RPC error that holds the kind of the failure. acpipe reads it back, so that its
/// clients get the same kind.
const OWN_DATA: &str = "acpipe";

/// ACP's error code for a missing sign-in.
const AUTH_REQUIRED: i32 = -32000;

/// ACP's error code for a resource or session that does not exist.
const NOT_FOUND: i32 = -32002;

/// Kind of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FailureKind {
    /// Any other failure.
    Session,
    /// The user must sign in first.
    AuthRequired,
    /// The model or another service cannot be reached over the network.
    Network,
    /// A time limit was reached.
    Timeout,
    /// The model or another service rejects calls because of their rate; a later call may succeed.
    Overloaded,
    /// The agent reached its limit of model calls.
    MaxTurns,
    /// The response of the model or of another service is not valid.
    Malformed,
    /// The model's output ended early.
    Streaming,
    /// A tool does not exist, or is not allowed.
    InvalidTool,
    /// The agent does not have the session.
    SessionNotFound,
    /// The prompt or a parameter is not valid.
    InvalidParams,
    /// The client does not support what the agent requested.
    Unsupported,
    /// The session runs another turn.
    Busy,
}

impl FailureKind {
    /// All kinds.
    pub const ALL: &[Self] = &[
        Self::Session,
        Self::AuthRequired,
        Self::Network,
        Self::Timeout,
        Self::Overloaded,
        Self::MaxTurns,
        Self::Malformed,
        Self::Streaming,
        Self::InvalidTool,
        Self::SessionNotFound,
        Self::InvalidParams,
        Self::Unsupported,
        Self::Busy,
    ];

    /// Returns the name of the kind, as in the errors that acpipe's clients get.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Session | Self::Unsupported => "session",
            Self::AuthRequired => "authRequired",
            Self::Network => "network",
            Self::Timeout => "timeout",
            Self::Overloaded => "overloaded",
            Self::MaxTurns => "maxTurns",
            Self::Malformed => "malformed",
            Self::Streaming => "streaming",
            Self::InvalidTool => "invalidTool",
            Self::SessionNotFound => "sessionNotFound",
            Self::InvalidParams => "invalidParams",
            Self::Busy => "busy",
        }
    }

    fn code(self) -> i32 {
        match self {
            Self::AuthRequired => AUTH_REQUIRED,
            Self::SessionNotFound => NOT_FOUND,
            Self::InvalidParams | Self::InvalidTool => code::INVALID_PARAMS,
            Self::Busy => code::INVALID_REQUEST,
            _ => code::INTERNAL_ERROR,
        }
    }
}

/// Failure of an agent: what failed, why, and what to do next.
///
/// What the agent wrote before is delivered first. Any error type converts to a failure of the kind
/// [`FailureKind::Session`], so that `?` works:
///
/// ```
/// # mod acpipe { pub use acpipe_agent::{self as agent, testing}; }
/// use acpipe::agent::{AgentError, FailureKind};
///
/// fn number(text: &str) -> Result<u32, AgentError> {
///     Ok(text.parse()?)
/// }
///
/// assert_eq!(number("7").unwrap(), 7);
/// assert_eq!(number("x").unwrap_err().kind(), FailureKind::Session);
/// let error = AgentError::new(FailureKind::Overloaded, "the model is busy; try again in a minute");
/// assert_eq!(error.kind().name(), "overloaded");
/// ```
#[derive(Clone, PartialEq)]
pub struct AgentError {
    kind: FailureKind,
    message: String,
    facts: Map<String, Value>,
    fatal: bool,
}

impl AgentError {
    /// Creates a failure of this kind.
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            facts: Map::new(),
            fatal: false,
        }
    }

    /// Creates a failure after which the agent cannot continue. It ends without a response to the prompt, as
    /// after a crash: a program exits with the error, and an agent inside another program is started anew for
    /// the next prompt. acpipe does that three times in a row, at once and after 1 s and 2 s, until a turn is
    /// complete; after that the agent has to be started by a call (`agent/connect`, or `Acpipe::start_agent` of
    /// the library).
    pub fn fatal(message: impl Into<String>) -> Self {
        Self {
            fatal: true,
            ..Self::new(FailureKind::Session, message)
        }
    }

    /// Adds a fact for programs, such as the raw response of a model. Clients get it in the `data` of the
    /// error.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.facts.insert(name.into(), value.into());
        self
    }

    /// Returns the kind of the failure.
    #[must_use]
    pub fn kind(&self) -> FailureKind {
        self.kind
    }

    /// Returns the message.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Returns `true` if the agent cannot continue.
    #[must_use]
    pub fn is_fatal(&self) -> bool {
        self.fatal
    }

    /// Calls `write` with the error object of the response.
    pub(super) fn with_object<T>(&self, write: impl FnOnce(&ErrorObject<'_>) -> T) -> T {
        let mut data = self.facts.clone();
        data.insert(OWN_DATA.to_owned(), json!({ "kind": self.kind.name() }));
        let data: Option<Box<RawValue>> = to_raw_value(&data).ok();
        write(&ErrorObject {
            code: self.kind.code(),
            message: &self.message,
            data: data.as_deref(),
        })
    }
}

impl fmt::Display for AgentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// Like [`fmt::Display`], since a `main` that returns the error prints this form.
impl fmt::Debug for AgentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

// Without `std::error::Error`, which would conflict with this conversion.
impl<E: std::error::Error> From<E> for AgentError {
    fn from(error: E) -> Self {
        let mut message = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            let cause_message = cause.to_string();
            if !message.contains(&cause_message) {
                message = format!("{message}: {cause_message}");
            }
            source = cause.source();
        }
        Self::new(FailureKind::Session, message)
    }
}
