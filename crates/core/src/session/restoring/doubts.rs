//! Verification of an agent's claims about a session against its session list: a refusal of a session that it
//! still lists, and a load of a session that it does not have.

use super::RestoreStep;
use super::agent_ids::take_left_open;
use crate::agent::connection::Call;
use crate::cx::Cx;
use crate::restore_plan::{allows_next_strategy, describe_attempts};
use crate::session::restore::{ListPage, Listed};
use crate::session::{Conversation, Stage};
use acpipe_model::dialect::AgentCall;
use acpipe_model::error::{Error, ErrorKind};
use acpipe_model::limits::Timeout;
use acpipe_protocol::wire::{Attempt, Rung};

/// Advice that helps whatever the failure of a session is.
pub const RECOVERY_ADVICE: &str =
    "call session/ensure with strategy \"new\" to continue without its memory";

pub fn nothing_left(id: &str, failed: &[Attempt]) -> Error {
    let tried = match failed {
        [] => "no strategy is left to try".to_owned(),
        failed => describe_attempts(failed),
    };
    let message = format!("cannot restore session {id:?}: {tried}; {RECOVERY_ADVICE}");
    Error::new(ErrorKind::SessionNotFound, message)
}

/// Handles a failed call for the session: tries the next strategy, unless the error rules that out.
pub fn open_refused(mut error: Error, talk: &mut Conversation, cx: &mut Cx<'_>) -> RestoreStep {
    let Stage::Opening(restore) = &mut talk.stage else {
        return RestoreStep::Waits;
    };
    restore.answered();
    let rung = restore.rung().unwrap_or(Rung::New);
    if rung == Rung::New || !allows_next_strategy(&error) || restore.next().is_none() {
        if rung != Rung::New && allows_next_strategy(&error) {
            error.message = format!("{}; {RECOVERY_ADVICE}", error.message);
        }
        return RestoreStep::Failed(error);
    }
    restore.note_failed(rung, &error);
    restore.history_mut().expect(None);
    let is_last = restore.next() == Some(Rung::New);
    if is_last && let Some(step) = take_left_open(talk, cx) {
        return step;
    }
    // A new session in place of one that the agent still has would hide its history.
    if is_last
        && can_list(cx)
        && let Stage::Opening(restore) = &mut talk.stage
    {
        restore.look_up(error);
        return request_list(None, talk, cx);
    }
    RestoreStep::Next
}

fn request_list(cursor: Option<&str>, talk: &mut Conversation, cx: &mut Cx<'_>) -> RestoreStep {
    let call = cx.next_call();
    let limit = cx.limits().of(Timeout::Open);
    if let Some(connection) = &mut cx.agent.connection {
        let session = talk.id.clone();
        connection.calls.insert(call, Call::List { session });
        let cwd = Some(talk.cwd.as_str());
        connection.tell(AgentCall::List { call, cwd, cursor });
        talk.opening(call, cx.now, limit);
    }
    RestoreStep::Waits
}

pub fn listed(page: ListPage<'_>, talk: &mut Conversation, cx: &mut Cx<'_>) -> RestoreStep {
    let known = talk.known.id_of(&cx.agent.identity());
    let Stage::Opening(restore) = &mut talk.stage else {
        return RestoreStep::Waits;
    };
    match restore.listed(page, known) {
        Some(Listed::More) => request_list(page.and_then(|(_, cursor)| cursor), talk, cx),
        Some(Listed::StillThere(mut error)) => {
            let said = &error.message;
            error.message = format!("{said}; the agent still lists the session; {RECOVERY_ADVICE}");
            RestoreStep::Failed(error)
        }
        Some(Listed::Gone) => RestoreStep::Next,
        Some(Listed::Adopted(agent_session, adoption)) => {
            RestoreStep::Claimed(agent_session, adoption)
        }
        Some(Listed::NotThere(agent_session)) => cannot_adopt(&agent_session, talk, cx),
        None => RestoreStep::Waits,
    }
}

/// Looks up a session to adopt in the agent's list, because the agent reported a load but replayed no
/// message. Returns `None` if the agent has no list.
pub fn doubt_adopted(
    agent_session: &str,
    talk: &mut Conversation,
    cx: &mut Cx<'_>,
) -> Option<RestoreStep> {
    if !can_list(cx) {
        return None;
    }
    let Stage::Opening(restore) = &mut talk.stage else {
        return None;
    };
    restore.look_up_adopted(agent_session.to_owned());
    Some(request_list(None, talk, cx))
}

fn cannot_adopt(agent_session: &str, talk: &mut Conversation, cx: &mut Cx<'_>) -> RestoreStep {
    let Stage::Opening(restore) = &mut talk.stage else {
        return RestoreStep::Waits;
    };
    let message = format!(
        "the agent does not have session {agent_session:?}: it replayed no messages, and its list of \
             sessions does not contain the id"
    );
    let error = Error::new(ErrorKind::SessionNotFound, message);
    restore.note_failed(Rung::Load, &error);
    let may_be_new = restore.may_be_new();
    cx.close_at_agent(agent_session);
    if may_be_new {
        return RestoreStep::Next;
    }
    let message = format!(
        "{}; list the agent's ids with session/list and `agent: true`, or {RECOVERY_ADVICE}",
        error.message
    );
    RestoreStep::Failed(Error::new(ErrorKind::SessionNotFound, message))
}

fn can_list(cx: &Cx<'_>) -> bool {
    cx.agent.ready().is_some_and(|info| info.capabilities.list)
}
