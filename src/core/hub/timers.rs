//! The timers of the hub: when a machine or the hub itself is due, what is done then, and time that does not count.
//!
//! The hub's own timers are the variants of [`HubTimer`], with their arms in `due`, `postpone` and `expire`. Agents and
//! sessions have tables of their own, which the hub goes through.

use super::Hub;
use crate::core::agent::Overdue;
use crate::core::agent::timers::AgentTimer;
use crate::core::client_sink::ClientSinks;
use crate::core::ids::AgentRef;
use crate::core::session::SessionMachine;
use std::time::{Duration, Instant};

/// A time, and the name of the timer that is due then.
type Due = Option<(Instant, &'static str)>;

/// Something that the hub itself waits for until a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HubTimer {
    /// An agent lists its sessions for a client.
    SessionLists,
    /// The next check for idle sessions and agents.
    IdleCheck,
    /// New output of terminals is shown.
    Terminals,
    /// The store answers a call.
    StoreAnswer,
}

impl HubTimer {
    /// Every timer, in the order in which those that are due expire.
    pub(super) const ALL: [Self; 4] = [
        Self::SessionLists,
        Self::IdleCheck,
        Self::Terminals,
        Self::StoreAnswer,
    ];

    /// Name of the timer, for logs.
    fn name(self) -> &'static str {
        match self {
            Self::SessionLists => "session/list",
            Self::IdleCheck => "idle",
            Self::Terminals => "terminal",
            Self::StoreAnswer => "store",
        }
    }
}

impl Hub {
    /// When [`Hub::tick`] is due next, and why.
    #[must_use]
    pub fn deadline(&self) -> Due {
        let limits = &self.shared.settings.limits;
        let agents = self.agents.iter();
        let agents = agents.filter_map(|agent| agent.deadline(limits));
        let sessions = self.sessions.awake().filter_map(SessionMachine::deadline);
        let own = HubTimer::ALL.into_iter();
        let own = own.filter_map(|timer| Some((self.due(timer)?, timer.name())));
        agents.chain(sessions).chain(own).min_by_key(|(at, _)| *at)
    }

    /// A time has come: expires all timers that are due, of the agents, the sessions and the hub.
    pub fn tick(&mut self, now: Instant, clients: &mut impl ClientSinks) {
        self.mending(now, clients, |hub, clients| {
            hub.number_unsent(clients);
            for agent in hub.agents.all() {
                hub.tick_agent(agent, now, clients);
            }
            hub.tick_sessions(now, clients);
            for timer in HubTimer::ALL {
                if hub.due(timer).is_some_and(|at| at <= now) {
                    hub.expire(timer, now, clients);
                }
            }
            hub.go_on(now, clients);
        });
    }

    fn tick_agent(&mut self, agent: AgentRef, now: Instant, clients: &mut impl ClientSinks) {
        for timer in AgentTimer::ALL {
            let failed = self.with_agent(agent, now, clients, |agent, cx| agent.tick(timer, cx));
            for Overdue { error, process } in failed {
                match process {
                    Some(child) => self.process_failed(agent, child, &error, now, clients),
                    None => self.agent_failed(agent, &error, now, clients),
                }
            }
        }
    }

    fn tick_sessions(&mut self, now: Instant, clients: &mut impl ClientSinks) {
        for id in self.sessions_due(now, SessionMachine::deadline) {
            let others_run = self.others_run(&id);
            self.with(&id, now, clients, |session, cx| {
                session.tick(others_run, cx);
            });
        }
    }

    /// When a turn reaches the limit of its whole length next: also while the client does not read.
    #[must_use]
    pub fn turn_deadline(&self) -> Due {
        let sessions = self.sessions.awake();
        sessions.filter_map(SessionMachine::turn_deadline).min()
    }

    /// Cancels the turns that have reached the limit of their whole length.
    pub fn tick_turn_limits(&mut self, now: Instant, clients: &mut impl ClientSinks) {
        for id in self.sessions_due(now, SessionMachine::turn_deadline) {
            self.mending(now, clients, |hub, clients| {
                hub.with(&id, now, clients, SessionMachine::cancel_overlong);
            });
        }
    }

    fn sessions_due(&self, now: Instant, deadline: fn(&SessionMachine) -> Due) -> Vec<String> {
        let is_due = |s: &&SessionMachine| deadline(s).is_some_and(|(at, _)| at <= now);
        let due = self.sessions.awake().filter(is_due);
        due.map(|session| session.id.clone()).collect()
    }

    /// When a timer of the hub is due; `None` where the hub does not wait for it.
    pub(super) fn due(&self, timer: HubTimer) -> Option<Instant> {
        match timer {
            HubTimer::SessionLists => self.listings.iter().filter_map(|l| l.until).min(),
            HubTimer::IdleCheck => self.idle.deadline().filter(|_| !self.is_ending()),
            HubTimer::Terminals => self.hosting.host.deadline(),
            HubTimer::StoreAnswer => self.store_limits().min(),
        }
    }

    /// Extends all waits for agents and the client: for this long nobody listened to the agents, because the client did
    /// not read.
    #[expect(
        clippy::match_same_arms,
        reason = "a timer that is not postponed says why"
    )]
    pub fn postpone(&mut self, by: Duration) {
        for agent in self.agents.iter_mut() {
            agent.postpone(by);
        }
        self.sessions.for_each_awake(|session| session.postpone(by));
        for timer in HubTimer::ALL {
            match timer {
                HubTimer::SessionLists => {
                    for until in self.listings.iter_mut().filter_map(|l| l.until.as_mut()) {
                        *until += by;
                    }
                }
                // The check gives nothing up that is in use.
                HubTimer::IdleCheck => {}
                // Output that was received is shown as soon as the client reads.
                HubTimer::Terminals => {}
                // The disk answers whether a client reads or not.
                HubTimer::StoreAnswer => {}
            }
        }
    }

    /// Does what follows from a timer that is due.
    fn expire(&mut self, timer: HubTimer, now: Instant, clients: &mut impl ClientSinks) {
        match timer {
            HubTimer::SessionLists => self.time_out_listings(now, clients),
            HubTimer::IdleCheck => self.check_idle(now, clients),
            HubTimer::Terminals => self.show_terminals(now, clients),
            HubTimer::StoreAnswer => self.time_out_store(now, clients),
        }
    }
}
