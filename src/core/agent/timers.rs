//! The timers of an agent: the one table of what it waits for.
//!
//! A timer is a variant of [`AgentTimer`], with its arms in `due`, `postpone` and `expire`. The time itself stands where the
//! wait is kept. What is done when a timer expires is in the file of its topic.

use super::connection::Connection;
use super::cx::AgentCx;
use super::timeouts::SLOW_START;
use super::{AgentMachine, Overdue, State};
use crate::core::client_sink::ClientSinks;
use crate::core::limits::Limits;
use std::time::{Duration, Instant};

/// Something that an agent waits for until a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::core) enum AgentTimer {
    /// A process that is being stopped exits; after that comes the next step of its end.
    ProcessStop,
    /// A process starts.
    ProcessStart,
    /// The agent answers the handshake.
    Handshake,
    /// The next notice to the clients that the start is slow.
    SlowStart,
    /// The pause before the restart after a crash.
    Restart,
    /// A client answers a question that belongs to no session.
    Question,
    /// The agent answers a call to sign in or out.
    SignIn,
}

impl AgentTimer {
    /// Every timer, in the order in which those that are due expire.
    pub(in crate::core) const ALL: [Self; 7] = [
        Self::ProcessStop,
        Self::ProcessStart,
        Self::Handshake,
        // A start that has failed is not slow.
        Self::SlowStart,
        Self::Restart,
        Self::Question,
        Self::SignIn,
    ];

    /// Name of the timer, for logs.
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
    /// When a timer of the agent is due next, and which.
    #[must_use]
    pub fn deadline(&self, limits: &Limits) -> Option<(Instant, &'static str)> {
        let all = AgentTimer::ALL.into_iter();
        all.filter_map(|timer| Some((self.due(timer, limits)?, timer.name())))
            .min_by_key(|(at, _)| *at)
    }

    /// Expires a timer if it is due. Returns what failed; the hub ends the sessions that this concerns before it gives the
    /// next timer of [`AgentTimer::ALL`].
    pub(in crate::core) fn tick<C: ClientSinks>(
        &mut self,
        timer: AgentTimer,
        cx: &mut AgentCx<'_, C>,
    ) -> Vec<Overdue> {
        let due = self.due(timer, &cx.shared.settings.limits);
        if due.is_none_or(|at| at > cx.now) {
            return Vec::new();
        }
        self.expire(timer, cx)
    }

    /// When a timer is due; `None` where the agent does not wait for it.
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
            AgentTimer::SlowStart => start()?.tell_at(SLOW_START),
            AgentTimer::Restart => match self.state {
                State::Backoff { until, .. } => Some(until),
                State::Absent { .. } | State::Connected(_) => None,
            },
            AgentTimer::Question => self.questions.iter().filter_map(|ask| ask.until).min(),
            AgentTimer::SignIn => self.sign_in.deadline(),
        }
    }

    /// Extends all waits: for this long nobody listened to the agent. Each stored time is extended once.
    #[expect(
        clippy::match_same_arms,
        reason = "a timer that is not postponed says why"
    )]
    pub fn postpone(&mut self, by: Duration) {
        for timer in AgentTimer::ALL {
            match timer {
                // The steps of a stop go on while no client reads.
                AgentTimer::ProcessStop => {}
                AgentTimer::ProcessStart => {
                    let processes = self.connection_mut().map(|c| c.processes.iter_mut());
                    for process in processes.into_iter().flatten() {
                        process.since += by;
                    }
                }
                AgentTimer::Handshake => {
                    let connection = self.connection_mut();
                    if let Some(silence) = connection.and_then(Connection::start_silence_mut) {
                        silence.postpone(by);
                    }
                }
                // It follows from the silence of the start, which is extended with `Handshake`.
                AgentTimer::SlowStart => {}
                // A pause of acpipe's own: nothing of the agent is awaited.
                AgentTimer::Restart => {}
                AgentTimer::Question => {
                    let limits = self.questions.iter_mut();
                    for until in limits.filter_map(|ask| ask.until.as_mut()) {
                        *until += by;
                    }
                }
                AgentTimer::SignIn => self.sign_in.postpone(by),
            }
        }
    }

    /// Does what follows from a timer that is due; returns what failed.
    fn expire<C: ClientSinks>(
        &mut self,
        timer: AgentTimer,
        cx: &mut AgentCx<'_, C>,
    ) -> Vec<Overdue> {
        match timer {
            AgentTimer::ProcessStop => self.continue_stops(cx),
            AgentTimer::ProcessStart => return self.overdue_processes(cx),
            AgentTimer::Handshake => return self.overdue_handshake(cx).into_iter().collect(),
            AgentTimer::SlowStart => self.notify_slow_start(cx),
            AgentTimer::Restart => self.restart(cx),
            AgentTimer::Question => self.time_out_questions(cx),
            AgentTimer::SignIn => self.time_out_sign_ins(cx),
        }
        Vec::new()
    }
}
