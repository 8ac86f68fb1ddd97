//! Setting calls to the agent for modes, models and options: those of clients, and those of a restore.

use super::RestoreStep;
use super::dead_session::dead_at_restored_setting;
use crate::agent::connection::Call;
use crate::client::Reply;
use crate::cx::Cx;
use crate::session::terms::asking::mode_to_set;
use crate::session::{Conversation, Stage};
use acpipe_dialects::traits;
use acpipe_json::Members;
use acpipe_model::dialect::AgentCall;
use acpipe_model::error::{Error, ErrorKind};
use acpipe_model::event::CallId;
use acpipe_model::limits::Timeout;
use acpipe_model::setting::{SetCall, Setting};
use acpipe_protocol::wire::SettingResult;
use serde_json::Value;

pub fn call_set(
    agent_session: &str,
    setting: &Setting,
    talk: &Conversation,
    cx: &mut Cx<'_>,
) -> CallId {
    let call = cx.next_call();
    if let Some(connection) = &mut cx.agent.connection {
        let set = SetCall {
            session: talk.id.clone(),
            agent_session: agent_session.to_owned(),
            setting: setting.clone(),
        };
        connection.calls.insert(call, Call::Set(set));
        connection.tell(AgentCall::Set {
            call,
            session: agent_session,
            setting,
        });
    }
    call
}

/// Handles the agent's response to a setting of a client. Returns the response of the client's call.
///
/// # Errors
/// The agent's error; `cancelled` if the session was opened again meanwhile; `storage`.
pub fn was_set(
    set: SetCall,
    answer: Result<&Members<'_>, Error>,
    talk: &mut Conversation,
    cx: &mut Cx<'_>,
) -> Result<Reply, Error> {
    let news = answer?;
    if talk.agent_session() != Some(&*set.agent_session) {
        let id = &talk.id;
        let message = format!("cancelled: session {id:?} was reopened before the agent answered");
        return Err(Error::new(ErrorKind::Cancelled, message));
    }
    if talk.settings.was_set(set.setting, news) {
        talk.notify_state(cx.clients);
    }
    talk.recheck_asking(cx);
    let result = SettingResult {
        state: Value::Object(talk.settings.state().clone()),
        policy_warning: talk.terms.policy_warning().map(str::to_owned),
    };
    talk.identify(cx)?;
    Ok(Reply::Setting(result))
}

pub fn was_restored(
    setting: &Setting,
    answer: Result<&Members<'_>, Error>,
    talk: &mut Conversation,
    cx: &mut Cx<'_>,
) -> RestoreStep {
    match answer {
        Ok(news) => {
            talk.settings.was_restored(setting, news);
            if let Stage::Opening(restore) = &mut talk.stage {
                restore.was_set(setting, news);
            }
            restore_next_setting(talk, cx)
        }
        Err(error) => dead_at_restored_setting(error, talk, cx)
            .unwrap_or_else(|error| not_restored(error, talk, cx)),
    }
}

/// Checks the mode that the agent was started in, then restores the settings.
pub fn begin_to_restore(talk: &mut Conversation, cx: &mut Cx<'_>) -> RestoreStep {
    let starts_in_mode = traits(cx.agent.spec.protocol).starts_in_mode;
    if let Stage::Opening(restore) = &mut talk.stage {
        if starts_in_mode && let Err(error) = restore.check_mode(&talk.settings) {
            return RestoreStep::Refused(error);
        }
        if let Some(mode) = mode_to_set(&talk.settings, cx) {
            restore.choose_mode(mode);
        }
    }
    restore_next_setting(talk, cx)
}

/// Sets the next of the client's settings that the session does not show. The session goes live after the
/// last one.
fn restore_next_setting(talk: &mut Conversation, cx: &mut Cx<'_>) -> RestoreStep {
    let Stage::Opening(restore) = &mut talk.stage else {
        return RestoreStep::Waits;
    };
    let (agent_session, setting) = match restore.next_setting(&talk.settings) {
        Ok(Some(next)) => next,
        Ok(None) => return RestoreStep::Restored,
        Err(error) => return RestoreStep::Refused(error),
    };
    let call = call_set(&agent_session, &setting, talk, cx);
    let limit = cx.limits().of(Timeout::Set);
    talk.opening(call, cx.now, limit);
    RestoreStep::Waits
}

/// Handles a setting that could not be restored: the receipt reports it, or if it is required the opening
/// fails.
pub fn not_restored(error: Error, talk: &mut Conversation, cx: &mut Cx<'_>) -> RestoreStep {
    let Stage::Opening(restore) = &mut talk.stage else {
        return RestoreStep::Waits;
    };
    match restore.not_set(error, &talk.settings) {
        Ok(()) => restore_next_setting(talk, cx),
        Err(error) => RestoreStep::Refused(error),
    }
}

pub fn time_out_settings(talk: &mut Conversation, cx: &mut Cx<'_>) {
    for token in talk.settings.pending_mut().take_overdue(cx.now) {
        let error = set_timeout(talk, cx);
        cx.clients.reply(token, Err(error));
    }
}

pub fn set_timeout(talk: &Conversation, cx: &Cx<'_>) -> Error {
    let what = "the agent did not answer the settings request";
    let advice = "session/state reports the setting if the agent applies it later";
    talk.timeout(Timeout::Set, what, advice, cx)
}
