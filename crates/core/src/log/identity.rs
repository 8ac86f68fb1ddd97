//! Recovery of a session's identity from a damaged log: the log repeats the identity, and the card has a
//! copy.

use super::Log;
use super::index::{IdentityCopies, Index};
use super::record::{FORMAT, Identity};
use super::storage::LogStorage;
use crate::shared_value::SharedValue;
use crate::store::Card;

/// Bytes of log after which the identity is written again.
const IDENTITY_INTERVAL: u64 = 256 << 10;

impl Log {
    /// Returns `true` if the identity must be written again, so that damage to one line cannot lose it.
    pub fn needs_identity_record(&self) -> bool {
        let copies = &self.index.copies;
        let end = copies.last.as_ref().map_or(0, |last| last.end);
        copies.count < 2 || self.storage.end().saturating_sub(end) > IDENTITY_INTERVAL
    }
}

/// Restores in the index from the card what damaged lines have lost.
pub(super) fn restore(index: &mut Index, storage: &LogStorage) {
    // An empty log belongs to a new session: a card beside it is left from a session that was removed.
    if storage.file().end() == 0 {
        return;
    }
    let intact = index.identity.is_some() && !index.copies.may_be_newer;
    if intact && index.copies.count < 2 && index.corrupt == 0 {
        return;
    }
    let Some(card) = storage.file().card() else {
        return;
    };
    match index.identity.take() {
        None => {
            index.seq = index.seq.max(card.seq);
            index.copies.count = 0;
            index.identity = Some(identity_of_card(card));
        }
        Some(identity) => {
            let merged = merged(&identity, card, &index.copies, storage);
            if merged != identity {
                // The next turn writes the identity again.
                index.copies.count = 0;
            }
            index.identity = Some(merged);
        }
    }
}

/// Takes from the card which claims on agent session ids have ended. Other processes note that there.
pub(super) fn take_ended_claims(identity: &mut Identity, storage: &LogStorage) {
    if identity.agents.is_empty() {
        return;
    }
    let card = storage.file().card().unwrap_or_default();
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
fn merged(
    identity: &Identity,
    card: Card,
    copies: &IdentityCopies,
    storage: &LogStorage,
) -> Identity {
    let mut kept = identity.clone();
    let last = copies.last.as_ref();
    if last.is_some_and(|last| card.bytes < last.end) {
        return kept;
    }
    let before = copies.before.clone().and_then(|at| storage.read(at).ok());
    let before = before.and_then(|line| Identity::of_line(&line));
    let before = before.unwrap_or_default();
    let newer = copies.may_be_newer;
    let card = identity_of_card(card);
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
    kept
}

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
