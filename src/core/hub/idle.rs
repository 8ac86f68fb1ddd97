//! Idle timeout: releases unused sessions and stops agents without live sessions.
//!
//! Sessions are released after the timeout, or when too many are live. Released sessions and stopped agents
//! are restored on the next use; only a session that can be restored is released.

use super::Hub;
use super::cx::HubCx;
use crate::core::agent::{Connection, Renewal};
use crate::core::client::{ClientId, Command};
use crate::core::client_sink::ClientSinks;
use crate::core::clients::Clients;
use crate::core::error::{Error, ErrorKind};
use crate::core::ids::AgentRef;
use crate::core::presence::notify_presence;
use crate::core::session::{Preamble, PromptTerms, SessionMachine, Stage};
use crate::core::subscribers::Subscribers;
use crate::proto::wire::McpServer;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use tracing::info;

/// Default maximum of live sessions if each has its own process.
const MAX_PROCESSES: usize = 64;

/// Default maximum of live sessions if they share one process.
const MAX_SESSIONS: usize = 1024;

/// State of the idle timeout.
#[derive(Debug, Default)]
pub(super) struct IdleState {
    /// Time of the next check.
    check: Option<Instant>,
    /// Sessions that were unloaded from memory, if they have more than their logs.
    released: BTreeMap<Box<str>, UnloadedSession>,
}

/// State of an unloaded session that is not in its log. There may be very many.
#[derive(Debug)]
pub(super) struct UnloadedSession {
    subscribers: Subscribers,
    /// MCP servers and preamble, which few sessions have.
    rest: Option<Box<(Vec<McpServer>, Preamble)>>,
    /// Terms of the last prompt, for the clients that are attached.
    terms: Option<Box<PromptTerms>>,
}

impl IdleState {
    /// Takes the state of a session that is loaded again.
    pub(super) fn take(&mut self, id: &str) -> Option<UnloadedSession> {
        self.released.remove(id)
    }

    /// Sets whether a client receives the chunks of the unloaded sessions to which it is subscribed.
    pub(super) fn set_chunks(&mut self, client: ClientId, chunks: bool) {
        for released in self.released.values_mut() {
            if let Some(subscriber) = released.subscribers.get_mut(client) {
                subscriber.subscription.chunks = chunks;
            }
        }
    }

    /// Removes a client that has left, and notifies the other clients.
    pub(super) fn forget_client(
        &mut self,
        client: ClientId,
        left: &Clients,
        clients: &mut dyn ClientSinks,
    ) {
        for (id, released) in &mut self.released {
            released.remove_client(id, client, left, clients);
        }
    }

    /// Removes a client from an unloaded session, and notifies the other clients.
    pub(super) fn detach(
        &mut self,
        id: &str,
        client: ClientId,
        known: &Clients,
        clients: &mut dyn ClientSinks,
    ) {
        if let Some(released) = self.released.get_mut(id) {
            released.remove_client(id, client, known, clients);
        }
    }

    /// Returns the clients of an unloaded session.
    pub(super) fn subscribers(&self, id: &str) -> Option<&Subscribers> {
        self.released.get(id).map(|released| &released.subscribers)
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.check
    }
}

impl UnloadedSession {
    fn remove_client(
        &mut self,
        id: &str,
        client: ClientId,
        known: &Clients,
        clients: &mut dyn ClientSinks,
    ) {
        if self.subscribers.has(client) {
            self.subscribers.remove(client);
            // No client of an unloaded session lags.
            notify_presence((id, 0), &mut self.subscribers, known, None, clients);
        }
    }

    /// Takes the state out of a session; `None` if the session has only what is in its log.
    fn of(session: &mut SessionMachine) -> Option<Self> {
        let subscribers = session.talk.output.take_subscribers();
        let mcp_servers = std::mem::take(&mut session.mcp_servers);
        let preamble = std::mem::take(&mut session.preamble);
        let has_rest = !mcp_servers.is_empty() || !preamble.is_empty();
        let rest = has_rest.then(|| Box::new((mcp_servers, preamble)));
        let terms = session
            .talk
            .terms
            .take_terms()
            .filter(|_| subscribers.is_some());
        (rest.is_some() || subscribers.is_some()).then(|| Self {
            subscribers: subscribers.unwrap_or_default(),
            rest,
            terms,
        })
    }

    /// Puts the state back into the session.
    pub(super) fn restore(self, session: &mut SessionMachine) {
        session.talk.output.put_subscribers(self.subscribers);
        session.talk.terms.put_terms(self.terms);
        if let Some(rest) = self.rest {
            (session.mcp_servers, session.preamble) = *rest;
        }
    }
}

impl Hub {
    /// Notes a command as use: schedules a check, and starts an agent again that is stopping because it was
    /// idle.
    pub(super) fn note_use(&mut self, command: &Command, cx: &HubCx<'_>) {
        if let Some(limit) = self.shared.settings.idle_after {
            self.idle.check.get_or_insert(cx.now + limit);
        }
        if command.method().needs_agent {
            // The agent that the command concerns is not known yet. Agents that stop because they are idle
            // have no sessions.
            for agent in self.agents.iter_mut() {
                if agent
                    .connection()
                    .is_some_and(Connection::is_stopping_by_itself)
                {
                    Renewal::begin_now(agent.renewal_mut());
                }
            }
        }
    }

    /// Releases everything that was idle for long enough, and schedules the next check.
    pub(super) fn check_idle(&mut self, cx: &mut HubCx<'_>) {
        let Some(limit) = self.shared.settings.idle_after else {
            return;
        };
        self.idle.check = Some(cx.now + limit);
        for agent in self.agents.all() {
            if self.agents.get(agent).renewal().is_some() {
                continue;
            }
            for id in self.sessions_of(agent) {
                self.check_idle_session(&id, limit, cx);
            }
            self.stop_idle_agent(agent, limit, cx);
        }
        let used = self.sessions.values().filter_map(|session| session.used);
        let used = used.chain(
            self.agents
                .iter()
                .filter_map(|agent| Some(agent.connection()?.used)),
        );
        // A session or agent that stays although its timeout has passed does not cause a check of its own.
        let next = used
            .map(|used| used + limit)
            .filter(|at| *at > cx.now)
            .min();
        let is_connected = self.agents.iter().any(|agent| agent.connection().is_some());
        let nothing = !is_connected && self.sessions.is_empty();
        self.idle.check = Some(next.unwrap_or(cx.now + limit)).filter(|_| !nothing);
    }

    fn check_idle_session(&mut self, id: &str, limit: Duration, cx: &mut HubCx<'_>) {
        let idle = self.is_idle(id);
        let Some(session) = self.sessions.get_mut(id) else {
            return;
        };
        let used = *session.used.get_or_insert(cx.now);
        if !idle {
            session.used = Some(cx.now);
        } else if used + limit <= cx.now {
            self.release(id, cx);
        }
    }

    /// Makes room for one more live session: if too many are live, releases the one that was idle the
    /// longest.
    pub(super) fn make_room(
        &mut self,
        id: &str,
        agent: AgentRef,
        cx: &mut HubCx<'_>,
    ) -> Result<(), Error> {
        let others = self.sessions.values().filter(|session| session.id != id);
        let live = others.filter(|s| !matches!(s.stage, Stage::Resting));
        let live: Vec<(Option<Instant>, String)> = live.map(|s| (s.used, s.id.clone())).collect();
        let count = live.len();
        if count < self.max_sessions(agent) {
            return Ok(());
        }
        let idle = live.into_iter().filter(|(_, other)| self.is_idle(other));
        if let Some((_, idlest)) = idle.min()
            && self.release(&idlest, cx)
        {
            return Ok(());
        }
        let message = format!(
            "cannot open the session: {count} sessions are live, the limit is reached, and none is idle; call \
                 session/close for one, wait until a turn ends, or raise --max-sessions"
        );
        Err(Error::new(ErrorKind::Overloaded, message))
    }

    fn max_sessions(&self, agent: AgentRef) -> usize {
        let own = self.agents.get(agent).spec().is_process_per_session();
        let usual = if own { MAX_PROCESSES } else { MAX_SESSIONS };
        self.shared.settings.max_sessions.unwrap_or(usual)
    }

    /// Returns `true` if the session has no work in progress or pending.
    fn is_idle(&self, id: &str) -> bool {
        let Some(session) = self.sessions.get(id) else {
            return false;
        };
        let busy = |agent_session| {
            let connection = self.agents.get(session.agent).connection();
            connection.is_some_and(|connection| connection.is_busy(agent_session))
        };
        session.is_idle() && !session.agent_session().is_some_and(busy)
    }

    /// Releases a session if it can be restored: it is closed at the agent, and other programs may use it.
    /// Returns `false` if it stays.
    fn release(&mut self, id: &str, cx: &mut HubCx<'_>) -> bool {
        let Some(session) = self.sessions.get(id) else {
            return false;
        };
        let live = session.agent_session().is_some();
        let connection = self.agents.get(session.agent).connection();
        let info = connection.and_then(|connection| connection.ready());
        let comes_back = info.is_some_and(|i| i.capabilities.resume || i.capabilities.load);
        // A session that is not stored is kept: with a full disk, or if it was never live.
        let stored = session.talk.output.log().identity().is_some();
        if (live && !comes_back) || !stored {
            return false;
        }
        let written = self.with(id, cx, |session, cx| session.talk.identify(cx));
        if !matches!(written, Some(Ok(()))) {
            return false;
        }
        if live {
            info!(session = id, "the session is idle and was unloaded");
            self.with(id, cx, super::super::session::SessionMachine::release);
        }
        self.unload(id, cx);
        true
    }

    /// Unloads a resting session from memory, if all of it is on the disk and no client reads it.
    fn unload(&mut self, id: &str, cx: &mut HubCx<'_>) {
        let is_read = self.reads.is_replayed(id);
        let is_kept = is_read || !self.store.has(id).unwrap_or(false);
        let released = self.with(id, cx, |session, cx| {
            let unloads = !is_kept
                && session.talk.output.is_written()
                && !session.talk.output.subscribers().are_lagging();
            unloads.then(|| {
                session.release_roots(cx);
                UnloadedSession::of(session)
            })
        });
        if let Some(released) = released.flatten() {
            self.sessions.remove(id);
            if let Some(released) = released {
                self.idle.released.insert(id.into(), released);
            }
        }
    }

    /// Stops an agent that has had no session for long enough. The next call that needs it starts it again.
    fn stop_idle_agent(&mut self, agent: AgentRef, limit: Duration, cx: &mut HubCx<'_>) {
        let resting = |s: &SessionMachine| matches!(s.stage, Stage::Resting);
        let is_unused = self.sessions.of(agent).all(resting);
        let is_listed = self.listings.iter().any(|listing| listing.agent == agent);
        let connection = self.agents.get_mut(agent).connection_mut();
        if let Some(connection) = connection.filter(|_| !is_unused || is_listed) {
            connection.used = cx.now;
        }
        let is_over = self.with_agent(agent, cx, |agent, cx| agent.stop_idle(limit, cx));
        if is_over {
            self.agent_stopped(agent, cx);
        }
    }
}
