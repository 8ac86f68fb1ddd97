//! Routing: gives an event to one machine with its surroundings, and does what the machine requests.

use super::Hub;
use crate::core::agent::{AgentCx, AgentMachine};
use crate::core::client_sink::ClientSinks;
use crate::core::cx::Cx;
use crate::core::cx::SessionRequest;
use crate::core::error::Error;
use crate::core::ids::AgentRef;
use crate::core::session::SessionMachine;
use std::time::Instant;

/// What follows from events and is done after them.
#[derive(Debug, Default)]
pub(super) struct Pending {
    /// The sessions whose turns were answered, and when: they end when all that was received is read.
    pub(super) ended: Vec<(String, Instant)>,
    /// The sessions that can take their next prompts.
    pub(super) freed: Vec<String>,
}

/// A session while it handles an event: a panic marks it.
struct Handling<'a>(&'a mut SessionMachine);

impl Drop for Handling<'_> {
    fn drop(&mut self) {
        self.0.was_handling |= std::thread::panicking();
    }
}

impl Hub {
    /// Gives an event to a session, and does what the session requests; `None` where there is no such session.
    pub(super) fn with<C: ClientSinks, T>(
        &mut self,
        id: &str,
        now: Instant,
        clients: &mut C,
        act: impl FnOnce(&mut SessionMachine, &mut Cx<'_, C>) -> T,
    ) -> Option<T> {
        let session = self.sessions.get_mut(id)?;
        let mut requests = Vec::new();
        let mut cx = Cx {
            now,
            shared: &mut self.shared,
            agent: self.agents.get_mut(session.agent).access(),
            hosting: &mut self.hosting,
            clients,
            requests: &mut requests,
            effects: &mut self.effects,
        };
        let handling = Handling(session);
        let result = act(handling.0, &mut cx);
        let agent = handling.0.agent;
        drop(handling);
        for request in requests {
            self.request(id, agent, request, now, clients);
        }
        Some(result)
    }

    /// Gives an event to an agent.
    pub(super) fn with_agent<C: ClientSinks, T>(
        &mut self,
        agent: AgentRef,
        now: Instant,
        clients: &mut C,
        act: impl FnOnce(&mut AgentMachine, &mut AgentCx<'_, C>) -> T,
    ) -> T {
        let mut cx = AgentCx {
            now,
            shared: &mut self.shared,
            clients,
            effects: &mut self.effects,
        };
        act(self.agents.get_mut(agent), &mut cx)
    }

    /// Does what a session requests.
    fn request(
        &mut self,
        id: &str,
        agent: AgentRef,
        request: SessionRequest,
        now: Instant,
        clients: &mut impl ClientSinks,
    ) {
        match request {
            SessionRequest::EndTurnWhenRead => self.pending.ended.push((id.to_owned(), now)),
            SessionRequest::Free => self.pending.freed.push(id.to_owned()),
            SessionRequest::NextPrompt => self.next_prompt(id, now, clients),
            SessionRequest::TurnCompleted => self.agents.get_mut(agent).note_turn(),
            SessionRequest::Restored(outcome) => {
                let outcome = outcome.as_ref().map(AsRef::as_ref);
                self.agents.get_mut(agent).note_restored(id, outcome);
            }
            SessionRequest::RestartAgent => self.agents.get_mut(agent).renew_now(),
            SessionRequest::SettleHost => self.settle_host(now, clients),
            SessionRequest::Remove => {
                let unused = |s: &SessionMachine| s.log.is_empty() && !s.is_opening();
                if self.sessions.get(id).is_some_and(unused) {
                    self.remove_session(id, clients);
                }
            }
        }
    }

    /// Does what had to wait for the end of an event.
    pub(super) fn go_on(&mut self, now: Instant, clients: &mut impl ClientSinks) {
        if !self.pending.freed.is_empty() {
            self.recover_abandoned(now, clients);
            for id in std::mem::take(&mut self.pending.freed) {
                self.next_prompt(&id, now, clients);
            }
        }
        self.sweep_asks(now, clients);
        self.go_on_hosting(now, clients);
        for agent in self.agents.all() {
            self.go_on_renewal(agent, now, clients);
        }
    }

    /// Gives up the questions of turns that are over, however they ended.
    fn sweep_asks(&mut self, now: Instant, clients: &mut impl ClientSinks) {
        let mut stale = self.sessions.awake().filter(|s| s.has_stale_asks());
        if let Some(id) = stale.next().map(|s| s.id.clone()) {
            drop(stale);
            self.with(
                &id,
                now,
                clients,
                super::super::session::SessionMachine::sweep_asks,
            );
            self.sweep_asks(now, clients);
        }
    }

    /// Turns have ended: sessions that had to wait for that are restored.
    fn recover_abandoned(&mut self, now: Instant, clients: &mut impl ClientSinks) {
        let sessions = self.sessions.values();
        let overdue = sessions.filter(|s| s.is_abandoned_overdue());
        let overdue: Vec<String> = overdue.map(|session| session.id.clone()).collect();
        for id in overdue {
            let others_run = self.others_run(&id);
            self.with(&id, now, clients, |session, cx| {
                session.recover_abandoned(others_run, cx);
            });
        }
    }

    /// Turns what dialects want done into effects.
    pub(super) fn deliver(&mut self, now: Instant) {
        let mut nothing = ();
        for agent in self.agents.iter_mut() {
            let mut cx = AgentCx {
                now,
                shared: &mut self.shared,
                clients: &mut nothing,
                effects: &mut self.effects,
            };
            agent.deliver(&mut cx);
        }
    }

    /// Whether a session of the same agent runs a turn.
    pub(super) fn others_run(&self, id: &str) -> bool {
        let agent = self.sessions.get(id).map(|session| session.agent);
        let mut sessions = self.sessions.values();
        sessions.any(|s| Some(s.agent) == agent && s.running.is_some())
    }

    /// What was received is read, or with `all` false only a part of it: ends the turns that were answered.
    pub fn drained(&mut self, all: bool, now: Instant, clients: &mut impl ClientSinks) {
        let due = |at: &Instant| all || now.saturating_duration_since(*at) >= DRAIN_LIMIT;
        for (id, at) in std::mem::take(&mut self.pending.ended) {
            if !due(&at) {
                self.pending.ended.push((id, at));
                continue;
            }
            self.mending(now, clients, |hub, clients| {
                hub.with(
                    &id,
                    now,
                    clients,
                    super::super::session::SessionMachine::end_answered,
                );
            });
        }
        self.mending(now, clients, |hub, clients| hub.go_on(now, clients));
    }

    /// The ids of an agent's sessions.
    pub(super) fn sessions_of(&self, agent: AgentRef) -> Vec<String> {
        let own = self.sessions.of(agent);
        own.map(|session| session.id.clone()).collect()
    }

    /// The session of this id: one that is open, or else one that is stored.
    pub(super) fn session(&mut self, id: &str) -> Result<&mut SessionMachine, Error> {
        if !self.sessions.contains_key(id) && self.store.has(id)? {
            self.reopen(id)?;
        }
        let missing = || crate::core::error::no_session(id);
        self.sessions.get_mut(id).ok_or_else(missing)
    }

    /// Like [`Hub::with`], for a session that may be stored.
    pub(super) fn with_session<C: ClientSinks, T>(
        &mut self,
        id: &str,
        now: Instant,
        clients: &mut C,
        act: impl FnOnce(&mut SessionMachine, &mut Cx<'_, C>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.session(id)?;
        let missing = || Err(crate::core::error::no_session(id));
        self.with(id, now, clients, act).unwrap_or_else(missing)
    }
}

/// For how long an answered turn may wait for the rest of what was received with its answer, where the client does not
/// read.
const DRAIN_LIMIT: std::time::Duration = std::time::Duration::from_millis(50);
