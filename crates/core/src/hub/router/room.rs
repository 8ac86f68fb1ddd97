//! Room in memory and at agents: releases sessions that nothing uses, and has what remains of an unloaded session.
//!
//! Released sessions are restored on the next use; only a session that can be restored is released. Owns the subscribers
//! and the other state of unloaded sessions that their logs do not have, and the holds that keep sessions in memory.

use super::Router;
use crate::agent::AgentMachine;
use crate::client::ClientId;
use crate::client_sink::ClientSinks;
use crate::clients::Clients;
use crate::hub::cx::HubCx;
use crate::ids::AgentRef;
use crate::presence::notify_presence;
use crate::session::{NamedServers, Preamble, PromptTerms, SessionMachine, Stage};
use crate::shared::Shared;
use crate::shared_value::SharedValue;
use crate::subscribers::Subscribers;
use acpipe_model::error::{Error, ErrorKind};
use acpipe_protocol::wire::SessionOptions;
use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Instant;
use tracing::info;

/// Default maximum of live sessions if each has its own process.
const MAX_PROCESSES: usize = 64;

/// Default maximum of live sessions if they share one process.
const MAX_SESSIONS: usize = 1024;

/// Sessions that were unloaded from memory, and those that must stay.
#[derive(Debug, Default)]
pub struct Unloaded {
    /// Sessions that were unloaded from memory, if they have more than their logs.
    released: BTreeMap<Box<str>, UnloadedSession>,
    /// Sessions that stay in memory as long as their holds exist.
    held: BTreeMap<Box<str>, Weak<()>>,
}

/// Keeps a session from being unloaded.
#[derive(Debug)]
pub struct SessionHold {
    _hold: Arc<()>,
}

/// State of an unloaded session that is not in its log. There may be very many.
#[derive(Debug)]
struct UnloadedSession {
    subscribers: Subscribers,
    /// MCP servers and preamble, which few sessions have.
    rest: Option<Box<(Option<Box<NamedServers>>, Preamble)>>,
    /// Terms of the last prompt, for the clients that are attached.
    terms: Option<Box<PromptTerms>>,
    /// Options of the agent's definition with which the session was opened last.
    defined: SharedValue<SessionOptions>,
}

impl Unloaded {
    /// Keeps a session from being unloaded as long as the hold exists.
    pub fn hold(&mut self, id: &str) -> SessionHold {
        self.held.retain(|_, held| held.strong_count() > 0);
        let existing = self.held.get(id).and_then(Weak::upgrade);
        let hold = existing.unwrap_or_default();
        self.held.insert(id.into(), Arc::downgrade(&hold));
        SessionHold { _hold: hold }
    }

    fn is_held(&self, id: &str) -> bool {
        let held = self.held.get(id);
        held.is_some_and(|held| held.strong_count() > 0)
    }

    /// Puts the state of a session back that is loaded again.
    pub fn restore(&mut self, session: &mut SessionMachine) {
        if let Some(released) = self.released.remove(&*session.id) {
            released.restore(session);
        }
    }

    /// Sets whether a client receives the chunks of the unloaded sessions to which it is subscribed.
    pub fn set_chunks(&mut self, client: ClientId, chunks: bool) {
        for released in self.released.values_mut() {
            if let Some(subscriber) = released.subscribers.get_mut(client) {
                subscriber.subscription.chunks = chunks;
            }
        }
    }

    pub fn subscribers(&self, id: &str) -> Option<&Subscribers> {
        self.released.get(id).map(|released| &released.subscribers)
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
        let mcp_servers = session.restoring.take_mcp_servers();
        let preamble = std::mem::take(&mut session.preamble);
        let has_rest = mcp_servers.is_some() || !preamble.is_empty();
        let rest = has_rest.then(|| Box::new((mcp_servers, preamble)));
        let terms = session
            .talk
            .terms
            .take_terms()
            .filter(|_| subscribers.is_some());
        let defined = session.talk.settings.defined().clone();
        let has_more = rest.is_some() || subscribers.is_some() || !defined.is_empty();
        has_more.then(|| Self {
            subscribers: subscribers.unwrap_or_default(),
            rest,
            terms,
            defined,
        })
    }

    fn restore(self, session: &mut SessionMachine) {
        session.talk.output.put_subscribers(self.subscribers);
        session.talk.terms.put_terms(self.terms);
        session.talk.settings.set_defined(&self.defined);
        if let Some(rest) = self.rest {
            let (mcp_servers, preamble) = *rest;
            session.restoring.put_mcp_servers(mcp_servers);
            session.preamble = preamble;
        }
    }
}

/// Makes room for one more live session: if too many are live, releases the one that was idle the
/// longest.
pub fn make_room(
    router: &mut Router,
    id: &str,
    agent: AgentRef,
    cx: &mut HubCx<'_>,
) -> Result<(), Error> {
    let others = router.sessions.values().filter(|session| session.id != id);
    let live = others.filter(|s| !matches!(s.stage, Stage::Resting));
    let live: Vec<(Option<Instant>, String)> = live.map(|s| (s.used, s.id.clone())).collect();
    let count = live.len();
    if count < max_sessions(&router.shared, router.agents.get(agent)) {
        return Ok(());
    }
    let idle = live.into_iter().filter(|(_, other)| is_idle(router, other));
    if let Some((_, idlest)) = idle.min()
        && release(router, &idlest, cx)
    {
        return Ok(());
    }
    let message = format!(
        "cannot open the session: {count} sessions are live, the limit is reached, and none is idle; call \
             session/close for one, wait until a turn ends, or raise --max-sessions"
    );
    Err(Error::new(ErrorKind::Overloaded, message))
}

fn max_sessions(shared: &Shared, agent: &AgentMachine) -> usize {
    let own = agent.spec().is_process_per_session();
    let usual = if own { MAX_PROCESSES } else { MAX_SESSIONS };
    shared.settings.max_sessions.unwrap_or(usual)
}

/// Returns `true` if the session has no work in progress or pending.
pub fn is_idle(router: &Router, id: &str) -> bool {
    let Some(session) = router.sessions.get(id) else {
        return false;
    };
    let busy = |agent_session| {
        let connection = router.agents.get(session.agent).connection();
        connection.is_some_and(|connection| connection.is_busy(agent_session))
    };
    session.is_idle() && !session.agent_session().is_some_and(busy)
}

/// Releases a session if it can be restored: it is closed at the agent, and other programs may use it.
/// Returns `false` if it stays.
pub fn release(router: &mut Router, id: &str, cx: &mut HubCx<'_>) -> bool {
    let Some(session) = router.sessions.get(id) else {
        return false;
    };
    let live = session.agent_session().is_some();
    let connection = router.agents.get(session.agent).connection();
    let info = connection.and_then(|connection| connection.ready());
    let comes_back = info.is_some_and(|i| i.capabilities.resume || i.capabilities.load);
    // A session that is not stored is kept: with a full disk, or if it was never live.
    let stored = session.talk.output.log().identity().is_some();
    if (live && !comes_back) || !stored {
        return false;
    }
    let written = router.with(id, cx, |session, cx| session.talk.identify(cx));
    if !matches!(written, Some(Ok(()))) {
        return false;
    }
    if live {
        info!(session = id, "the session is idle and was unloaded");
        router.with(id, cx, SessionMachine::release);
    }
    unload(router, id, cx);
    true
}

/// Unloads a resting session from memory, if all of it is on the disk and no client reads it.
fn unload(router: &mut Router, id: &str, cx: &mut HubCx<'_>) {
    let is_read = router.unloaded.is_held(id);
    let is_kept = is_read || !router.store.has(id).unwrap_or(false);
    let released = router.with(id, cx, |session, cx| {
        let unloads = !is_kept
            && session.talk.output.is_written()
            && !session.talk.output.subscribers().are_lagging();
        unloads.then(|| {
            session.release_roots(cx);
            UnloadedSession::of(session)
        })
    });
    if let Some(released) = released.flatten() {
        router.sessions.remove(id);
        if let Some(released) = released {
            router.unloaded.released.insert(id.into(), released);
        }
    }
}

/// Removes a client from an unloaded session, and notifies the other clients.
pub fn detach(router: &mut Router, id: &str, client: ClientId, cx: &mut HubCx<'_>) {
    if let Some(released) = router.unloaded.released.get_mut(id) {
        released.remove_client(id, client, &router.shared.clients, cx.clients);
    }
}

/// Removes a client that has left from all unloaded sessions, and notifies the other clients.
pub fn forget_client(router: &mut Router, client: ClientId, cx: &mut HubCx<'_>) {
    for (id, released) in &mut router.unloaded.released {
        released.remove_client(id, client, &router.shared.clients, cx.clients);
    }
}
