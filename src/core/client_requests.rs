//! Open requests to clients: permission requests and questions.

use super::ask::{AskId, ClientRequest};
use super::client::ClientId;
use super::event::PermissionOption;
use super::host::Ticket;
use super::request_key::RequestKey;
use super::turn::Question;
use crate::proto::wire::LedgerEntry;
use std::sync::Arc;
use std::time::Instant;

/// How many questions of a session, or of an agent outside of sessions, may be open at once: no person answers more.
pub const MOST_ASKS: usize = 256;

/// From how many bytes of open questions on no further one is asked: a question is a few KiB, and 256 of them with a file
/// of 256 KiB each have room.
const MOST_ASK_BYTES: usize = 64 << 20;

/// Why no question is asked.
pub const NOBODY: &str = "the client cannot be asked";

/// Why a question to the user is declined.
pub const NO_ANSWERS: &str = "no client answers questions";

/// Why one question more is not asked.
pub const FULL: &str = "too many questions are open already";

/// A request to clients that waits for its answer: the first valid one decides.
#[derive(Debug)]
pub struct Ask {
    pub id: AskId,
    /// The connection of the agent that asked.
    pub agent: u64,
    pub key: RequestKey,
    /// The file or command that waits for the answer; keys are the agent's to choose, and may come twice.
    pub ticket: Option<Ticket>,
    /// When it was asked.
    pub since: Instant,
    /// When the policy answers it.
    pub until: Option<Instant>,
    /// The turn in which it was shown.
    pub turn_id: String,
    pub about: AskKind,
    pub request: Arc<ClientRequest>,
    /// How many bytes it has.
    pub size: usize,
    /// The clients that were asked and can still answer.
    pub asked: Vec<ClientId>,
    /// Its entry in the ledger, without the decision.
    pub entry: Box<LedgerEntry>,
}

/// Whether so many questions are open, or so large ones, that no further one is asked.
#[must_use]
pub fn are_full(asks: &[Ask]) -> bool {
    let bytes: usize = asks.iter().map(|ask| ask.size).sum();
    asks.len() >= MOST_ASKS || bytes >= MOST_ASK_BYTES
}

/// What becomes of a request when a client answers it.
#[derive(Debug)]
pub enum Answered {
    /// The answer decides.
    Decides,
    /// The client was not asked, or its answer is not valid and others can still answer.
    Ignored,
}

impl Ask {
    /// Notes the answer of a client.
    pub fn note_answer(&mut self, client: ClientId, is_valid: bool) -> Answered {
        if !self.asked.contains(&client) {
            return Answered::Ignored;
        }
        self.asked.retain(|asked| *asked != client);
        if is_valid || self.asked.is_empty() {
            Answered::Decides
        } else {
            Answered::Ignored
        }
    }

    /// Notes that a client has left; true where nobody is left who can answer.
    pub fn note_left(&mut self, client: ClientId) -> bool {
        let before = self.asked.len();
        self.asked.retain(|asked| *asked != client);
        self.asked.len() < before && self.asked.is_empty()
    }
}

/// What a request to clients is about.
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
