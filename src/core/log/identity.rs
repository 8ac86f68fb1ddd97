//! Recovery of a session's identity from a damaged log: the log repeats the identity, and the card has a
//! copy.

use super::Log;
use super::record::{FORMAT, Identity};
use crate::core::shared_value::SharedValue;
use crate::core::store::Card;

/// Bytes of log after which the identity is written again.
const IDENTITY_INTERVAL: u64 = 256 << 10;

impl Log {
    /// Returns `true` if the identity must be written again, so that damage to one line cannot lose it.
    #[must_use]
    pub fn needs_identity_record(&self) -> bool {
        let copies = &self.index.copies;
        let end = copies.last.as_ref().map_or(0, |last| last.end);
        copies.count < 2 || self.end().saturating_sub(end) > IDENTITY_INTERVAL
    }

    /// Restores from the card what damaged lines have lost.
    pub(super) fn restore_identity(&mut self) {
        // An empty log belongs to a new session: a card beside it is left from a session that was removed.
        if self.file.end() == 0 {
            return;
        }
        let intact = self.index.identity.is_some() && !self.index.copies.may_be_newer;
        if intact && self.index.copies.count < 2 && self.index.corrupt == 0 {
            return;
        }
        let Some(card) = self.file.card() else { return };
        match self.index.identity.take() {
            None => {
                self.index.seq = self.index.seq.max(card.seq);
                self.index.copies.count = 0;
                self.index.identity = Some(identity_of_card(card));
            }
            Some(identity) => self.index.identity = Some(self.merge_card(identity, card)),
        }
    }

    /// Takes from the card which claims on agent session ids have ended. Other processes note that there.
    pub(super) fn take_ended_claims(&mut self) {
        let Some(identity) = &mut self.index.identity else {
            return;
        };
        if identity.agents.is_empty() {
            return;
        }
        let card = self.file.card().unwrap_or_default();
        for ended in card.agents.iter().filter(|given| given.ended_by.is_some()) {
            let mut own = identity.agents.iter_mut();
            if let Some(own) = own.find(|own| own.is_copy_of(ended)) {
                own.ended_by.clone_from(&ended.ended_by);
            }
        }
    }

    /// Merges the identity of the log with the card. A field of the card wins if the card was written after
    /// the last identity record, and either the record before the last agrees with the card or a newer record
    /// may have been damaged.
    fn merge_card(&mut self, identity: Identity, card: Card) -> Identity {
        let copies = &self.index.copies;
        if copies
            .last
            .as_ref()
            .is_some_and(|last| card.bytes < last.end)
        {
            return identity;
        }
        let before = copies.before.clone().and_then(|at| self.read(at).ok());
        let before = before.and_then(|line| Identity::of_line(&line));
        let before = before.unwrap_or_default();
        let newer = copies.may_be_newer;
        let card = identity_of_card(card);
        let mut kept = identity.clone();
        if identity.agent_session_id != card.agent_session_id
            && (newer || before.agent_session_id == card.agent_session_id)
        {
            kept.agent_session_id = card.agent_session_id;
        }
        if identity.agent != card.agent && (newer || before.agent == card.agent) {
            kept.agent = card.agent;
        }
        if identity.agent_command != card.agent_command
            && (newer || before.agent_command == card.agent_command)
        {
            kept.agent_command = card.agent_command;
        }
        if identity.cwd != card.cwd && (newer || before.cwd == card.cwd) {
            kept.cwd = card.cwd;
        }
        if kept != identity {
            // The next turn writes the identity again.
            self.index.copies.count = 0;
        }
        kept
    }
}

/// Converts a card to the identity it contains.
fn identity_of_card(card: Card) -> Identity {
    Identity {
        format: FORMAT,
        session_id: card.session_id,
        created_at: card.created_at,
        cwd: card.cwd,
        agent: card.agent,
        agent_session_id: card.agent_session_id,
        agent_command: card.agent_command.map(SharedValue::from),
        agents: card.agents,
        title: card.title,
        mode: card.mode,
        model: card.model,
        seq: card.seq,
        ..Identity::default()
    }
}
