//! What the client was asked in a session and has not answered yet.

use super::{Numbered, Session};
use crate::core::ask::AskId;
use crate::core::client::Outlet;
use crate::core::event::PermissionOption;
use crate::core::host::Ticket;
use crate::core::turn::{Question, Turn};
use crate::proto::wire::LedgerEntry;
use serde_json::value::RawValue;
use std::time::Instant;

/// How many questions of a session may be open at once: no person answers more.
pub const MOST_ASKS: usize = 256;

/// A request to the client that waits for its answer.
#[derive(Debug)]
pub struct Ask {
    pub id: AskId,
    /// The agent that asked.
    pub agent: u64,
    /// The key under which the dialect expects the answer.
    pub key: Box<RawValue>,
    /// The file or command that waits for the answer; keys are the agent's to choose, and may come twice.
    pub ticket: Option<Ticket>,
    /// Since when it is asked.
    pub since: Instant,
    /// When it is answered by the policy.
    pub until: Option<Instant>,
    /// The turn in which it was shown.
    pub turn_id: String,
    pub about: Asked,
    /// What the ledger will say of it, but for the decision.
    pub entry: Box<LedgerEntry>,
}

/// What the client was asked.
#[derive(Debug)]
pub enum Asked {
    /// Whether a tool may run.
    Permission {
        question: Question,
        options: Vec<PermissionOption>,
        /// Why it is asked, in the policy's words.
        rule: String,
    },
    /// What the user wants.
    Question {
        question: Question,
        options: Vec<PermissionOption>,
    },
}

impl Asked {
    /// The answers that there are.
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

impl Session {
    /// When the first question is answered by the policy.
    pub(super) fn answers_due(&self) -> Option<(Instant, &'static str)> {
        let first = self.asks.iter().filter_map(|ask| ask.until).min()?;
        Some((first, "answer"))
    }

    /// Whether a turn that is under way has a tool call of this id.
    #[must_use]
    pub fn knows_call(&self, id: &str) -> bool {
        let running = self.running.as_ref().map(|r| &r.turn);
        let unprompted = self.unprompted.as_ref().map(|u| &u.turn);
        running
            .into_iter()
            .chain(unprompted)
            .any(|turn| turn.has_call(id))
    }

    /// Whether a turn that something was asked in is over.
    #[must_use]
    pub fn is_over(&self, turn_id: &str) -> bool {
        let running = self.running.as_ref().map(|r| r.turn_id.as_str());
        let unprompted = self.unprompted.as_ref().map(|u| u.turn_id.as_str());
        running != Some(turn_id) && unprompted != Some(turn_id)
    }

    /// The turn of that id, if it is not over.
    #[must_use]
    pub fn turn_of(&self, turn_id: &str) -> Option<&Turn> {
        let running = self.running.as_ref().filter(|r| r.turn_id == turn_id);
        let unprompted = self.unprompted.as_ref();
        let unprompted = unprompted.filter(|u| u.turn_id == turn_id);
        let running = running.map(|r| &r.turn);
        running.or_else(|| unprompted.map(|u| &u.turn))
    }

    /// Does `act` to the turn of that id, if it is not over.
    pub fn with_turn_of<O: Outlet>(
        &mut self,
        turn_id: &str,
        outlet: &mut O,
        act: impl FnOnce(&mut Turn, &mut Numbered<'_, O>),
    ) {
        if self.running.as_ref().is_some_and(|r| r.turn_id == turn_id) {
            self.with_turn(outlet, act);
        } else if !self.is_over(turn_id) {
            self.with_unprompted(outlet, act);
        }
    }
}
