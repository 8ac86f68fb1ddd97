//! The router: owns the machines (agents, sessions, the host of files and terminals) and what all of them use: the settings
//! of the program, clients and ids (`Shared`), the store, the list of effects, and the actions that wait for the end of an event.
//!
//! It passes an event to one machine and performs the requests that the machine returns. It has no rule about a turn,
//! a restore or a restart, which the machines have, and does not know what clients or agents send: it knows neither
//! commands nor the lines and events of agents, nor the calls that read the history.

mod agent_questions;
pub(super) mod claims;
pub(super) mod hosting;
pub(super) mod next_prompt;
pub(super) mod panics;
pub(super) mod room;
pub(super) mod storage;
mod unfinished_turns;

use super::agents::Agents;
use super::cx::HubCx;
use crate::agent::{AgentCx, AgentMachine, Renewal};
use crate::client_sink::ClientSinks;
use crate::config::Settings;
use crate::cx::{Cx, SessionRequest};
use crate::effect::Effect;
use crate::hosting::Hosting;
use crate::ids::AgentRef;
use crate::session::{SessionMachine, has_stale_requests};
use crate::sessions::Sessions;
use crate::shared::Shared;
use crate::store::Store;
use room::Unloaded;
use std::time::Instant;

/// Owner of the machines, which passes events to them.
pub(super) struct Router {
    agents: Agents,
    sessions: Sessions,
    unloaded: Unloaded,
    hosting: Hosting,
    shared: Shared,
    store: Box<dyn Store>,
    pending: DeferredActions,
    effects: Vec<Effect>,
}

/// Actions to perform after the current event.
#[derive(Debug, Default)]
struct DeferredActions {
    /// Sessions whose turns were answered, and when. The turns end when all received output is read.
    ended: Vec<(String, Instant)>,
    /// Sessions that can take their next prompt.
    freed: Vec<String>,
}

/// Guard that marks a session if a panic unwinds while it handles an event.
struct PanicGuard<'a>(&'a mut SessionMachine);

impl Drop for PanicGuard<'_> {
    fn drop(&mut self) {
        self.0.was_handling |= std::thread::panicking();
    }
}

impl Router {
    /// Creates the machines of the configured agents.
    pub(super) fn new(settings: Settings, store: Box<dyn Store>) -> Self {
        let mut agents = Agents::default();
        agents.add(settings.default_agent.clone());
        for definition in &settings.agents {
            agents.add(definition.clone());
        }
        Self {
            agents,
            sessions: Sessions::default(),
            unloaded: Unloaded::default(),
            hosting: Hosting::default(),
            shared: Shared::new(settings),
            store,
            pending: DeferredActions::default(),
            effects: Vec::new(),
        }
    }

    #[inline]
    pub(super) fn agents(&self) -> &Agents {
        &self.agents
    }

    #[inline]
    pub(super) fn agents_mut(&mut self) -> &mut Agents {
        &mut self.agents
    }

    #[inline]
    pub(super) fn sessions(&self) -> &Sessions {
        &self.sessions
    }

    #[inline]
    pub(super) fn sessions_mut(&mut self) -> &mut Sessions {
        &mut self.sessions
    }

    pub(super) fn unloaded(&self) -> &Unloaded {
        &self.unloaded
    }

    #[inline]
    pub(super) fn shared(&self) -> &Shared {
        &self.shared
    }

    #[inline]
    pub(super) fn shared_mut(&mut self) -> &mut Shared {
        &mut self.shared
    }

    pub(super) fn agents_and_shared(&mut self) -> (&mut Agents, &Shared) {
        (&mut self.agents, &self.shared)
    }

    pub(super) fn store(&self) -> &dyn Store {
        &*self.store
    }

    pub(super) fn store_mut(&mut self) -> &mut dyn Store {
        &mut *self.store
    }

    pub(super) fn hosting(&self) -> &Hosting {
        &self.hosting
    }

    pub(super) fn hosting_mut(&mut self) -> &mut Hosting {
        &mut self.hosting
    }

    pub(super) fn unloaded_mut(&mut self) -> &mut Unloaded {
        &mut self.unloaded
    }

    pub(super) fn push(&mut self, effect: Effect) {
        self.effects.push(effect);
    }

    /// Takes the effects since the last call, in order, with the orders of dialects.
    pub(super) fn take_effects(&mut self, now: Instant) -> Vec<Effect> {
        for agent in self.agents.iter_mut() {
            agent.deliver(now, &mut self.shared, &mut self.effects);
        }
        std::mem::take(&mut self.effects)
    }

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

    fn request(&mut self, id: &str, agent: AgentRef, request: SessionRequest, cx: &mut HubCx<'_>) {
        match request {
            SessionRequest::EndTurnWhenRead => self.pending.ended.push((id.to_owned(), cx.now)),
            SessionRequest::Free => self.pending.freed.push(id.to_owned()),
            SessionRequest::NextPrompt => next_prompt::next_prompt(self, id, cx),
            SessionRequest::TurnCompleted => self.agents.get_mut(agent).note_turn(),
            SessionRequest::CheckClaim => claims::check(self, id, cx),
            SessionRequest::EndOtherClaims => claims::end_others(self, id, cx),
            SessionRequest::Restored(outcome) => {
                let outcome = outcome.as_ref().map(AsRef::as_ref);
                if let Some(renewal) = self.agents.get_mut(agent).renewal_mut() {
                    renewal.note_restored(id, outcome);
                }
            }
            SessionRequest::RestartAgent => {
                Renewal::begin_now(self.agents.get_mut(agent).renewal_mut());
            }
            SessionRequest::JudgeAgentQuestions => {
                agent_questions::judge_again(self, id, agent, cx);
            }
            SessionRequest::SettleHost => hosting::settle(self, cx),
            SessionRequest::Remove => {
                let unused = |s: &SessionMachine| s.output.log().is_empty() && !s.is_opening();
                if self.sessions.get(id).is_some_and(unused) {
                    self.remove_session(id, cx.clients);
                }
            }
        }
    }

    /// Removes a session from memory.
    pub(super) fn remove_session(&mut self, id: &str, clients: &mut dyn ClientSinks) {
        if let Some(session) = self.sessions.get_mut(id) {
            session.talk.output.catch_up_at_end(clients);
            session.talk.output.count_chunks(&mut self.shared.counters);
            self.sessions.remove(id);
        }
    }

    /// Returns the session with this agent session id.
    #[inline]
    pub(super) fn routed(
        &mut self,
        agent: AgentRef,
        agent_session: &str,
    ) -> Option<&mut SessionMachine> {
        let connection = self.agents.get(agent).connection()?;
        let id = connection.directory.session(agent_session)?;
        self.sessions.get_mut(id)
    }

    /// Returns the session with this agent session id, which may be that of a subagent. Also returns `true` if it is.
    #[inline]
    pub(super) fn routed_with_subagents(
        &mut self,
        agent: AgentRef,
        agent_session: &str,
    ) -> Option<(&mut SessionMachine, bool)> {
        let directory = &self.agents.get(agent).connection()?.directory;
        let own = directory.session(agent_session);
        let id = own.or_else(|| directory.owner(agent_session))?;
        Some((self.sessions.get_mut(id)?, own.is_none()))
    }

    pub(super) fn with_routed<T>(
        &mut self,
        agent: AgentRef,
        agent_session: &str,
        cx: &mut HubCx<'_>,
        act: impl FnOnce(&mut SessionMachine, &mut Cx<'_>) -> T,
    ) -> Option<T> {
        let connection = self.agents.get(agent).connection()?;
        let id = connection.directory.session(agent_session)?.clone();
        self.with(&id, cx, act)
    }

    /// Returns the acpipe ids of the session and the subagent with this agent session id.
    pub(super) fn route(
        &self,
        agent: AgentRef,
        agent_session: &str,
    ) -> Option<(String, Option<String>)> {
        let connection = self.agents.get(agent).connection()?;
        let route = connection.directory.route(agent_session)?;
        Some((route.session, route.subagent))
    }

    /// Has the sessions of an agent that wait for it continue after the current event.
    pub(super) fn free_waiting(&mut self, agent: AgentRef) {
        let waiting = self.sessions.of(agent);
        let waiting =
            waiting.filter(|s| !s.queue.is_empty() || s.prompting.waits_for_agent(&s.talk));
        let waiting = waiting.map(|session| session.id.clone());
        self.pending.freed.extend(waiting);
    }

    /// Ends the answered turns whose received output is read, as `is_read` says of an agent. Any other turn ends after
    /// `DRAIN_LIMIT`.
    pub(super) fn end_answered(
        &mut self,
        is_read: impl Fn(&Agents, Option<AgentRef>) -> bool,
        cx: &mut HubCx<'_>,
    ) {
        for (id, at) in std::mem::take(&mut self.pending.ended) {
            let agent = self.sessions.get(&id).map(|session| session.agent);
            let is_read = is_read(&self.agents, agent);
            if !is_read && cx.now.saturating_duration_since(at) < DRAIN_LIMIT {
                self.pending.ended.push((id, at));
                continue;
            }
            panics::catch_and_repair(self, cx, |router, cx| {
                router.with(&id, cx, SessionMachine::end_answered);
            });
        }
    }

    /// Continues the sessions that had to wait for the end of an event.
    pub(super) fn continue_sessions(&mut self, cx: &mut HubCx<'_>) {
        if !self.pending.freed.is_empty() {
            self.recover_abandoned(cx);
            for id in std::mem::take(&mut self.pending.freed) {
                next_prompt::next_prompt(self, &id, cx);
            }
        }
        self.cancel_stale_requests(cx);
    }

    /// Closes the client requests of turns that have ended, however they ended.
    fn cancel_stale_requests(&mut self, cx: &mut HubCx<'_>) {
        let mut stale = self.sessions.awake().filter(|s| has_stale_requests(s));
        if let Some(id) = stale.next().map(|s| s.id.clone()) {
            drop(stale);
            self.with(&id, cx, SessionMachine::cancel_stale_requests);
            self.cancel_stale_requests(cx);
        }
    }

    /// Restores the sessions that had to wait for the turns of other sessions to end.
    fn recover_abandoned(&mut self, cx: &mut HubCx<'_>) {
        let sessions = self.sessions.values();
        let overdue = sessions.filter(|s| s.prompting.is_abandoned_overdue(&s.talk));
        let overdue: Vec<String> = overdue.map(|session| session.id.clone()).collect();
        for id in overdue {
            let others_run = self.sessions.others_run(&id);
            self.with(&id, cx, |session, cx| {
                session.recover_abandoned(others_run, cx);
            });
        }
    }
}

/// Time that an answered turn may wait for the rest of the output that was received with the answer, while
/// the client does not read.
const DRAIN_LIMIT: std::time::Duration = std::time::Duration::from_millis(50);
