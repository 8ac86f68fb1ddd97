//! Times: when the hub is due next, what is done then, and time that does not count.

use super::Hub;
use crate::core::agent::Overdue;
use crate::core::ask::{AskId, ClientAnswer};
use crate::core::client::ClientId;
use crate::core::client_sink::ClientSinks;
use crate::core::ids::AgentRef;
use crate::core::session::SessionMachine;
use crate::core::shared::RequestOwner;
use std::time::{Duration, Instant};
use tracing::debug;

/// A time, and what is due then.
type Due = Option<(Instant, &'static str)>;

impl Hub {
    /// When [`Hub::tick`] is due next, and why.
    #[must_use]
    pub fn deadline(&self) -> Due {
        let limits = &self.shared.settings.limits;
        let agents = self
            .agents
            .iter()
            .filter_map(|agent| agent.deadline(limits));
        let sessions = self.sessions.awake().filter_map(SessionMachine::deadline);
        let listings = self.listings.iter();
        let listings = listings.filter_map(|l| Some((l.until?, "session/list")));
        let idle = self.idle.deadline().filter(|_| !self.is_ending());
        let idle = idle.map(|at| (at, "idle"));
        let terminals = self.hosting.host.deadline().map(|at| (at, "terminal"));
        agents
            .chain(sessions)
            .chain(listings)
            .chain(idle)
            .chain(terminals)
            .min_by_key(|(at, _)| *at)
    }

    /// A time has come: gives up or continues whatever is due.
    pub fn tick(&mut self, now: Instant, clients: &mut impl ClientSinks) {
        self.mending(now, clients, |hub, clients| {
            hub.number_unsent(clients);
            for agent in hub.agents.all() {
                hub.tick_agent(agent, now, clients);
            }
            hub.tick_sessions(now, clients);
            hub.tick_listings(now, clients);
            hub.tick_idle(now, clients);
            hub.tick_terminals(now, clients);
            hub.go_on(now, clients);
        });
    }

    fn tick_agent(&mut self, agent: AgentRef, now: Instant, clients: &mut impl ClientSinks) {
        let overdue = self.with_agent(agent, now, clients, super::super::agent::AgentMachine::tick);
        for Overdue { error, process } in overdue {
            match process {
                Some(child) => self.process_failed(agent, child, &error, now, clients),
                None => self.agent_failed(agent, &error, now, clients),
            }
        }
        self.with_agent(
            agent,
            now,
            clients,
            super::super::agent::AgentMachine::tick_waits,
        );
    }

    fn tick_sessions(&mut self, now: Instant, clients: &mut impl ClientSinks) {
        let due = |s: &&SessionMachine| s.deadline().is_some_and(|(at, _)| at <= now);
        let due = self.sessions.awake().filter(due).map(|s| s.id.clone());
        let due: Vec<String> = due.collect();
        for id in &due {
            self.with(
                id,
                now,
                clients,
                super::super::session::SessionMachine::tick_asks,
            );
        }
        for id in due {
            let others_run = self.others_run(&id);
            self.with(&id, now, clients, |session, cx| {
                session.tick(others_run, cx);
            });
        }
    }

    /// When a turn reaches the limit of its whole length next: also while the client does not read.
    #[must_use]
    pub fn turn_deadline(&self) -> Due {
        let turns = self.sessions.awake().filter_map(SessionMachine::turn_out);
        turns.min_by_key(|(at, _)| *at)
    }

    /// Cancels the turns that have reached the limit of their whole length.
    pub fn tick_turn_limits(&mut self, now: Instant, clients: &mut impl ClientSinks) {
        let due = |s: &&SessionMachine| s.turn_out().is_some_and(|(at, _)| at <= now);
        let due = self.sessions.awake().filter(due).map(|s| s.id.clone());
        for id in due.collect::<Vec<_>>() {
            self.mending(now, clients, |hub, clients| {
                hub.with(
                    &id,
                    now,
                    clients,
                    super::super::session::SessionMachine::cancel_overlong,
                );
            });
        }
    }

    /// Extends all waits for agents and the client: for this long nobody listened to the agents, because the client did
    /// not read.
    pub fn postpone(&mut self, by: Duration) {
        for agent in self.agents.iter_mut() {
            agent.postpone(by);
        }
        for until in self.listings.iter_mut().filter_map(|l| l.until.as_mut()) {
            *until += by;
        }
        self.sessions.for_each_awake(|session| session.postpone(by));
    }

    /// Shortens the time that ending processes get: the user interrupted a second time.
    pub fn expedite(&mut self, now: Instant, clients: &mut impl ClientSinks) {
        for agent in self.agents.all() {
            self.with_agent(
                agent,
                now,
                clients,
                super::super::agent::AgentMachine::expedite,
            );
        }
    }

    /// Turns what dialects want done into effects.
    pub(super) fn deliver(&mut self, now: Instant) {
        let mut nothing = ();
        for agent in self.agents.iter_mut() {
            let mut cx = crate::core::agent::AgentCx {
                now,
                shared: &mut self.shared,
                clients: &mut nothing,
                effects: &mut self.effects,
            };
            agent.deliver(&mut cx);
        }
    }

    /// A client answered a request of ours; an answer that is not awaited any more changes nothing.
    pub fn client_answered(
        &mut self,
        client: ClientId,
        id: AskId,
        answer: &ClientAnswer,
        now: Instant,
        clients: &mut impl ClientSinks,
    ) {
        self.mending(now, clients, |hub, clients| {
            hub.number_unsent(clients);
            match hub.shared.client_requests.get(&id).cloned() {
                Some(RequestOwner::Session(session)) => {
                    hub.with(&session, now, clients, |session, cx| {
                        session.client_answered(client, id, answer, cx);
                    });
                }
                Some(RequestOwner::Agent(agent)) => {
                    hub.with_agent(agent, now, clients, |agent, cx| {
                        agent.client_answered(client, id, answer, cx);
                    });
                }
                None => debug!(id = id.0, "an answer to a request that is decided"),
            }
            hub.go_on(now, clients);
        });
    }
}
