//! Timers of a session, in one table.
//!
//! A timer is a variant of [`SessionTimer`], with its arms in `due`, `postpone` and `expire`. The time itself
//! is stored with the data of the wait. The handler of an expired timer is in the file of its topic.

use super::{SessionMachine, Stage};
use crate::core::cx::Cx;
use crate::core::log::disk_timeout;
use std::time::{Duration, Instant};

/// A timed wait of a session.
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
}

impl SessionMachine {
    /// Returns when [`SessionMachine::tick`] is due next, and for which timer.
    #[must_use]
    pub fn deadline(&self) -> Option<(Instant, &'static str)> {
        let all = SessionTimer::ALL.into_iter();
        all.filter_map(|timer| Some((self.due(timer)?, timer.name())))
            .min_by_key(|(at, _)| *at)
    }

    /// Expires the timers that are due. `others_run` is `true` if another session of the same agent runs a
    /// turn.
    pub fn tick(&mut self, others_run: bool, cx: &mut Cx<'_>) {
        // Output of the agent is recorded first, as it may extend a timer.
        self.note_process_output(cx);
        for timer in SessionTimer::ALL {
            // An earlier timer may have changed what is due.
            if self.due(timer).is_some_and(|at| at <= cx.now) {
                self.expire(timer, others_run, cx);
            }
        }
    }

    /// Returns when the turn reaches its limit. This is the only timer that runs while no client reads.
    #[must_use]
    pub fn turn_deadline(&self) -> Option<(Instant, &'static str)> {
        let timer = SessionTimer::TurnLimit;
        Some((self.due(timer)?, timer.name()))
    }

    /// Returns when a timer is due; `None` if the session does not wait for it.
    pub(super) fn due(&self, timer: SessionTimer) -> Option<Instant> {
        let turn = self
            .talk
            .turns
            .prompted()
            .filter(|turn| turn.ended.is_none());
        match timer {
            SessionTimer::Answer => self.talk.output.requests().deadline(),
            SessionTimer::ClientRequest => self.host_calls.deadlines().min(),
            SessionTimer::Quiet => self.talk.turns.background()?.quiet_at,
            SessionTimer::RetryPause => self.talk.turns.prompted()?.attempts.paused_until(),
            SessionTimer::NextAttempt => self.prompting.reopen_at(&self.talk),
            SessionTimer::Setting => self.talk.settings.pending().deadline(),
            SessionTimer::AbandonedTurn => self.talk.abandoned.as_ref()?.until,
            SessionTimer::RestoreLimit => match &self.talk.stage {
                Stage::Opening(restore) => restore.limit(),
                Stage::Live { .. } | Stage::Resting => None,
            },
            SessionTimer::OpeningStep => match &self.talk.stage {
                Stage::Opening(restore) => restore.deadline(),
                Stage::Live { .. } | Stage::Resting => None,
            },
            SessionTimer::CancelLimit => turn?.cancel_deadline,
            SessionTimer::TurnLimit => turn.filter(|turn| !turn.is_cancelled())?.limit,
            SessionTimer::TurnSilence => {
                let turn = turn.filter(|turn| !turn.is_cancelled())?;
                // An agent that waits for an answer is not idle.
                let waits_for_agent = turn.attempts.pause.is_none()
                    && self.talk.output.requests().is_empty()
                    && self.host_calls.is_empty();
                self.talk.idle_timer.filter(|_| waits_for_agent)?.until()
            }
            SessionTimer::LateOutput => self.talk.turns.prompted()?.late_output_until,
            SessionTimer::DiskAnswer => self.talk.output.disk_timeout(),
            SessionTimer::WaitNotice => self.talk.idle_timer?.notice_at(self.first_notice()?),
        }
    }

    /// Extends all waits by a time in which the agent's output was not read. Each stored time is extended
    /// once.
    #[expect(
        clippy::match_same_arms,
        reason = "a timer that is not postponed says why"
    )]
    pub fn postpone(&mut self, by: Duration) {
        for timer in SessionTimer::ALL {
            match timer {
                SessionTimer::Answer => {
                    extend(self.talk.output.requests_mut().deadlines_mut(), by);
                }
                SessionTimer::ClientRequest => extend(self.host_calls.deadlines_mut(), by),
                SessionTimer::Quiet => {
                    let turn = self.talk.turns.background_mut();
                    extend(turn.and_then(|turn| turn.quiet_at.as_mut()), by);
                }
                SessionTimer::RetryPause => {
                    if let Some(turn) = self.talk.turns.prompted_mut() {
                        turn.attempts.postpone(by);
                    }
                }
                SessionTimer::NextAttempt => {
                    let one_shot = self.prompting.one_shot.as_mut();
                    extend(one_shot.and_then(|o| o.reopen_at.as_mut()), by);
                }
                SessionTimer::Setting => self.talk.settings.pending_mut().postpone(by),
                SessionTimer::AbandonedTurn => {
                    let abandoned = self.talk.abandoned.as_mut();
                    extend(abandoned.and_then(|turn| turn.until.as_mut()), by);
                }
                SessionTimer::RestoreLimit => {
                    if let Stage::Opening(restore) = &mut self.talk.stage {
                        extend(restore.limit_mut(), by);
                    }
                }
                SessionTimer::OpeningStep => {
                    if let Stage::Opening(restore) = &mut self.talk.stage {
                        extend(restore.deadline_mut(), by);
                    }
                }
                SessionTimer::CancelLimit => {
                    let turn = self.talk.turns.prompted_mut();
                    extend(turn.and_then(|turn| turn.cancel_deadline.as_mut()), by);
                }
                // The limit of a turn is the client's own and also runs while the client does not read.
                SessionTimer::TurnLimit => {}
                SessionTimer::TurnSilence => {
                    if let Some(idle_timer) = &mut self.talk.idle_timer {
                        idle_timer.postpone(by);
                    }
                }
                SessionTimer::LateOutput => {
                    let turn = self.talk.turns.prompted_mut();
                    extend(turn.and_then(|turn| turn.late_output_until.as_mut()), by);
                }
                // The disk answers whether or not a client reads.
                SessionTimer::DiskAnswer => {}
                // It derives from the idle timer, which `TurnSilence` extends.
                SessionTimer::WaitNotice => {}
            }
        }
    }

    /// Handles a timer that is due.
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
            SessionTimer::Setting => self.time_out_settings(cx),
            SessionTimer::AbandonedTurn => self.give_up_abandoned(others_run, cx),
            SessionTimer::RestoreLimit => self.time_out_restore(cx),
            SessionTimer::OpeningStep => self.end_opening_step(cx),
            SessionTimer::CancelLimit => self.time_out_cancel(cx),
            SessionTimer::TurnLimit => self.end_overlong(cx),
            SessionTimer::TurnSilence => self.cancel_silent(cx),
            SessionTimer::LateOutput => self.talk.end_late_output(cx),
            SessionTimer::DiskAnswer => self.talk.not_stored(disk_timeout(), cx),
            SessionTimer::WaitNotice => self.notify_wait(cx),
        }
    }
}

fn extend<'a>(limits: impl IntoIterator<Item = &'a mut Instant>, by: Duration) {
    for limit in limits {
        *limit += by;
    }
}
