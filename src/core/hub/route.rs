//! Routing: passes an event to one machine with its context, and performs the requests of the machine.

use super::Hub;
use crate::core::agent::{AgentCx, AgentMachine};
use crate::core::client_sink::ClientSinks;
use crate::core::cx::Cx;
use crate::core::cx::SessionRequest;
use crate::core::error::Error;
use crate::core::ids::AgentRef;
use crate::core::session::SessionMachine;
use std::time::Instant;

/// Actions to perform after the current event.
#[derive(Debug, Default)]
pub(super) struct DeferredActions {
    /// Sessions whose turns were answered, and when. The turns end when all received output is read.
    pub(super) ended: Vec<(String, Instant)>,
    /// Sessions that can take their next prompt.
    pub(super) freed: Vec<String>,
}

/// Guard that marks a session if a panic unwinds while it handles an event.
struct PanicGuard<'a>(&'a mut SessionMachine);

impl Drop for PanicGuard<'_> {
    fn drop(&mut self) {
        self.0.was_handling |= std::thread::panicking();
    }
}

impl Hub {
    /// Passes an event to a session, and performs the session's requests. Returns `None` if the session does
    /// not exist.
    pub(super) fn with<T>(
        &mut self,
        id: &str,
        now: Instant,
        clients: &mut dyn ClientSinks,
        act: impl FnOnce(&mut SessionMachine, &mut Cx<'_>) -> T,
    ) -> Option<T> {
        let session = self.sessions.get_mut(id)?;
        let mut requests = Vec::new();
        let mut cx = Cx {
            now,
            shared: &mut self.shared,
            agent: self.agents.get_mut(session.agent).access(),
            terms: session.terms(),
            hosting: &mut self.hosting,
            clients,
            requests: &mut requests,
            effects: &mut self.effects,
        };
        let handling = PanicGuard(session);
        let result = act(handling.0, &mut cx);
        let agent = handling.0.agent;
        drop(handling);
        for request in requests {
            self.request(id, agent, request, now, clients);
        }
        Some(result)
    }

    /// Passes an event to an agent.
    pub(super) fn with_agent<T>(
        &mut self,
        agent: AgentRef,
        now: Instant,
        clients: &mut dyn ClientSinks,
        act: impl FnOnce(&mut AgentMachine, &mut AgentCx<'_>) -> T,
    ) -> T {
        let mut cx = AgentCx {
            now,
            shared: &mut self.shared,
            clients,
            effects: &mut self.effects,
        };
        act(self.agents.get_mut(agent), &mut cx)
    }

    /// Performs a request of a session.
    fn request(
        &mut self,
        id: &str,
        agent: AgentRef,
        request: SessionRequest,
        now: Instant,
        clients: &mut dyn ClientSinks,
    ) {
        match request {
            SessionRequest::EndTurnWhenRead => self.pending.ended.push((id.to_owned(), now)),
            SessionRequest::Free => self.pending.freed.push(id.to_owned()),
            SessionRequest::NextPrompt => self.next_prompt(id, now, clients),
            SessionRequest::TurnCompleted => self.agents.get_mut(agent).note_turn(),
            SessionRequest::CheckClaim => self.check_claim(id, now, clients),
            SessionRequest::EndOtherClaims => self.end_other_claims(id, now, clients),
            SessionRequest::Restored(outcome) => {
                let outcome = outcome.as_ref().map(AsRef::as_ref);
                self.agents.get_mut(agent).note_restored(id, outcome);
            }
            SessionRequest::RestartAgent => self.agents.get_mut(agent).renew_now(),
            SessionRequest::SettleHost => self.settle_host(now, clients),
            SessionRequest::Remove => {
                let unused = |s: &SessionMachine| s.output.log().is_empty() && !s.is_opening();
                if self.sessions.get(id).is_some_and(unused) {
                    self.remove_session(id, clients);
                }
            }
        }
    }

    /// Performs the actions that had to wait for the end of an event.
    pub(super) fn run_deferred(&mut self, now: Instant, clients: &mut dyn ClientSinks) {
        if !self.pending.freed.is_empty() {
            self.recover_abandoned(now, clients);
            for id in std::mem::take(&mut self.pending.freed) {
                self.next_prompt(&id, now, clients);
            }
        }
        self.cancel_stale_requests(now, clients);
        self.remove_spent(now, clients);
        self.continue_hosting(now, clients);
        self.continue_deletions(now);
        for agent in self.agents.all() {
            self.continue_renewal(agent, now, clients);
        }
    }

    /// Closes the client requests of turns that have ended, however they ended.
    fn cancel_stale_requests(&mut self, now: Instant, clients: &mut dyn ClientSinks) {
        let mut stale = self.sessions.awake().filter(|s| s.has_stale_requests());
        if let Some(id) = stale.next().map(|s| s.id.clone()) {
            drop(stale);
            self.with(
                &id,
                now,
                clients,
                super::super::session::SessionMachine::cancel_stale_requests,
            );
            self.cancel_stale_requests(now, clients);
        }
    }

    /// Restores the sessions that had to wait for the turns of other sessions to end.
    fn recover_abandoned(&mut self, now: Instant, clients: &mut dyn ClientSinks) {
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

    /// Converts the orders of dialects to effects.
    pub(super) fn deliver(&mut self, now: Instant) {
        for agent in self.agents.iter_mut() {
            agent.deliver(now, &mut self.shared, &mut self.effects);
        }
    }

    /// Returns `true` if any session of the same agent runs a turn.
    pub(super) fn others_run(&self, id: &str) -> bool {
        let agent = self.sessions.get(id).map(|session| session.agent);
        let mut sessions = self.sessions.values();
        sessions.any(|s| Some(s.agent) == agent && s.running.is_some())
    }

    /// Ends the answered turns after the received output is read. With `all` false, and for the turns of an
    /// agent that waits for its clients, only a part of it is read: such a turn ends after `DRAIN_LIMIT`.
    pub fn drained(&mut self, all: bool, now: Instant, clients: &mut dyn ClientSinks) {
        for (id, at) in std::mem::take(&mut self.pending.ended) {
            let is_read = all && !self.waits_with_output(&id);
            if !is_read && now.saturating_duration_since(at) < DRAIN_LIMIT {
                self.pending.ended.push((id, at));
                continue;
            }
            self.catch_and_repair(now, clients, |hub, clients| {
                hub.with(
                    &id,
                    now,
                    clients,
                    super::super::session::SessionMachine::end_answered,
                );
            });
        }
        self.catch_and_repair(now, clients, |hub, clients| hub.run_deferred(now, clients));
    }

    /// Returns `true` if the agent of a session has received output that its clients have no room for.
    fn waits_with_output(&self, session: &str) -> bool {
        let mut waiting = self.waiting.iter();
        let session = self.sessions.get(session);
        session.is_some_and(|session| {
            waiting.any(|id| self.agents.with_process(*id) == Some(session.agent))
        })
    }

    pub(super) fn sessions_of(&self, agent: AgentRef) -> Vec<String> {
        let own = self.sessions.of(agent);
        own.map(|session| session.id.clone()).collect()
    }

    /// Returns the session with this id, opening it from the store if necessary.
    pub(super) fn session(&mut self, id: &str) -> Result<&mut SessionMachine, Error> {
        if !self.sessions.contains_key(id) && self.store.has(id)? {
            self.reopen(id)?;
        }
        let missing = || crate::core::error::no_session(id);
        self.sessions.get_mut(id).ok_or_else(missing)
    }

    /// Like [`Hub::with`], for a session that may be only in the store.
    pub(super) fn with_session<T>(
        &mut self,
        id: &str,
        now: Instant,
        clients: &mut dyn ClientSinks,
        act: impl FnOnce(&mut SessionMachine, &mut Cx<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.session(id)?;
        let missing = || Err(crate::core::error::no_session(id));
        self.with(id, now, clients, act).unwrap_or_else(missing)
    }
}

/// Time that an answered turn may wait for the rest of the output that was received with the answer, while
/// the client does not read.
const DRAIN_LIMIT: std::time::Duration = std::time::Duration::from_millis(50);
