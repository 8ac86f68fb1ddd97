//! Timers of an agent, in one table.
//!
//! A timer is a variant of [`AgentTimer`], with a match arm each in `due`, `postpone` and `expire`. The time
//! itself is stored with the state that waits for it. The handler of a timer is in the file of its topic.

use super::connection::Connection;
use super::cx::AgentCx;
use super::timeouts::SLOW_START;
use super::{AgentMachine, State, TimeoutFailure, timeouts};
use crate::client::Notice;
use crate::config::Settings;
use acpipe_model::limits::Limits;
use acpipe_protocol::wire::{AgentState, AgentStateParams};
use std::time::{Duration, Instant};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AgentTimer {
    /// Exit of a process that is being stopped; then the next step of the stop is due.
    ProcessStop,
    ProcessStart,
    Handshake,
    /// Next notice to the clients that the start is slow.
    SlowStart,
    /// Delay of the restart after a crash.
    Restart,
    /// Answer of a client to an elicitation that belongs to no session.
    Question,
    SignIn,
}

impl AgentTimer {
    /// All timers, in the order in which those that are due expire.
    pub(crate) const ALL: [Self; 7] = [
        Self::ProcessStop,
        Self::ProcessStart,
        Self::Handshake,
        // After `Handshake`, so that a failed start is not reported as slow.
        Self::SlowStart,
        Self::Restart,
        Self::Question,
        Self::SignIn,
    ];

    /// Returns the name of the timer, for logs.
    fn name(self) -> &'static str {
        match self {
            Self::ProcessStop => "stop",
            Self::ProcessStart => "spawn",
            Self::Handshake => "initialize",
            Self::SlowStart => "slow start",
            Self::Restart => "restart",
            Self::Question => "answer",
            Self::SignIn => "authenticate",
        }
    }
}

impl AgentMachine {
    /// Returns the next deadline of the agent's timers, and the name of the timer.
    pub fn deadline(&self, settings: &Settings) -> Option<(Instant, &'static str)> {
        let limits = self.limits(settings);
        let all = AgentTimer::ALL.into_iter();
        all.filter_map(|timer| Some((self.due(timer, limits)?, timer.name())))
            .min_by_key(|(at, _)| *at)
    }

    /// Expires a timer if it is due. Returns the failures; the hub ends the sessions that they concern before
    /// it expires the next timer of [`AgentTimer::ALL`].
    pub(crate) fn tick(&mut self, timer: AgentTimer, cx: &mut AgentCx<'_>) -> Vec<TimeoutFailure> {
        let due = self.due(timer, self.limits(&cx.shared.settings));
        if due.is_none_or(|at| at > cx.now) {
            return Vec::new();
        }
        self.expire(timer, cx)
    }

    /// Returns when a timer is due; `None` if it is not running.
    pub(super) fn due(&self, timer: AgentTimer, limits: &Limits) -> Option<Instant> {
        let start = || self.connection().and_then(Connection::start_silence);
        match timer {
            AgentTimer::ProcessStop => {
                let processes = self.connection()?.processes.iter();
                processes.filter_map(|p| p.stop?.deadline()).min()
            }
            AgentTimer::ProcessStart => {
                let processes = self.connection()?.processes.iter();
                processes.filter_map(|p| p.start_limit(limits)).min()
            }
            AgentTimer::Handshake => start()?.until(),
            AgentTimer::SlowStart => start()?.notice_at(SLOW_START),
            AgentTimer::Restart => match self.state {
                State::Backoff { until, .. } => Some(until),
                State::Absent { .. } | State::Connected(_) => None,
            },
            AgentTimer::Question => self.questions.deadline(),
            AgentTimer::SignIn => self.sign_ins.deadline(),
        }
    }

    /// Extends all timeouts by a time in which the agent was not read. Each stored time is extended once.
    #[expect(
        clippy::match_same_arms,
        reason = "a timer that is not postponed says why"
    )]
    pub fn postpone(&mut self, by: Duration) {
        for timer in AgentTimer::ALL {
            match timer {
                // The steps of a stop continue while no client reads.
                AgentTimer::ProcessStop => {}
                AgentTimer::ProcessStart => {
                    let processes = self.connection_mut().map(|c| c.processes.iter_mut());
                    for process in processes.into_iter().flatten() {
                        process.since += by;
                    }
                }
                AgentTimer::Handshake => {
                    let connection = self.connection_mut();
                    if let Some(idle_timer) = connection.and_then(Connection::start_silence_mut) {
                        idle_timer.postpone(by);
                    }
                }
                // Derived from the timer of the start, which is extended with `Handshake`.
                AgentTimer::SlowStart => {}
                // A delay of acpipe itself: it does not wait for the agent.
                AgentTimer::Restart => {}
                AgentTimer::Question => self.questions.postpone(by),
                AgentTimer::SignIn => self.sign_ins.postpone(by),
            }
        }
    }

    fn expire(&mut self, timer: AgentTimer, cx: &mut AgentCx<'_>) -> Vec<TimeoutFailure> {
        let spec = self.specs.current();
        let limits = cx.shared.settings.limits_of(self.specs.definition());
        match (timer, self.state.connection_mut()) {
            (AgentTimer::ProcessStop, Some(connection)) => connection.continue_stops(cx),
            (AgentTimer::ProcessStart, Some(connection)) => {
                return timeouts::overdue_processes(connection, spec, limits, cx);
            }
            (AgentTimer::Handshake, Some(connection)) => {
                let overdue = timeouts::overdue_handshake(connection, spec, limits, cx);
                return overdue.into_iter().collect();
            }
            (AgentTimer::SlowStart, Some(connection)) => {
                if let Some(idle_timer) = connection.start_silence_mut() {
                    idle_timer.note_notice(SLOW_START, cx.now);
                }
                let secrets = &cx.shared.settings.secrets;
                let notice = Notice::AgentState(AgentStateParams {
                    agent: self.specs.definition().name.clone(),
                    state: AgentState::Starting,
                    reason: None,
                    waiting_for: timeouts::start_wait(Some(connection), spec, secrets, cx.now),
                });
                cx.shared.notify_all(&notice, cx.clients);
            }
            (
                AgentTimer::ProcessStop
                | AgentTimer::ProcessStart
                | AgentTimer::Handshake
                | AgentTimer::SlowStart,
                None,
            ) => {}
            (AgentTimer::Restart, _) => self.restart(cx),
            (AgentTimer::Question, _) => {
                let declined = self.questions.time_out(cx);
                self.answer_questions(declined);
            }
            (AgentTimer::SignIn, _) => {
                for overdue in self.sign_ins.take_overdue(cx.now) {
                    if let (Some(call), Some(connection)) = (overdue.call, self.connection_mut()) {
                        connection.take_call(call);
                    }
                    let limits = self.limits(&cx.shared.settings);
                    let connection = self.connection();
                    let error = timeouts::sign_in_timeout(connection, overdue.signs_in, limits, cx);
                    cx.clients.reply(overdue.token, Err(error));
                }
            }
        }
        Vec::new()
    }
}
