//! The error type of the library.

use acpipe_model::error::{Error as CoreError, ErrorKind};
use acpipe_protocol::wire::{TurnError, TurnSummary};
use serde_json::{Map, Value};
use std::fmt;

/// Result of the library's calls.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A failed call, or a failed turn.
///
/// The message has one line: what failed, why, and what to do next. [`Error::kind`] is for programs.
///
/// ```
/// use acpipe::{Acpipe, ErrorKind};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let error = Acpipe::builder().agent("no-such-agent").start().unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::InvalidParams);
/// assert!(error.message().contains("no-such-agent"));
/// # }
/// ```
#[derive(Clone, PartialEq)]
pub struct Error(Box<ErrorDetails>);

#[derive(Debug, Clone, PartialEq)]
struct ErrorDetails {
    error: CoreError,
    summary: Option<TurnSummary>,
}

impl Error {
    /// Creates an error.
    pub(super) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        CoreError::new(kind, message).into()
    }

    /// Creates the error of a turn that failed.
    pub(super) fn of_turn(first: &TurnError, summary: TurnSummary) -> Self {
        let known = ErrorKind::ALL.iter().find(|kind| kind.name() == first.kind);
        let mut error = CoreError::new(*known.unwrap_or(&ErrorKind::Session), &*first.message);
        if let Value::Object(data) = &first.data {
            error.data.clone_from(data);
        }
        Self(Box::new(ErrorDetails {
            error,
            summary: Some(summary),
        }))
    }

    /// Creates the error of a call to an acpipe that has shut down.
    pub(super) fn shut_down() -> Self {
        Self::new(
            ErrorKind::Cancelled,
            "acpipe was shut down; start another one with Acpipe::builder()",
        )
    }

    /// Creates the error for a reply of another type than the call has.
    pub(super) fn unexpected_reply() -> Self {
        Self::new(
            ErrorKind::Internal,
            "acpipe replied with another type than the call has; please report it",
        )
    }

    /// Returns the kind.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.0.error.kind
    }

    /// Returns the message for people, one line.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.0.error.message
    }

    /// Returns facts about the failure by name, such as the end of the agent's stderr.
    #[must_use]
    pub fn data(&self) -> &Map<String, Value> {
        &self.0.error.data
    }

    /// Returns the summary of the turn that failed: its text and tool calls up to the failure. `None` unless a
    /// turn failed.
    #[must_use]
    pub fn summary(&self) -> Option<&TurnSummary> {
        self.0.summary.as_ref()
    }
}

impl From<CoreError> for Error {
    fn from(error: CoreError) -> Self {
        Self(Box::new(ErrorDetails {
            error,
            summary: None,
        }))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Error")
            .field("kind", &self.kind())
            .field("message", &self.message())
            .field("data", self.data())
            .finish_non_exhaustive()
    }
}

impl std::error::Error for Error {}
