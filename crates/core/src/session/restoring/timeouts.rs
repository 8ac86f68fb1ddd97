//! Timeouts of a restore: of one step, and of the whole.

use super::RestoreStep;
use super::agent_ids::close_overdue;
use super::doubts::RECOVERY_ADVICE;
use super::setting_calls::{not_restored, set_timeout};
use crate::cx::Cx;
use crate::session::restore::{Adoption, REPLAY_LIMIT};
use crate::session::{Conversation, Stage};
use acpipe_model::error::{Error, ErrorKind};
use acpipe_model::limits::Timeout;

/// Handles the timeout of a step: continues after a close or a load, and fails if the agent did not respond.
pub fn step_overdue(talk: &mut Conversation, cx: &mut Cx<'_>) -> RestoreStep {
    if close_overdue(talk, cx) {
        return RestoreStep::Next;
    }
    let Stage::Opening(restore) = &mut talk.stage else {
        return RestoreStep::Waits;
    };
    if restore.call().is_none() {
        // Everything that was replayed until the quiet time is the history.
        let loaded = restore.take_loaded();
        return loaded.map_or(RestoreStep::Waits, |agent_session| {
            RestoreStep::Claimed(agent_session, Adoption::Unknown)
        });
    }
    if restore.is_setting() {
        // The call is not forgotten: a late response still takes effect.
        let error = set_timeout(talk, cx);
        return not_restored(error, talk, cx);
    }
    let what = "cannot open the session: no output from the agent";
    let advice = "call session/ensure again, with strategy \"new\" for a new session";
    RestoreStep::Failed(talk.timeout(Timeout::Open, what, advice, cx))
}

/// Creates the error of a restore that did not end, regardless of the agent's output.
pub fn restore_timeout(talk: &Conversation, cx: &Cx<'_>) -> Error {
    let Stage::Opening(restore) = &talk.stage else {
        return Error::new(
            ErrorKind::Timeout,
            "cannot open the session: it was not opened in time",
        );
    };
    if restore.history().is_too_large() {
        let message = format!(
            "cannot open the session: the agent replayed more than {} MiB of history; {RECOVERY_ADVICE}",
            REPLAY_LIMIT >> 20
        );
        return Error::new(ErrorKind::Overloaded, message);
    }
    let what = restore.overdue_text();
    let advice = format!("{RECOVERY_ADVICE}, or allow more time with --timeout restore=…");
    talk.timeout(Timeout::Restore, what, &advice, cx)
}
