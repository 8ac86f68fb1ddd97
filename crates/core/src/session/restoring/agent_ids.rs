//! Agent session ids of a restore: before it uses the id under which the agent knew the session, acpipe checks that the
//! agent has not given the id to another session since, and waits until the agent has closed the session.
//! `agent::directory` explains why a session waits for its own close.

use super::RestoreStep;
use crate::agent_session_record::AgentSessionRecord;
use crate::cx::{Cx, SessionRequest};
use crate::session::restore::{Adoption, ClaimCheck};
use crate::session::{Conversation, Stage};
use acpipe_model::idle_timer::IdleTimer;
use acpipe_protocol::wire::{Rung, Strategy};

/// Ends the claim of the session on an id under which the agent created a session for another one.
pub fn end_claim(by: &AgentSessionRecord, session: &str, talk: &mut Conversation, cx: &mut Cx<'_>) {
    if talk.known.end_claim(by, session) {
        // A storage error is reported by the next turn.
        let _ = talk.identify(cx);
    }
}

/// Requests the check of the session's claim, unless the restore does not use the id. Returns `true` while the
/// restore has to wait for the result.
pub fn awaits_claim(talk: &mut Conversation, cx: &mut Cx<'_>) -> bool {
    let known = talk.known.find(&cx.agent.identity());
    let has_id = known.is_some_and(|known| known.ended_by.is_none());
    let Stage::Opening(restore) = &mut talk.stage else {
        return false;
    };
    let uses_id = has_id && *restore.strategy() != Strategy::Only(Rung::New);
    if uses_id && restore.claim_mut().request() {
        cx.requests.push(SessionRequest::CheckClaim);
    }
    *restore.claim() == ClaimCheck::Requested
}

/// Returns the session to which the agent has given this session's id since.
pub fn id_given_to(agent_session: &str, talk: &Conversation, cx: &Cx<'_>) -> Option<String> {
    let own = talk.known.find(&cx.agent.identity());
    if let Some(session) = own.and_then(|own| own.ended_by.clone()) {
        return Some(session);
    }
    let connection = cx.agent.connection.as_ref();
    let holder = connection.and_then(|c| c.directory.holder(agent_session));
    // The agent process itself is the best witness of what it has under the id.
    if let (Some(holder), Some(own)) = (holder, own) {
        if holder.session == talk.id {
            return None;
        }
        if own.is_ended_by(&holder.record) {
            return Some(holder.session.clone());
        }
    }
    match &talk.stage {
        Stage::Opening(restore) => match restore.claim() {
            ClaimCheck::Ended(session) => Some(session.clone()),
            ClaimCheck::Unchecked | ClaimCheck::Requested | ClaimCheck::Valid => None,
        },
        Stage::Live { .. } | Stage::Resting => None,
    }
}

/// Closes a session at the agent, or marks it as left open if the agent cannot close sessions.
pub fn close_or_leave_open(agent_session: &str, talk: &Conversation, cx: &mut Cx<'_>) {
    let closes = cx.agent.ready().is_none_or(|info| info.capabilities.close);
    if let (false, Some(connection)) = (closes, &mut cx.agent.connection) {
        let state = talk.settings.state().clone();
        connection
            .directory
            .leave_open(agent_session.to_owned(), state);
    }
    cx.close_at_agent(agent_session);
}

/// Takes over a session that is still open in the agent's process although the agent did not load it.
/// Returns `None` if no such session is open.
pub fn take_left_open(talk: &mut Conversation, cx: &mut Cx<'_>) -> Option<RestoreStep> {
    let key = cx.agent.identity();
    let connection = cx.agent.connection.as_deref_mut()?;
    let left = connection
        .directory
        .take_left_open(talk.known.id_of(&key)?)?;
    let Stage::Opening(restore) = &mut talk.stage else {
        return None;
    };
    restore.take_over();
    let early = connection.directory.take_early(&left.agent_session);
    for state in [&left.state, &early.state] {
        talk.settings.extend_state(state);
        restore.report_earlier(state, None);
    }
    let agent_session = left.agent_session;
    connection
        .directory
        .add(agent_session.clone(), talk.id.clone());
    let adoption = Adoption::Unknown;
    Some(RestoreStep::Claimed(agent_session, adoption))
}

/// Waits while the agent is still closing the session. Returns `true` if the session waits.
pub fn wait_for_close(known: Option<&str>, talk: &mut Conversation, cx: &Cx<'_>) -> bool {
    let directory = cx.agent.connection.as_ref().map(|c| &c.directory);
    let (Some(known), Some(directory)) = (known, directory) else {
        return false;
    };
    let Some(until) = directory.closing_until(known, cx.now) else {
        return false;
    };
    let Stage::Opening(restore) = &mut talk.stage else {
        return false;
    };
    if !matches!(restore.next(), Some(Rung::Resume | Rung::Load)) {
        return false;
    }
    restore.wait_for_close(known, until);
    talk.idle_timer = Some(IdleTimer::begin(cx.now, None));
    true
}

/// Ends the wait for a close that was not answered in time. Returns `false` if the session did not wait for one.
pub fn close_overdue(talk: &mut Conversation, cx: &mut Cx<'_>) -> bool {
    let Some(agent_session) = talk.stage.awaited_close().map(str::to_owned) else {
        return false;
    };
    if let Some(connection) = &mut cx.agent.connection {
        connection.directory.give_up_closing(&agent_session);
    }
    if let Stage::Opening(restore) = &mut talk.stage {
        restore.give_up_close();
    }
    true
}
