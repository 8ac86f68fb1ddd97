//! List entry of a stored session.

use crate::agent_spec::DEFAULT_AGENT;
use crate::store::Card;
use acpipe_protocol::wire::{SessionInfo, SessionStage};

/// Returns the list entry of a stored session that is not open.
pub fn stored_info(card: Card) -> SessionInfo {
    SessionInfo {
        agent: card.shown_agent(),
        session_id: Some(card.session_id),
        agent_session_id: card.agent_session_id,
        agent_name: Some(card.agent_name.unwrap_or_else(|| DEFAULT_AGENT.to_owned())),
        state: SessionStage::Resting,
        turn_id: None,
        activity: None,
        clients: None,
        cwd: card.cwd,
        title: card.title,
        mode: card.mode,
        model: card.model,
        created_at: Some(card.created_at),
        updated_at: Some(card.updated_at),
        messages: Some(card.messages),
        seq: Some(card.seq),
        corrupt_lines: None,
        waiting_for: None,
    }
}
