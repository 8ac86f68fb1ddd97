//! Timers of a session, in one table.
//!
//! A timer is a variant of [`SessionTimer`], with its arms in `due`, `postpone` and `expire`. The time itself
//! is stored with the data of the wait. The handler of an expired timer is in the file of its topic.

use super::abandoned::{end_own_process, recover, too_late};
use super::restoring::setting_calls::time_out_settings;
use super::restoring::timeouts::{restore_timeout, step_overdue};
use super::timeouts::{note_process_output, overlong_turn, silent_turn, unanswered_cancel};
use super::total_limit::total_timeout;
use super::wait_notices::{first_notice, notify_wait, waiting_for};
use super::{Conversation, HostCalls, Prompting, SessionMachine, Stage};
use crate::agent::connection::Connection;
use crate::client::Token;
use crate::cx::Cx;
use crate::log::disk_timeout;
use crate::turn_ending::Ending;
use acpipe_model::error::Error;
use acpipe_model::limits::Timeout;
use acpipe_model::secret::Secrets;
use acpipe_protocol::wire::Waiting;
use std::time::{Duration, Instant};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SessionTimer {
    /// For a client to answer a permission request or elicitation. When it expires, the policy decides.
    Answer,
    /// For a client to serve a file or terminal request.
    ClientRequest,
    /// For updates in a background turn. When it expires, the turn ends.
    Quiet,
    /// The pause of a turn whose prompt the agent does not have.
    RetryPause,
    /// The pause before the session is opened for the next attempt at an `execute` call.
    NextAttempt,
    /// For the agent to answer a client's setting call.
    Setting,
    /// For the agent to end an abandoned turn. When it expires, the session is restored without the turn.
    AbandonedTurn,
    /// For the whole opening of the session, from the first call to the end, regardless of the agent's
    /// output.
    RestoreLimit,
    /// For one step of the opening: the agent's response, the quiet time after a load, a setting, or the
    /// close that precedes it.
    OpeningStep,
    /// For the agent to end a cancelled turn.
    CancelLimit,
    /// For the whole turn, regardless of the agent's output.
    TurnLimit,
    /// The idle timeout of a turn.
    TurnSilence,
    /// For output that the agent sends after its answer to the prompt.
    LateOutput,
    /// For the disk to take the pending records.
    DiskAnswer,
    /// The next notice to the clients that the session waits.
    WaitNotice,
}

impl SessionTimer {
    /// All timers, in the order in which due ones expire.
    pub(super) const ALL: [Self; 15] = [
        Self::Answer,
        Self::ClientRequest,
        Self::Quiet,
        Self::RetryPause,
        Self::NextAttempt,
        Self::Setting,
        Self::AbandonedTurn,
        Self::RestoreLimit,
        Self::OpeningStep,
        // A turn is cancelled for one reason: a cancelled turn has no other limit.
        Self::CancelLimit,
        Self::TurnLimit,
        Self::TurnSilence,
        Self::LateOutput,
        Self::DiskAnswer,
        // Only waits that continue are reported.
        Self::WaitNotice,
    ];

    /// Name of the timer, for logs.
    fn name(self) -> &'static str {
        match self {
            Self::Answer => "answer",
            Self::ClientRequest => "client",
            Self::Quiet => "quiet",
            Self::RetryPause => "retry",
            Self::NextAttempt => "attempt",
            Self::Setting => "setting",
            Self::AbandonedTurn => "abandoned turn",
            Self::RestoreLimit => "restore",
            Self::OpeningStep => "open",
            Self::CancelLimit => "cancel",
            Self::TurnLimit => "turn",
            Self::TurnSilence => "prompt",
            Self::LateOutput => "late output",
            Self::DiskAnswer => "store",
            Self::WaitNotice => "silence",
        }
    }

    /// Returns when a timer is due; `None` if the session does not wait for it.
    fn due(
        self,
        talk: &Conversation,
        host_calls: &HostCalls,
        prompting: &Prompting,
    ) -> Option<Instant> {
        let turn = talk.turns.prompted().filter(|turn| turn.ended.is_none());
        match self {
            Self::Answer => talk.output.requests().deadline(),
            Self::ClientRequest => host_calls.deadlines().min(),
            Self::Quiet => talk.turns.background()?.quiet_at,
            Self::RetryPause => talk.turns.prompted()?.attempts.paused_until(),
            Self::NextAttempt => prompting.reopen_at(talk),
            Self::Setting => talk.settings.pending().deadline(),
            Self::AbandonedTurn => talk.abandoned.as_ref()?.until,
            Self::RestoreLimit => match &talk.stage {
                Stage::Opening(restore) => restore.limit(),
                Stage::Live { .. } | Stage::Resting => None,
            },
            Self::OpeningStep => match &talk.stage {
                Stage::Opening(restore) => restore.deadline(),
                Stage::Live { .. } | Stage::Resting => None,
            },
            Self::CancelLimit => turn?.cancel_deadline,
            Self::TurnLimit => turn.filter(|turn| !turn.is_cancelled())?.limit,
            Self::TurnSilence => {
                let turn = turn.filter(|turn| !turn.is_cancelled())?;
                // An agent that waits for an answer is not idle.
                let waits_for_agent = turn.attempts.pause.is_none()
                    && talk.output.requests().is_empty()
                    && host_calls.is_empty();
                talk.idle_timer.filter(|_| waits_for_agent)?.until()
            }
            Self::LateOutput => talk.turns.prompted()?.late_output_until,
            Self::DiskAnswer => talk.output.disk_timeout(),
            Self::WaitNotice => talk.idle_timer?.notice_at(first_notice(talk)?),
        }
    }

    /// Extends the wait by a time in which the agent's output was not read. Each stored time is extended once.
    #[expect(
        clippy::match_same_arms,
        reason = "a timer that is not postponed says why"
    )]
    fn postpone(
        self,
        by: Duration,
        talk: &mut Conversation,
        host_calls: &mut HostCalls,
        prompting: &mut Prompting,
    ) {
        match self {
            Self::Answer => {
                extend(talk.output.requests_mut().deadlines_mut(), by);
            }
            Self::ClientRequest => extend(host_calls.deadlines_mut(), by),
            Self::Quiet => {
                let turn = talk.turns.background_mut();
                extend(turn.and_then(|turn| turn.quiet_at.as_mut()), by);
            }
            Self::RetryPause => {
                if let Some(turn) = talk.turns.prompted_mut() {
                    turn.attempts.postpone(by);
                }
            }
            Self::NextAttempt => {
                let one_shot = prompting.one_shot.as_mut();
                extend(one_shot.and_then(|o| o.reopen_at.as_mut()), by);
            }
            Self::Setting => talk.settings.pending_mut().postpone(by),
            Self::AbandonedTurn => {
                let abandoned = talk.abandoned.as_mut();
                extend(abandoned.and_then(|turn| turn.until.as_mut()), by);
            }
            Self::RestoreLimit => {
                if let Stage::Opening(restore) = &mut talk.stage {
                    extend(restore.limit_mut(), by);
                }
            }
            Self::OpeningStep => {
                if let Stage::Opening(restore) = &mut talk.stage {
                    extend(restore.deadline_mut(), by);
                }
            }
            Self::CancelLimit => {
                let turn = talk.turns.prompted_mut();
                extend(turn.and_then(|turn| turn.cancel_deadline.as_mut()), by);
            }
            // The limit of a turn is the client's own and also runs while the client does not read.
            Self::TurnLimit => {}
            Self::TurnSilence => {
                if let Some(idle_timer) = &mut talk.idle_timer {
                    idle_timer.postpone(by);
                }
            }
            Self::LateOutput => {
                let turn = talk.turns.prompted_mut();
                extend(turn.and_then(|turn| turn.late_output_until.as_mut()), by);
            }
            // The disk answers whether or not a client reads.
            Self::DiskAnswer => {}
            // It derives from the idle timer, which `TurnSilence` extends.
            Self::WaitNotice => {}
        }
    }
}

impl SessionMachine {
    /// Returns when [`SessionMachine::tick`] is due next, and for which timer.
    pub fn deadline(&self) -> Option<(Instant, &'static str)> {
        let all = SessionTimer::ALL.into_iter();
        all.filter_map(|timer| Some((self.due(timer)?, timer.name())))
            .min_by_key(|(at, _)| *at)
    }

    /// Expires the timers that are due. `others_run` is `true` if another session of the same agent runs a
    /// turn.
    pub fn tick(&mut self, others_run: bool, cx: &mut Cx<'_>) {
        // Output of the agent is recorded first, as it may extend a timer.
        note_process_output(&mut self.talk, cx);
        for timer in SessionTimer::ALL {
            // An earlier timer may have changed what is due.
            if self.due(timer).is_some_and(|at| at <= cx.now) {
                self.expire(timer, others_run, cx);
            }
        }
    }

    /// Returns when the turn reaches its limit. This is the only timer that runs while no client reads.
    pub fn turn_deadline(&self) -> Option<(Instant, &'static str)> {
        let timer = SessionTimer::TurnLimit;
        Some((self.due(timer)?, timer.name()))
    }

    pub(super) fn due(&self, timer: SessionTimer) -> Option<Instant> {
        timer.due(&self.talk, &self.host_calls, &self.prompting)
    }

    /// Extends all waits by a time in which the agent's output was not read.
    pub fn postpone(&mut self, by: Duration) {
        for timer in SessionTimer::ALL {
            timer.postpone(
                by,
                &mut self.talk,
                &mut self.host_calls,
                &mut self.prompting,
            );
        }
    }

    fn expire(&mut self, timer: SessionTimer, others_run: bool, cx: &mut Cx<'_>) {
        match timer {
            SessionTimer::Answer => self.decisions.time_out_requests(&mut self.talk, cx),
            SessionTimer::ClientRequest => {
                self.host_calls
                    .time_out_client_requests(&mut self.decisions, &mut self.talk, cx);
            }
            SessionTimer::Quiet => {
                self.prompting
                    .end_quiet_turn(&mut self.decisions, &mut self.talk, cx);
            }
            SessionTimer::RetryPause => {
                self.prompting
                    .end_pause(&mut self.decisions, &mut self.talk, cx);
            }
            SessionTimer::NextAttempt => self.prompting.reopen_for_attempt(cx),
            SessionTimer::Setting => time_out_settings(&mut self.talk, cx),
            SessionTimer::AbandonedTurn => {
                if let Some(abandoned) = &mut self.talk.abandoned {
                    abandoned.until = None;
                    self.recover_abandoned(others_run, cx);
                }
            }
            SessionTimer::RestoreLimit => {
                let error = restore_timeout(&self.talk, cx);
                self.opening_failed(&error, cx);
            }
            SessionTimer::OpeningStep => {
                let step = step_overdue(&mut self.talk, cx);
                self.advance(step, cx);
            }
            SessionTimer::CancelLimit => {
                let error = unanswered_cancel(&mut self.talk, cx);
                let (decisions, talk) = (&mut self.decisions, &mut self.talk);
                let is_abandoned = self.prompting.abandon_turn(error, decisions, talk, cx);
                // Without a process of its own, the session waits for the response.
                if is_abandoned && end_own_process(talk, cx) {
                    self.session_lost(&too_late(), cx);
                }
            }
            SessionTimer::TurnLimit => self.end_overlong(None, cx),
            SessionTimer::TurnSilence => {
                let error = silent_turn(&self.talk, cx);
                self.cancel_for(error, cx);
            }
            SessionTimer::LateOutput => self.talk.end_late_output(cx),
            SessionTimer::DiskAnswer => self.talk.not_stored(disk_timeout(), cx),
            SessionTimer::WaitNotice => {
                let is_serving = !self.host_calls.is_empty();
                notify_wait(&mut self.talk, is_serving, cx);
            }
        }
    }

    /// Cancels a turn that reached a limit on its whole length as a client would: `limit`, or else the configured one.
    /// The turn ends with the timeout error.
    pub fn end_overlong(&mut self, limit: Option<Duration>, cx: &mut Cx<'_>) {
        let configured = || cx.limits().of(Timeout::Turn).unwrap_or_default();
        let error = overlong_turn(limit.unwrap_or_else(configured), &self.talk, cx);
        self.cancel_for(error, cx);
    }

    /// Cancels the turn on acpipe's own account. It ends with this error whatever the agent answers.
    fn cancel_for(&mut self, error: Option<Error>, cx: &mut Cx<'_>) {
        let (Some(running), Some(error)) = (self.talk.turns.prompted_mut(), error) else {
            return;
        };
        // A turn whose prompt the agent does not have ends at once.
        running.timed_out = Some(error.clone());
        let turn_id = running.turn_id.clone();
        if !self.cancel(Some(&turn_id), cx) {
            self.prompting.end_turn(
                Ending::Failed(error),
                &mut self.decisions,
                &mut self.talk,
                cx,
            );
        }
    }

    /// Frees the session from a turn that does not end. `others_run` is `true` if another session of the same agent
    /// runs a turn.
    pub fn recover_abandoned(&mut self, others_run: bool, cx: &mut Cx<'_>) {
        if recover(others_run, &self.talk, cx) {
            self.session_lost(&too_late(), cx);
        }
    }

    /// Ends a call at its limit: a running turn is cancelled, a call that waits fails. `start` is the error if the
    /// session waits for its agent to start. The opening of the session ends if no other call waits for it.
    pub fn end_call(
        &mut self,
        token: Token,
        limit: Duration,
        start: Option<Error>,
        cx: &mut Cx<'_>,
    ) {
        if self.talk.turns.prompted().is_some_and(|r| r.token == token) {
            self.end_overlong(Some(limit), cx);
            return;
        }
        let error = start.unwrap_or_else(|| total_timeout(limit, &self.talk, cx));
        if self.talk.queue.take_call(token).is_some() {
            self.talk.notify_queue(cx.clients);
        } else if let Stage::Opening(restore) = &mut self.talk.stage {
            restore.waiters_mut().retain(|waiter| waiter.token != token);
        }
        cx.clients.reply(token, Err(error.clone()));
        let is_needed = match &self.talk.stage {
            Stage::Opening(restore) => {
                !restore.waiters().is_empty()
                    || self.talk.turns.is_prompted()
                    || !self.talk.queue.is_empty()
                    || !self.talk.settings.pending().is_empty()
            }
            Stage::Live { .. } | Stage::Resting => true,
        };
        if !is_needed {
            self.opening_failed(&error, cx);
        }
    }

    /// Returns `true` if the session has work to do without another event.
    pub fn has_more_to_do(&self) -> bool {
        self.deadline().is_some()
            || self.talk.output.log().is_dirty()
            || self.talk.output.has_unsent()
            || self.talk.output.subscribers().are_lagging()
    }

    /// Returns what the session waits for, in its turn or during its opening. `None` if it waits for the
    /// start of the agent or for nothing.
    pub fn waiting_for(
        &self,
        connection: Option<&Connection>,
        secrets: &Secrets,
        now: Instant,
    ) -> Option<Waiting> {
        let is_serving = !self.host_calls.is_empty();
        waiting_for(&self.talk, is_serving, connection, secrets, now)
    }
}

fn extend<'a>(limits: impl IntoIterator<Item = &'a mut Instant>, by: Duration) {
    for limit in limits {
        *limit += by;
    }
}
