//! The error type of the core, and the table of error kinds with the codes that clients get.

use super::cut::CUT;
use super::printable::printable;
use acpipe_protocol::wire::{AuthMethod, CommandLine, SignIn, TurnError};
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::sync::Arc;

/// Maximum length of a raw message or stderr in an error, in bytes.
const RAW_LIMIT: usize = 2000;

/// Error that is sent to a client: what failed, what to do next, and raw facts.
#[derive(Debug, Clone, PartialEq)]
pub struct Error {
    /// Kind, which determines the codes.
    pub kind: ErrorKind,
    /// One line: the failure, its cause, and the next step.
    pub message: String,
    /// Raw facts by name, bounded in size.
    pub data: Map<String, Value>,
    /// Error object of an ACP agent as it sent it, for clients that speak ACP.
    pub acp: Option<Arc<str>>,
}

macro_rules! kinds {
    ($($(#[doc = $doc:literal])+ $kind:ident = $name:literal, $rpc:literal, $exit:literal;)*) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        // The tests match all kinds, so that none is without a test.
        #[cfg_attr(not(feature = "test-support"), non_exhaustive)]
        pub enum ErrorKind { $($(#[doc = $doc])+ $kind,)* }

        impl ErrorKind {
            /// All kinds, in the order of the table.
            pub const ALL: &[Self] = &[$(Self::$kind,)*];

            /// Returns the name of the kind in `data.kind` and in the `errors` of a summary.
            #[must_use]
            pub fn name(self) -> &'static str { match self { $(Self::$kind => $name,)* } }

            #[must_use]
            pub fn rpc_code(self) -> i32 { match self { $(Self::$kind => $rpc,)* } }

            /// Returns the exit code of `acpipe run`.
            #[must_use]
            pub fn exit_code(self) -> u8 { match self { $(Self::$kind => $exit,)* } }

            #[must_use]
            pub fn meaning(self) -> &'static str {
                match self { $(Self::$kind => concat!($($doc),+),)* }
            }
        }
    };
}

kinds! {
    // Columns: kind = name, JSON-RPC code, exit code. Exit codes follow sysexits.h, `timeout` and the shell.
    #[doc = "No agent has this name, or the agent's command was not found."]
    AgentNotFound = "agentNotFound", -32010, 127;
    #[doc = "The agent failed to start, or exited before it was ready."]
    AgentStart = "agentStart", -32011, 126;
    #[doc = "The agent's response to `initialize` is not valid."]
    Initialize = "initialize", -32012, 76;
    #[doc = "The agent requires sign-in."]
    AuthRequired = "authRequired", -32000, 77;
    #[doc = "The agent returned an error."]
    Session = "session", -32013, 1;
    #[doc = "The agent process exited unexpectedly."]
    AgentExited = "agentExited", -32024, 1;
    #[doc = "The agent reached its limit of turns."]
    MaxTurns = "maxTurns", -32025, 1;
    #[doc = "The agent ended its turn without any output."]
    EmptyTurn = "emptyTurn", -32033, 1;
    #[doc = "A time limit was reached."]
    Timeout = "timeout", -32014, 124;
    #[doc = "The agent cannot reach its model over the network."]
    Network = "network", -32015, 69;
    #[doc = "The agent's response is not valid; `data.raw` contains it."]
    Malformed = "malformed", -32016, 65;
    #[doc = "The agent's answer does not match the output schema; `data.violations` lists the mismatches."]
    SchemaMismatch = "schemaMismatch", -32040, 65;
    #[doc = "The agent's output ended early; the output before that was delivered."]
    Streaming = "streaming", -32017, 74;
    #[doc = "A queue or limit is full; try again later."]
    Overloaded = "overloaded", -32001, 75;
    #[doc = "The call was cancelled."]
    Cancelled = "cancelled", -32800, 130;
    #[doc = "The named tool does not exist."]
    InvalidTool = "invalidTool", -32018, 2;
    #[doc = "Two agents have the same name."]
    DuplicateAgent = "duplicateAgent", -32019, 2;
    #[doc = "The session is busy with a turn."]
    Busy = "busy", -32020, 75;
    #[doc = "The call is not possible in the current state; another call must come first."]
    OutOfOrder = "outOfOrder", -32021, 2;
    #[doc = "The role of the client does not allow the call."]
    Forbidden = "forbidden", -32041, 77;
    #[doc = "The session does not exist."]
    SessionNotFound = "sessionNotFound", -32022, 1;
    #[doc = "A session with this id already exists."]
    SessionExists = "sessionExists", -32023, 1;
    #[doc = "The session is in use by another process."]
    SessionLocked = "sessionLocked", -32026, 75;
    #[doc = "A session cannot be stored or read."]
    Storage = "storage", -32027, 74;
    #[doc = "A turn with this id was prompted before, and its result is unknown."]
    TurnUnfinished = "turnUnfinished", -32028, 1;
    #[doc = "The message does not exist."]
    MessageNotFound = "messageNotFound", -32029, 1;
    #[doc = "A message with this id already exists."]
    MessageExists = "messageExists", -32030, 1;
    #[doc = "A file or terminal that the agent requested does not exist."]
    ResourceNotFound = "resourceNotFound", -32031, 1;
    #[doc = "acpipe cannot access a file or run a command for the agent."]
    Resource = "resource", -32032, 1;
    #[doc = "A parameter is missing or not valid."]
    InvalidParams = "invalidParams", -32602, 2;
    #[doc = "The message is not a valid JSON-RPC request."]
    InvalidRequest = "invalidRequest", -32600, 2;
    #[doc = "The message is not valid JSON."]
    Parse = "parse", -32700, 2;
    #[doc = "The method does not exist."]
    MethodNotFound = "methodNotFound", -32601, 2;
    #[doc = "acpipe failed internally; please report it."]
    Internal = "internal", -32603, 70;
}

impl ErrorKind {
    /// Returns `true` if the same call fails again until a person acts: signs in, installs an agent, or corrects an argument, a
    /// file or a permission.
    #[must_use]
    pub fn needs_person(self) -> bool {
        match self {
            Self::AgentNotFound
            | Self::AgentStart
            | Self::Initialize
            | Self::AuthRequired
            | Self::InvalidTool
            | Self::DuplicateAgent
            | Self::OutOfOrder
            | Self::Forbidden
            | Self::SessionExists
            | Self::Storage
            | Self::TurnUnfinished
            | Self::MessageNotFound
            | Self::MessageExists
            | Self::ResourceNotFound
            | Self::InvalidParams
            | Self::InvalidRequest
            | Self::Parse
            | Self::MethodNotFound => true,
            Self::Session
            | Self::SessionNotFound
            | Self::MaxTurns
            | Self::AgentExited
            | Self::EmptyTurn
            | Self::Timeout
            | Self::Network
            | Self::Malformed
            | Self::SchemaMismatch
            | Self::Streaming
            | Self::Overloaded
            | Self::Cancelled
            | Self::Busy
            | Self::SessionLocked
            | Self::Resource
            | Self::Internal => false,
        }
    }
}

impl Error {
    #[must_use]
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: one_line(printable(&message.into())),
            data: Map::new(),
            acp: None,
        }
    }

    /// Adds the end of a long text, such as stderr, as a raw fact.
    #[must_use]
    pub fn with_end(mut self, name: &str, text: &str) -> Self {
        let cut = text.len().saturating_sub(RAW_LIMIT);
        let start = (cut..=text.len())
            .find(|&at| text.is_char_boundary(at))
            .unwrap_or(cut);
        let dots = if start > 0 { CUT } else { "" };
        let end = format!("{dots}{}", &text[start..]);
        self.data.insert(name.to_owned(), end.into());
        self
    }

    /// Adds a raw fact; a long text is clipped.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        let value = match value.into() {
            Value::String(text) => Value::String(clip(&text)),
            other => other,
        };
        self.data.insert(name.to_owned(), value);
        self
    }

    /// Creates the error for a missing sign-in. `login` is the well-known sign-in command, which is used if
    /// the agent names no command itself.
    #[must_use]
    pub fn auth_required(said: &str, methods: &[AuthMethod], login: Option<&str>) -> Self {
        let in_terminal = |method: &AuthMethod| matches!(method.way, SignIn::Terminal(_));
        let login = login.filter(|_| !methods.iter().any(in_terminal));
        let login = login.map(|command| format!("run `{command}`"));
        let ways: Vec<String> = login.into_iter().chain(methods.iter().map(way)).collect();
        let ways = if ways.is_empty() {
            "sign in first: start the agent's own program in a terminal, or set its key in the environment (`-e NAME`)"
                .to_owned()
        } else {
            format!("sign in first ({})", ways.join("; "))
        };
        // The agent's own message is added unless it only repeats the kind of the error.
        let bare = said.trim().trim_end_matches('.').to_lowercase();
        let bare = bare.strip_prefix("internal error: ").unwrap_or(&bare);
        let said_more = !matches!(
            bare,
            "" | "authentication required" | "auth required" | "server error"
        );
        let more = if said_more {
            format!("; message of the agent: {}", clip(said.trim()))
        } else {
            String::new()
        };
        Self::new(
            ErrorKind::AuthRequired,
            format!("auth required: {ways}{more}"),
        )
        .with("agentMessage", said)
        .with("authMethods", json!(methods))
    }

    /// Returns the `data` member that clients get: the kind and the raw facts.
    pub fn data(&self) -> Value {
        let mut data = self.data.clone();
        data.insert("kind".into(), self.kind.name().into());
        Value::Object(data)
    }
}

/// Describes a sign-in method.
fn way(method: &AuthMethod) -> String {
    match &method.way {
        SignIn::Agent => match &method.description {
            // Some agents name the command only in the description.
            Some(description) if description.contains('`') => {
                format!("{}: {description}", method.name)
            }
            _ => method.name.clone(),
        },
        SignIn::EnvVar { vars, .. } => {
            let names: Vec<&str> = vars.iter().map(|var| var.name.as_str()).collect();
            format!("{}: set {}", method.name, names.join(", "))
        }
        SignIn::Terminal(CommandLine { command, args, .. }) => {
            let words = [std::slice::from_ref(command), args].concat();
            format!("{}: run `{}`", method.name, words.join(" "))
        }
    }
}

impl From<&Error> for TurnError {
    fn from(e: &Error) -> Self {
        Self {
            kind: e.kind.name().to_owned(),
            message: e.message.clone(),
            data: Value::Object(e.data.clone()),
            acp: e.acp.clone(),
        }
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

/// Creates the error for an invalid parameter; `field` is its path.
pub fn invalid(field: &str, why: &str) -> Error {
    Error::new(ErrorKind::InvalidParams, format!("{field}: {why}")).with("field", field)
}

/// Creates the error for a call that is not possible in the current state.
pub fn out_of_order(message: &str) -> Error {
    Error::new(ErrorKind::OutOfOrder, message)
}

/// Returns the error of a call that comes while acpipe ends.
#[must_use]
pub fn shutting_down() -> Error {
    Error::new(ErrorKind::Overloaded, "acpipe is shutting down").with("stage", SHUTDOWN)
}

/// `data.stage` of [`shutting_down`].
pub const SHUTDOWN: &str = "shutdown";

pub fn no_session(id: &str) -> Error {
    let message = format!("session {id:?} not found; call session/ensure first");
    Error::new(ErrorKind::SessionNotFound, message)
}

/// Texts by which Node, Bun, Rust and Python, and programs written in them, report a failed connection.
const CONNECTION_FAILURES: &[&str] = &[
    "ECONNREFUSED",
    "ECONNRESET",
    "ENOTFOUND",
    "EAI_AGAIN",
    "ETIMEDOUT",
    "ENETUNREACH",
    "EHOSTUNREACH",
    "fetch failed",
    "error sending request for url",
    "Connection error",
    "Connection refused",
    "ConnectionRefused",
    "Unable to connect to API",
    "ECONNABORTED",
    "FailedToOpenSocket",
    "ConnectionClosed",
    "socket connection was closed unexpectedly",
    "socket hang up",
    "network error",
    "Unable to connect. Is the computer able to access the url",
    "SSL certificate verification failed",
    "self-signed certificate",
    "unable to verify the first certificate",
    "unable to get local issuer certificate",
];

pub fn is_connection_failure(text: &str) -> bool {
    CONNECTION_FAILURES.iter().any(|words| text.contains(words))
}

/// Makes one printable line of limited length of a text of an agent, for a sentence of acpipe.
#[must_use]
pub fn one_sentence(text: &str) -> String {
    clip(&one_line(printable(text)))
}

/// Joins the lines of a message with spaces.
fn one_line(message: Cow<'_, str>) -> String {
    if !message.contains('\n') {
        return message.into_owned();
    }
    let lines = message.lines().map(str::trim).filter(|l| !l.is_empty());
    lines.collect::<Vec<_>>().join(" ")
}

/// Clips a text to `RAW_LIMIT` bytes, cut between characters, and appends [`CUT`] and its full length.
pub fn clip(text: &str) -> String {
    if text.len() <= RAW_LIMIT {
        return text.to_owned();
    }
    let end = (0..=RAW_LIMIT)
        .rfind(|&at| text.is_char_boundary(at))
        .unwrap_or(0);
    format!("{}{CUT} ({} bytes in all)", &text[..end], text.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn names_and_codes_are_unique() {
        let names: HashSet<_> = ErrorKind::ALL.iter().map(|k| k.name()).collect();
        let codes: HashSet<_> = ErrorKind::ALL.iter().map(|k| k.rpc_code()).collect();
        assert_eq!(names.len(), ErrorKind::ALL.len());
        assert_eq!(codes.len(), ErrorKind::ALL.len());
        assert!(ErrorKind::ALL.iter().all(|k| k.exit_code() != 0));
    }

    #[test]
    fn raw_facts_are_bounded_between_characters() {
        let e = Error::new(ErrorKind::Malformed, "x").with("raw", "é".repeat(5000));
        let raw = e.data["raw"].as_str().unwrap();
        assert!(raw.len() < RAW_LIMIT + 40, "{}", raw.len());
        assert_eq!(e.data()["kind"], "malformed");
    }
}
