//! Sessions that the agent reported as restored and does not have: the first call that needs the session shows it,
//! a prompt or a setting. All of them lead to the same replacement.

use super::RestoreStep;
use super::doubts::RECOVERY_ADVICE;
use crate::cx::Cx;
use crate::restore_plan::{RestoreFacts, RestorePlan};
use crate::session::{Conversation, SessionAgents, Stage};
use acpipe_model::error::{Error, ErrorKind};
use acpipe_model::limits::Timeout;
use acpipe_model::setting::SetCall;
use acpipe_protocol::wire::{Rung, Strategy};
use tracing::{debug, info};

/// Consequence of a setting call that the agent answered with the report that the session does not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeadSetting {
    /// The session is replaced, and the setting sent again once the new one is live.
    Replaces,
    /// The setting is sent again once the session is live.
    SentAgain,
    Failed,
}

/// Replaces a live session that the agent does not have: drops its id and requests a new session. `restored_by` is
/// the strategy that restored it.
pub fn replace_dead(
    error: &Error,
    restored_by: Option<Rung>,
    talk: &mut Conversation,
    cx: &mut Cx<'_>,
) -> RestoreStep {
    let Some(info) = cx.agent.ready() else {
        return RestoreStep::Waits;
    };
    let can = info.capabilities;
    let id = &talk.id;
    info!(
        session = id,
        "the agent no longer has the session; creating a new one"
    );
    debug!(session = id, %error, "error of the agent");
    let new = Strategy::Only(Rung::New);
    let mut restore_plan = RestorePlan::plan(&new, can, RestoreFacts::default());
    if let Some(rung) = restored_by {
        restore_plan.note(rung, error);
    }
    if let Some(agent_session) = talk.agent_session().map(str::to_owned) {
        end_process(&agent_session, cx);
    }
    talk.known.forget(&cx.agent.identity());
    talk.begin_opening(new, Vec::new());
    if let Stage::Opening(restore) = &mut talk.stage {
        restore.put_plan(restore_plan);
    }
    RestoreStep::Next
}

/// Judges a setting call of a client that failed because the agent does not have the session. A setting is no
/// reason to replace a session in a turn: its prompt shows whether the agent has it.
pub fn dead_at_setting(
    set: &SetCall,
    error: &Error,
    is_restored: bool,
    talk: &Conversation,
    cx: &Cx<'_>,
) -> DeadSetting {
    if error.kind != ErrorKind::SessionNotFound {
        return DeadSetting::Failed;
    }
    match &talk.stage {
        Stage::Live { agent_session }
            if *agent_session == set.agent_session
                && is_restored
                && !talk.turns.is_prompted()
                && cx.agent.ready().is_some() =>
        {
            DeadSetting::Replaces
        }
        // Another call has shown it before.
        Stage::Opening(_) => DeadSetting::SentAgain,
        Stage::Live { .. } | Stage::Resting => DeadSetting::Failed,
    }
}

/// Handles a setting of the restore that failed because the agent does not have the session that it reported as
/// restored: tries the next strategy, or fails the opening if none is left.
///
/// # Errors
/// The error has another reason, or the session was created just now.
pub fn dead_at_restored_setting(
    mut error: Error,
    talk: &mut Conversation,
    cx: &mut Cx<'_>,
) -> Result<RestoreStep, Error> {
    let identity = talk.output.log().identity().map(SessionAgents::of);
    let Stage::Opening(restore) = &mut talk.stage else {
        return Err(error);
    };
    let rung = restore.rung().unwrap_or(Rung::New);
    if error.kind != ErrorKind::SessionNotFound || rung == Rung::New {
        return Err(error);
    }
    let is_last = restore.next().is_none();
    restore.note_failed(rung, &error);
    restore.answered();
    if let Some((agent_session, _)) = restore.take_settings() {
        end_process(&agent_session, cx);
    }
    // The id of an adopted session is not stored yet.
    talk.known = identity.unwrap_or_else(|| talk.known.clone());
    if is_last {
        error.message = format!("{}; {RECOVERY_ADVICE}", error.message);
        talk.settings.reset(talk.output.log());
        return Ok(RestoreStep::Failed(error));
    }
    Ok(RestoreStep::Next)
}

/// Ends the process that the agent has for this session alone.
fn end_process(agent_session: &str, cx: &mut Cx<'_>) {
    let until = cx.until(Timeout::CloseSession);
    if let Some(connection) = &mut cx.agent.connection
        && connection.own_process(agent_session).is_some()
    {
        connection.end_session_process(agent_session, cx.now, until);
    }
}
