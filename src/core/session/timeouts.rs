//! Handlers of a session's timeouts.

use super::doubts::RECOVERY_ADVICE;
use super::restore::REPLAY_LIMIT;
use super::{Running, SessionMachine, Stage};
use crate::core::cx::Cx;
use crate::core::error::{Error, ErrorKind};
use crate::core::limits::Timeout;
use crate::core::turn_ending::Ending;
use std::time::Duration;

impl SessionMachine {
    /// Resets the idle timer on output that is not an update of the session: output of the session's own
    /// process, or, while the session has no agent session id, updates of unknown sessions.
    pub(super) fn note_process_output(&mut self, cx: &mut Cx<'_>) {
        let Some(connection) = &cx.agent.connection else {
            return;
        };
        let process = connection.process_of(self.talk.agent_session(), self.talk.asked());
        let own = process
            .filter(|p| p.is_for_one())
            .and_then(|p| p.last_activity);
        let early = connection.directory.early_at();
        let early = early.filter(|_| self.talk.asked().is_some());
        let limit = cx.limits().of(Timeout::Open);
        if let Some(at) = own.max(early)
            && self.talk.idle_timer.is_some_and(|s| s.is_latest(at))
        {
            self.talk.note_activity(at, "update", cx.clients);
            self.talk.restart_opening_step(at, limit);
        }
    }

    /// Fails an opening that did not end in time, regardless of the agent's output.
    pub(super) fn time_out_restore(&mut self, cx: &mut Cx<'_>) {
        let error = self.restore_timeout(cx);
        self.opening_failed(&error, cx);
    }

    /// Handles the timeout of an opening step: continues after a close or a load, and fails if the agent did
    /// not respond.
    pub(super) fn end_opening_step(&mut self, cx: &mut Cx<'_>) {
        if self.close_overdue(cx) {
            return;
        }
        let Stage::Opening(restore) = &self.talk.stage else {
            return;
        };
        if restore.call().is_none() {
            self.loaded(cx);
        } else if restore.is_setting() {
            self.restore_setting_overdue(cx);
        } else {
            let what = "cannot open the session: no output from the agent";
            let advice = "call session/ensure again, with strategy \"new\" for a new session";
            let error = self.talk.timeout(Timeout::Open, what, advice, cx);
            self.opening_failed(&error, cx);
        }
    }

    /// Creates the error of a restore that did not end, regardless of the agent's output.
    fn restore_timeout(&self, cx: &Cx<'_>) -> Error {
        let Stage::Opening(restore) = &self.talk.stage else {
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
        self.talk.timeout(Timeout::Restore, what, &advice, cx)
    }

    /// Abandons a turn whose cancel the agent does not answer.
    pub(super) fn time_out_cancel(&mut self, cx: &mut Cx<'_>) {
        let advice =
            "the next prompt waits until the agent ends the turn or the session is restored";
        let what = "the agent did not answer session/cancel";
        let error = self.talk.timeout(Timeout::Cancel, what, advice, cx);
        let running = self.talk.turns.prompted_mut();
        if let Some(silent) = running.and_then(|r| r.timed_out.as_mut()) {
            silent.message = format!("{}; {}", silent.message, error.message);
        }
        self.abandon_turn(error, cx);
    }

    /// Cancels an idle turn as a client would. The turn ends with the timeout error.
    pub(super) fn cancel_silent(&mut self, cx: &mut Cx<'_>) {
        let Some(running) = self.talk.turns.prompted() else {
            return;
        };
        let turn_id = running.turn_id.clone();
        let advice = match running.turn.activity() {
            Some(tool) => format!(
                "the turn was cancelled while tool {} was running",
                tool.tool_name
            ),
            None => "the turn was cancelled".to_owned(),
        };
        let error = self.talk.timeout(
            Timeout::Prompt,
            "the turn timed out: no output from the agent",
            &advice,
            cx,
        );
        self.cancel_for(&turn_id, error, cx);
    }

    /// Cancels a turn that reached the configured limit.
    pub fn end_overlong(&mut self, cx: &mut Cx<'_>) {
        let limit = cx.limits().of(Timeout::Turn).unwrap_or_default();
        self.cancel_overlong(limit, cx);
    }

    /// Cancels a turn that reached a limit on its whole length as a client would. The turn ends with the timeout
    /// error.
    pub(super) fn cancel_overlong(&mut self, limit: Duration, cx: &mut Cx<'_>) {
        let goes_on = |running: &&Running| running.ended.is_none() && !running.is_cancelled();
        let Some(running) = self.talk.turns.prompted().filter(goes_on) else {
            return;
        };
        let turn_id = running.turn_id.clone();
        let advice = match running.turn.activity() {
            Some(tool) => format!(
                "the turn was cancelled while tool {} was running",
                tool.tool_name
            ),
            None => "the turn was cancelled; prompt again to continue".to_owned(),
        };
        let error = self.talk.timeout_after(
            Timeout::Turn,
            limit,
            "the turn timed out: it did not end",
            &advice,
            cx,
        );
        self.cancel_for(&turn_id, error, cx);
    }

    /// Cancels a turn on acpipe's own account. The turn ends with this error whatever the agent answers.
    fn cancel_for(&mut self, turn_id: &str, error: Error, cx: &mut Cx<'_>) {
        if let Some(running) = self.talk.turns.prompted_mut() {
            // A turn whose prompt the agent does not have ends at once.
            running.timed_out = Some(error.clone());
        }
        if !self.cancel(Some(turn_id), cx) {
            self.prompting.end_turn(
                Ending::Failed(error),
                &mut self.decisions,
                &mut self.talk,
                cx,
            );
        }
    }

    /// Creates the error of a setting that the agent did not set in time.
    pub(super) fn set_timeout(&self, cx: &Cx<'_>) -> Error {
        let what = "the agent did not answer the settings request";
        let advice = "session/state reports the setting if the agent applies it later";
        self.talk.timeout(Timeout::Set, what, advice, cx)
    }
}
