//! Timers of the hub: deadlines of the hub and its machines, the actions at each deadline, and time that does
//! not count.
//!
//! The hub's own timers are the variants of [`HubTimer`], with a match arm each in `due`, `postpone` and
//! `expire`. Agents and sessions have timer tables of their own, which the hub polls.

use super::Hub;
use super::cx::HubCx;
use super::router::{hosting, panics, storage};
use crate::agent::TimeoutFailure;
use crate::agent::timers::AgentTimer;
use crate::effect::AgentId;
use crate::ids::AgentRef;
use crate::session::SessionMachine;
use std::time::{Duration, Instant};

/// A deadline, and the name of its timer.
type Due = Option<(Instant, &'static str)>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HubTimer {
    /// Limit on an agent's session list for a client.
    SessionLists,
    IdleCheck,
    /// Display of new terminal output.
    Terminals,
    /// Limit on the store's response to a call.
    StoreAnswer,
    /// Total limit of a call, given by its client.
    TotalLimit,
}

impl HubTimer {
    /// All timers, in the order in which those that are due expire.
    pub(super) const ALL: [Self; 5] = [
        Self::SessionLists,
        Self::IdleCheck,
        Self::Terminals,
        Self::StoreAnswer,
        Self::TotalLimit,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::SessionLists => "session/list",
            Self::IdleCheck => "idle",
            Self::Terminals => "terminal",
            Self::StoreAnswer => "store",
            Self::TotalLimit => "total",
        }
    }
}

impl Hub {
    /// Returns the next deadline for [`Hub::tick`], and the name of its timer.
    pub fn deadline(&self) -> Due {
        let settings = &self.router.shared().settings;
        let agents = self.router.agents().iter();
        let agents = agents.filter_map(|agent| agent.deadline(settings));
        let sessions = self
            .router
            .sessions()
            .awake()
            .filter_map(SessionMachine::deadline);
        let own = HubTimer::ALL.into_iter();
        let own = own.filter_map(|timer| Some((self.due(timer)?, timer.name())));
        agents.chain(sessions).chain(own).min_by_key(|(at, _)| *at)
    }

    /// Expires all timers that are due: of the agents, the sessions and the hub.
    pub fn tick(&mut self, cx: &mut HubCx<'_>) {
        panics::catch_and_repair(self, cx, |hub, cx| {
            storage::number_unsent(&mut hub.router, cx.clients);
            for agent in hub.router.agents().all() {
                hub.tick_agent(agent, cx);
            }
            hub.tick_sessions(cx);
            for timer in HubTimer::ALL {
                if hub.due(timer).is_some_and(|at| at <= cx.now) {
                    hub.expire(timer, cx);
                }
            }
            hub.run_deferred(cx);
        });
    }

    fn tick_agent(&mut self, agent: AgentRef, cx: &mut HubCx<'_>) {
        for timer in AgentTimer::ALL {
            let failed = self
                .router
                .with_agent(agent, cx, |agent, cx| agent.tick(timer, cx));
            for TimeoutFailure { error, process } in failed {
                match process {
                    Some(child) => {
                        self.events
                            .process_failed(&mut self.router, agent, child, &error, cx);
                    }
                    None => self
                        .events
                        .agent_failed(&mut self.router, agent, &error, cx),
                }
            }
        }
    }

    fn tick_sessions(&mut self, cx: &mut HubCx<'_>) {
        for id in self.sessions_due(cx.now, SessionMachine::deadline) {
            let others_run = self.router.sessions().others_run(&id);
            self.router.with(&id, cx, |session, cx| {
                session.tick(others_run, cx);
            });
        }
    }

    /// Returns the next deadline of a limit on the whole length of a turn or call. It also applies while the
    /// client does not read.
    pub fn turn_deadline(&self) -> Due {
        let sessions = self.router.sessions().awake();
        let turns = sessions.filter_map(SessionMachine::turn_deadline);
        let timer = HubTimer::TotalLimit;
        let calls = self.due(timer).map(|at| (at, timer.name()));
        turns.chain(calls).min()
    }

    /// Cancels the turns that have reached the limit on their whole length.
    pub fn tick_turn_limits(&mut self, cx: &mut HubCx<'_>) {
        for id in self.sessions_due(cx.now, SessionMachine::turn_deadline) {
            panics::catch_and_repair(self, cx, |hub, cx| {
                hub.router.with(&id, cx, |session, cx| {
                    session.end_overlong(None, cx);
                });
            });
        }
        self.end_overlong_calls(cx);
    }

    fn sessions_due(&self, now: Instant, deadline: fn(&SessionMachine) -> Due) -> Vec<String> {
        let is_due = |s: &&SessionMachine| deadline(s).is_some_and(|(at, _)| at <= now);
        let due = self.router.sessions().awake().filter(is_due);
        due.map(|session| session.id.clone()).collect()
    }

    /// Returns when a timer of the hub is due; `None` if it is not running.
    pub(super) fn due(&self, timer: HubTimer) -> Option<Instant> {
        match timer {
            HubTimer::SessionLists => self.events.lists_until(),
            HubTimer::IdleCheck => self.lifecycle.idle_check_at(),
            HubTimer::Terminals => self.router.hosting().host.deadline(),
            HubTimer::StoreAnswer => storage::store_limits(self.router.shared()).min(),
            HubTimer::TotalLimit => self.lifecycle.limit_passes_at(),
        }
    }

    /// Extends all timeouts for agents and clients by a time in which agents were not read, because the
    /// client did not read.
    #[expect(
        clippy::match_same_arms,
        reason = "a timer that is not postponed says why"
    )]
    pub fn postpone(&mut self, by: Duration) {
        for agent in self.router.agents_mut().iter_mut() {
            agent.postpone(by);
        }
        self.router
            .sessions_mut()
            .for_each_awake(|session| session.postpone(by));
        for timer in HubTimer::ALL {
            match timer {
                HubTimer::SessionLists => self.events.listings().postpone(by),
                // The check does not end anything that is in use.
                HubTimer::IdleCheck => {}
                // Received output is shown as soon as the client reads.
                HubTimer::Terminals => {}
                // The disk answers whether or not a client reads.
                HubTimer::StoreAnswer => {}
                // The limit is the client's own and also runs while the client does not read.
                HubTimer::TotalLimit => {}
            }
        }
    }

    /// Extends the timers of one agent and its sessions by the time in which the output of its process was
    /// not read.
    pub fn postpone_agent(&mut self, id: AgentId, by: Duration) {
        let Some(agent) = self.router.agents().with_process(id) else {
            return;
        };
        self.router.agents_mut().get_mut(agent).postpone(by);
        for id in self.router.sessions().ids_of(agent) {
            if let Some(session) = self.router.sessions_mut().get_mut(&id) {
                session.postpone(by);
            }
        }
    }

    fn expire(&mut self, timer: HubTimer, cx: &mut HubCx<'_>) {
        match timer {
            HubTimer::SessionLists => self.events.listings().time_out(&mut self.router, cx),
            HubTimer::IdleCheck => {
                self.lifecycle
                    .check_idle(&mut self.router, &mut self.events, cx);
            }
            HubTimer::Terminals => hosting::show_terminals(&mut self.router, cx),
            HubTimer::StoreAnswer => storage::time_out_store(&mut self.router, cx),
            HubTimer::TotalLimit => self.end_overlong_calls(cx),
        }
    }
}
