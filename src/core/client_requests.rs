//! Open requests to the client: permission requests and questions.

use super::ask::AskId;
use super::event::PermissionOption;
use super::host::Ticket;
use super::turn::Question;
use crate::proto::wire::LedgerEntry;
use serde_json::value::RawValue;
use std::time::Instant;

/// How many questions of a session, or of an agent outside of sessions, may be open at once: no person answers more.
pub const MOST_ASKS: usize = 256;

/// From how many bytes of open questions on no further one is asked: a question is a few KiB, and 256 of them with a file
/// of 256 KiB each have room.
const MOST_ASK_BYTES: usize = 64 << 20;

/// Why one question more is not asked.
pub const FULL: &str = "too many questions are open already";

/// A request to the client that waits for its answer.
#[derive(Debug)]
pub struct Ask {
    pub id: AskId,
    /// The connection of the agent that asked.
    pub agent: u64,
    /// The key under which the dialect expects the answer.
    pub key: Box<RawValue>,
    /// The file or command that waits for the answer; keys are the agent's to choose, and may come twice.
    pub ticket: Option<Ticket>,
    /// When it was asked.
    pub since: Instant,
    /// When the policy answers it.
    pub until: Option<Instant>,
    /// The turn in which it was shown.
    pub turn_id: String,
    pub about: AskKind,
    /// How many bytes it has.
    pub size: usize,
    /// Its entry in the ledger, without the decision.
    pub entry: Box<LedgerEntry>,
}

/// Whether so many questions are open, or so large ones, that no further one is asked.
#[must_use]
pub fn are_full(asks: &[Ask]) -> bool {
    let bytes: usize = asks.iter().map(|ask| ask.size).sum();
    asks.len() >= MOST_ASKS || bytes >= MOST_ASK_BYTES
}

/// What a request to the client is about.
#[derive(Debug)]
pub enum AskKind {
    /// Whether a tool may run.
    Permission {
        question: Question,
        options: Vec<PermissionOption>,
        /// The policy's rule because of which the client is asked.
        rule: String,
    },
    /// A question to the user.
    Question {
        question: Question,
        options: Vec<PermissionOption>,
    },
}

impl AskKind {
    /// The answers that are offered.
    #[must_use]
    pub fn options(&self) -> &[PermissionOption] {
        match self {
            Self::Permission { options, .. } | Self::Question { options, .. } => options,
        }
    }

    /// What was shown of it.
    #[must_use]
    pub fn question(&self) -> &Question {
        match self {
            Self::Permission { question, .. } | Self::Question { question, .. } => question,
        }
    }
}
