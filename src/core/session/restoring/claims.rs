//! Claims of sessions on agent session ids: before a restore uses the id under which the agent knew the session,
//! acpipe checks that the agent has not given the id to another session since.

use crate::core::agent_session_record::AgentSessionRecord;
use crate::core::cx::{Cx, SessionRequest};
use crate::core::session::restore::ClaimCheck;
use crate::core::session::{Conversation, Stage};
use crate::proto::wire::{Rung, Strategy};

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
