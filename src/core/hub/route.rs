//! Routing: passes an event to one machine with its context, and performs the requests of the machine.

use super::Hub;
use super::cx::HubCx;
use crate::core::agent::{AgentCx, AgentMachine, Renewal};
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
        cx: &mut HubCx<'_>,
        act: impl FnOnce(&mut SessionMachine, &mut Cx<'_>) -> T,
    ) -> Option<T> {
        let session = self.sessions.get_mut(id)?;
        let mut requests = Vec::new();
        let mut session_cx = Cx {
            now: cx.now,
            shared: &mut self.shared,
            agent: self.agents.get_mut(session.agent).access(),
            terms: session.talk.terms.stricter(),
            hosting: &mut self.hosting,
            clients: cx.clients,
            requests: &mut requests,
            effects: &mut self.effects,
        };
        let handling = PanicGuard(session);
        let result = act(handling.0, &mut session_cx);
        let agent = handling.0.agent;
        drop(handling);
        for request in requests {
            self.request(id, agent, request, cx);
        }
        Some(result)
    }

    /// Passes an event to an agent.
    pub(super) fn with_agent<T>(
        &mut self,
        agent: AgentRef,
        cx: &mut HubCx<'_>,
        act: impl FnOnce(&mut AgentMachine, &mut AgentCx<'_>) -> T,
    ) -> T {
        let mut agent_cx = AgentCx {
            now: cx.now,
            shared: &mut self.shared,
            clients: cx.clients,
            effects: &mut self.effects,
        };
        act(self.agents.get_mut(agent), &mut agent_cx)
    }

    /// Performs a request of a session.
    fn request(&mut self, id: &str, agent: AgentRef, request: SessionRequest, cx: &mut HubCx<'_>) {
        match request {
            SessionRequest::EndTurnWhenRead => self.pending.ended.push((id.to_owned(), cx.now)),
            SessionRequest::Free => self.pending.freed.push(id.to_owned()),
            SessionRequest::NextPrompt => self.next_prompt(id, cx),
            SessionRequest::TurnCompleted => self.agents.get_mut(agent).note_turn(),
            SessionRequest::CheckClaim => self.check_claim(id, cx),
            SessionRequest::EndOtherClaims => self.end_other_claims(id, cx),
            SessionRequest::Restored(outcome) => {
                let outcome = outcome.as_ref().map(AsRef::as_ref);
                if let Some(renewal) = self.agents.get_mut(agent).renewal_mut() {
                    renewal.note_restored(id, outcome);
                }
            }
            SessionRequest::RestartAgent => {
                Renewal::begin_now(self.agents.get_mut(agent).renewal_mut());
            }
            SessionRequest::SettleHost => self.settle_host(cx),
            SessionRequest::Remove => {
                let unused = |s: &SessionMachine| s.output.log().is_empty() && !s.is_opening();
                if self.sessions.get(id).is_some_and(unused) {
                    self.remove_session(id, cx.clients);
                }
            }
        }
    }

    /// Performs the actions that had to wait for the end of an event.
    pub(super) fn run_deferred(&mut self, cx: &mut HubCx<'_>) {
        if !self.pending.freed.is_empty() {
            self.recover_abandoned(cx);
            for id in std::mem::take(&mut self.pending.freed) {
                self.next_prompt(&id, cx);
            }
        }
        self.cancel_stale_requests(cx);
        self.remove_spent(cx);
        self.continue_hosting(cx);
        self.continue_deletions(cx);
        for agent in self.agents.all() {
            self.continue_renewal(agent, cx);
        }
    }

    /// Closes the client requests of turns that have ended, however they ended.
    fn cancel_stale_requests(&mut self, cx: &mut HubCx<'_>) {
        let mut stale = self.sessions.awake().filter(|s| s.has_stale_requests());
        if let Some(id) = stale.next().map(|s| s.id.clone()) {
            drop(stale);
            self.with(
                &id,
                cx,
                super::super::session::SessionMachine::cancel_stale_requests,
            );
            self.cancel_stale_requests(cx);
        }
    }

    /// Restores the sessions that had to wait for the turns of other sessions to end.
    fn recover_abandoned(&mut self, cx: &mut HubCx<'_>) {
        let sessions = self.sessions.values();
        let overdue = sessions.filter(|s| s.prompting.is_abandoned_overdue(&s.talk));
        let overdue: Vec<String> = overdue.map(|session| session.id.clone()).collect();
        for id in overdue {
            let others_run = self.others_run(&id);
            self.with(&id, cx, |session, cx| {
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
        sessions.any(|s| Some(s.agent) == agent && s.turns.is_prompted())
    }

    /// Ends the answered turns after the received output is read. With `all` false, and for the turns of an
    /// agent that waits for its clients, only a part of it is read: such a turn ends after `DRAIN_LIMIT`.
    pub fn drained(&mut self, all: bool, cx: &mut HubCx<'_>) {
        for (id, at) in std::mem::take(&mut self.pending.ended) {
            let is_read = all && !self.waits_with_output(&id);
            if !is_read && cx.now.saturating_duration_since(at) < DRAIN_LIMIT {
                self.pending.ended.push((id, at));
                continue;
            }
            self.catch_and_repair(cx, |hub, cx| {
                hub.with(&id, cx, super::super::session::SessionMachine::end_answered);
            });
        }
        self.catch_and_repair(cx, Self::run_deferred);
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
        cx: &mut HubCx<'_>,
        act: impl FnOnce(&mut SessionMachine, &mut Cx<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.session(id)?;
        let missing = || Err(crate::core::error::no_session(id));
        self.with(id, cx, act).unwrap_or_else(missing)
    }
}

/// Time that an answered turn may wait for the rest of the output that was received with the answer, while
/// the client does not read.
const DRAIN_LIMIT: std::time::Duration = std::time::Duration::from_millis(50);
