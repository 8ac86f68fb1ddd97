//! What the client is asked: requests that go from acpipe to its client.

pub use super::client_answer::{ClientAnswer, Refusal};
use super::host::Forwarded;
use crate::proto::json::size;
use crate::proto::wire;

/// Names a request to the client until its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AskId(pub u64);

/// What the client is asked.
#[derive(Debug, Clone)]
pub enum ClientRequest {
    /// Whether a tool may run.
    Permission(Box<wire::PermissionParams>),
    /// What the user wants.
    Question(Box<wire::QuestionParams>),
    /// A file or a terminal that the agent wants.
    Host(Box<Forwarded>),
}

impl ClientRequest {
    /// How many bytes are kept of it while it is open: of a file or a terminal none, which only its answer needs.
    #[must_use]
    pub fn size(&self) -> usize {
        match self {
            Self::Permission(params) => size(params),
            Self::Question(params) => size(params),
            Self::Host(_) => 0,
        }
    }

    /// Whether a client with these capabilities can answer this permission request or question.
    #[must_use]
    pub fn is_answered_with(&self, can: &wire::ClientCapabilities) -> bool {
        match self {
            Self::Permission(_) => can.permissions,
            Self::Question(_) => can.questions,
            Self::Host(_) => false,
        }
    }

    /// Its method on the wire.
    #[must_use]
    pub fn method(&self) -> &'static str {
        match self {
            Self::Permission(_) => "permission/request",
            Self::Question(_) => "question/ask",
            Self::Host(forwarded) => forwarded.method(),
        }
    }
}
