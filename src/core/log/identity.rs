//! Who a session is, where lines of its log are damaged: the log says it more than once, and so does the card.

use super::Log;
use super::record::{FORMAT, Identity};
use crate::core::store::Card;

/// Who the session is is said again after so many bytes of the log.
const SAID_EVERY: u64 = 256 << 10;

impl Log {
    /// Whether the log is to say again who the session is: damage to one line must not lose it.
    #[must_use]
    pub fn repeats_identity(&self) -> bool {
        let copies = &self.index.copies;
        copies.count < 2 || self.end().saturating_sub(copies.end) > SAID_EVERY
    }

    /// Takes from the card what damaged lines do not say any more.
    pub(super) fn restore_identity(&mut self) {
        // An empty log is that of a new session: a card beside it is of one that was removed.
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
                self.index.identity = Some(of_card(card));
            }
            Some(identity) => self.index.identity = Some(self.compared(identity, card)),
        }
    }

    /// What the card says is right where it was written after the line, and another line agrees with it, or a newer line
    /// may have been damaged.
    fn compared(&mut self, identity: Identity, card: Card) -> Identity {
        let copies = &self.index.copies;
        if card.bytes < copies.end {
            return identity;
        }
        let before = copies.before.clone().unwrap_or_default();
        let newer = copies.may_be_newer;
        let card = of_card(card);
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
            // Said again with the next turn.
            self.index.copies.count = 0;
        }
        kept
    }
}

/// What a card says of who the session is.
fn of_card(card: Card) -> Identity {
    Identity {
        format: FORMAT,
        session_id: card.session_id,
        created_at: card.created_at,
        cwd: card.cwd,
        agent: card.agent,
        agent_session_id: card.agent_session_id,
        agent_command: card.agent_command,
        title: card.title,
        mode: card.mode,
        model: card.model,
        seq: card.seq,
        ..Identity::default()
    }
}
