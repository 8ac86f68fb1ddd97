//! What nobody uses is let go: sessions after a while, or where too many are live, and an agent that has none left.
//! They come back by the ladder when somebody needs them; so only what can come back is let go.

use super::restart::Crashed;
use super::{AgentSpec, Bridge, Phase};
use crate::core::client::{Command, Outlet};
use crate::core::error::{Error, ErrorKind};
use crate::core::session::{Session, Stage, View};
use crate::proto::wire::{McpServer, Protocol};
use std::time::{Duration, Instant};
use tracing::info;

/// How many sessions are live at most where each has a process of its own.
const MAX_PROCESSES: usize = 64;

/// How many sessions are live at most in one process.
const MAX_SESSIONS: usize = 1024;

/// What a session that was let go had beside its log.
#[derive(Debug)]
pub(super) struct Released {
    mcp_servers: Vec<McpServer>,
    pub view: View,
    reinject: Option<String>,
}

impl Bridge {
    /// Somebody asks for something: there may be something to let go later, and an agent that is let go just now is
    /// needed again.
    pub(super) fn note_use(&mut self, command: &Command, now: Instant) {
        if let Some(limit) = self.settings.idle_after {
            self.idle_check.get_or_insert(now + limit);
        }
        if let Some(Phase::Stopping { why: Some(_), .. }) = self.agent.as_ref().map(|a| &a.phase)
            && command.method().needs_agent
        {
            self.start_anew();
        }
    }

    /// Lets go what was not used for long enough.
    pub(super) fn tick_idle(&mut self, now: Instant, outlet: &mut impl Outlet) {
        let Some(limit) = self.settings.idle_after else {
            return;
        };
        if self.idle_check.is_none_or(|at| at > now) {
            return;
        }
        self.idle_check = Some(now + limit);
        if self.renewal.is_some() {
            return;
        }
        let ids: Vec<String> = self.sessions.keys().cloned().collect();
        for id in ids {
            let idle = self.is_idle(&id);
            let Some(session) = self.sessions.get_mut(&id) else {
                continue;
            };
            let used = *session.used.get_or_insert(now);
            if !idle {
                session.used = Some(now);
            } else if used + limit <= now {
                self.release(&id, now, outlet);
            }
        }
        self.rest_agent(limit, now, outlet);
        let used = self.sessions.values().filter_map(|session| session.used);
        let used = used.chain(self.agent.as_ref().map(|agent| agent.used));
        // What stays though it was not used for long is looked at again as late as the others.
        let next = used.map(|used| used + limit).filter(|at| *at > now).min();
        let nothing = self.agent.is_none() && self.sessions.keys().next().is_none();
        self.idle_check = Some(next.unwrap_or(now + limit)).filter(|_| !nothing);
    }

    /// Sees to it that one more session may be live: where too many are, that which was not used for longest is
    /// let go.
    pub(super) fn make_room(
        &mut self,
        id: &str,
        now: Instant,
        outlet: &mut impl Outlet,
    ) -> Result<(), Error> {
        let others = self.sessions.values().filter(|session| session.id != id);
        let live = others.filter(|s| !matches!(s.stage, Stage::Resting));
        let live: Vec<(Option<Instant>, String)> = live.map(|s| (s.used, s.id.clone())).collect();
        let count = live.len();
        if count < self.max_sessions() {
            return Ok(());
        }
        let idle = live.into_iter().filter(|(_, other)| self.is_idle(other));
        if let Some((_, idlest)) = idle.min()
            && self.release(&idlest, now, outlet)
        {
            return Ok(());
        }
        let message = format!(
            "{count} sessions are live, as many as may be, and none of them can be let go: call session/close for \
             one, wait for the end of a turn, or raise --max-sessions"
        );
        Err(Error::new(ErrorKind::Overloaded, message))
    }

    fn max_sessions(&self) -> usize {
        let agent = self.agent.as_ref().map(|agent| &agent.spec);
        let crashed = self.crashed.as_ref().map(|crashed| &crashed.spec);
        let spec: &AgentSpec = agent.or(crashed).unwrap_or(&self.settings.default_agent);
        let own = spec.child_per_session || spec.protocol == Protocol::Claude;
        let usual = if own { MAX_PROCESSES } else { MAX_SESSIONS };
        self.settings.max_sessions.unwrap_or(usual)
    }

    /// Whether nothing goes on in a session, and nothing is to come.
    fn is_idle(&self, id: &str) -> bool {
        let Some(session) = self.sessions.get(id) else {
            return false;
        };
        let busy = |agent_session| {
            let agent = self.agent.as_ref();
            agent.is_some_and(|agent| agent.dialect.is_busy(agent_session))
        };
        session.is_idle() && !session.agent_session().is_some_and(busy)
    }

    /// Lets a session go, if it can come back: the agent may forget it, and other programs may have it.
    fn release(&mut self, id: &str, now: Instant, outlet: &mut impl Outlet) -> bool {
        let Some(session) = self.sessions.get(id) else {
            return false;
        };
        let live = session.agent_session().is_some();
        let comes_back = match self.agent.as_ref().map(|agent| &agent.phase) {
            Some(Phase::Ready(info)) => info.capabilities.resume || info.capabilities.load,
            _ => false,
        };
        // By what is stored: a full disk keeps it here, and one that was never live is not found.
        let stored = session.log.identity().is_some();
        if (live && !comes_back) || !stored || self.identify(id, now, outlet).is_err() {
            return false;
        }
        if live {
            info!(
                session = id,
                "the session is let go until somebody needs it"
            );
            self.let_go(id, now);
            self.release_roots(id);
            self.routes.retain(|_, routed| routed != id);
            if let Some(session) = self.sessions.get_mut(id) {
                session.rest();
            }
            if let Some(agent) = &mut self.agent {
                agent.used = now;
            }
        }
        self.unload(id);
        true
    }

    /// Keeps nothing in memory of a session that rests, where all of it is on the disk and nobody reads it.
    fn unload(&mut self, id: &str) {
        let kept = self.is_retold(id) || !self.store.has(id).unwrap_or(false);
        let session = self.sessions.get_mut(id);
        let Some(session) = session.filter(|session| !kept && session.is_written()) else {
            return;
        };
        let released = Released {
            mcp_servers: std::mem::take(&mut session.mcp_servers),
            view: session.view,
            reinject: session.reinject.take(),
        };
        self.sessions.remove(id);
        self.release_roots(id);
        self.released.insert(id.to_owned(), released);
    }

    /// Gives a session that is opened from the store what it had before it was let go.
    pub(super) fn take_back(&mut self, id: &str) {
        let released = self.released.remove(id);
        if let (Some(released), Some(session)) = (released, self.sessions.get_mut(id)) {
            session.mcp_servers = released.mcp_servers;
            session.view = released.view;
            session.reinject = released.reinject;
        }
    }

    /// Stops an agent that has had no session for long enough; whoever needs it starts it again.
    fn rest_agent(&mut self, limit: Duration, now: Instant, outlet: &mut impl Outlet) {
        let resting = |s: &Session| matches!(s.stage, Stage::Resting);
        let needed = !self.sessions.values().all(resting);
        let Some(agent) = self.agent.as_mut() else {
            return;
        };
        if needed || !self.listings.is_empty() || !self.signing.is_empty() {
            agent.used = now;
        }
        let ready = matches!(agent.phase, Phase::Ready(_));
        if !ready || agent.processes.is_empty() || agent.used + limit > now {
            return;
        }
        self.crashed = Some(Crashed {
            spec: agent.spec.clone(),
            at: now,
        });
        let why = "nobody used it for a while: it is started again when somebody does";
        self.begin_stopping(None, Some(why.to_owned()), now, outlet);
    }
}

impl Session {
    /// Whether all that was said in it is on the disk.
    fn is_written(&self) -> bool {
        self.log.is_written() && !self.has_unsent()
    }

    /// Whether nobody waits for anything in it.
    fn is_idle(&self) -> bool {
        self.running.is_none()
            && self.queue.is_empty()
            && self.late_words.is_empty()
            && self.unprompted.is_none()
            && self.abandoned.is_none()
            && self.settings.is_empty()
            && !matches!(self.stage, Stage::Opening { .. })
    }
}
