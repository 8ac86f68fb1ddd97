//! The sessions of an agent by the agent's ids: which session of the client each is, and what came for ids that are not
//! open yet or not closed yet.
//!
//! Some agents fail a `session/load` or `session/resume` that comes before they have answered `session/close` of the same
//! session. Others cannot close a session, and do not load one that is still open in their process. A session with a
//! process of its own is closed when the process has ended: until then both would write what the agent stores of it.

use crate::core::dialect::Child;
use crate::core::event::{Original, Update};
use crate::core::setting::merge_state;
use crate::proto::json::Members;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::Instant;
use tracing::warn;

/// How many sessions an agent may send updates of before it answers the calls for them.
const EARLY_SESSIONS: usize = 64;

/// How many subagents of an agent are known by their session ids.
const SUBAGENTS: usize = 4096;

/// How many sessions are remembered that the agent could not close.
const MOST_LEFT_OPEN: usize = 64;

/// The sessions of an agent, by the agent's ids.
#[derive(Debug, Default)]
pub struct Directory {
    /// The agent's ids → the client's. Looked up with every update: a tree, since there are few.
    routes: BTreeMap<String, String>,
    /// The agent's ids of subagents → the client's ids of the sessions that they work for.
    subagents: HashMap<String, String>,
    /// State of sessions that the agent sent before it answered the call for them.
    early: HashMap<String, Early>,
    /// When an update of an unknown session last came.
    early_at: Option<Instant>,
    /// Updates of sessions that neither a client opened nor the agent announced.
    unclaimed: u64,
    /// Sessions that the agent is closing.
    closing: BTreeMap<String, Closing>,
    /// Sessions that are still open in the agent's process, though they were released.
    left_open: VecDeque<LeftOpen>,
}

/// State that an agent sent of a session that is not open yet.
#[derive(Debug, Clone, Default)]
pub struct Early {
    pub state: Map<String, Value>,
    /// Cost of the session so far.
    pub cost: Option<f64>,
}

/// Where updates of an agent's session go: to the session itself, or to a subagent of it.
#[derive(Debug, Clone)]
pub struct Route {
    /// The client's id of the session.
    pub session: String,
    /// The agent's id of the subagent's session.
    pub subagent: Option<String>,
}

/// A session that is still open in the agent's process, since the agent offers no `session/close`.
#[derive(Debug)]
pub struct LeftOpen {
    pub agent_session: String,
    /// Its modes, models, options, commands and title when it was released.
    pub state: Map<String, Value>,
}

/// A session that the agent is closing.
#[derive(Debug)]
struct Closing {
    /// Until when its end is awaited.
    until: Option<Instant>,
    /// Its own process, whose end closes it; `None` where the answer to `session/close` does.
    child: Option<Child>,
}

impl Directory {
    /// The client's id of an agent's session.
    #[must_use]
    pub fn session(&self, agent_session: &str) -> Option<&String> {
        self.routes.get(agent_session)
    }

    /// The client's id of an agent's session, or of the session that a subagent works for.
    #[must_use]
    pub fn owner(&self, agent_session: &str) -> Option<&String> {
        let routed = self.routes.get(agent_session);
        routed.or_else(|| self.subagents.get(agent_session))
    }

    /// Where updates of an agent's session go. Subagents have sessions that no client opened, but the agent announced.
    #[must_use]
    pub fn route(&self, agent_session: &str) -> Option<Route> {
        if let Some(session) = self.routes.get(agent_session) {
            return Some(Route {
                session: session.clone(),
                subagent: None,
            });
        }
        Some(Route {
            session: self.subagents.get(agent_session)?.clone(),
            subagent: Some(agent_session.to_owned()),
        })
    }

    /// Whether a session of the client has an id of the agent.
    #[must_use]
    pub fn has_session(&self, session: &str) -> bool {
        self.routes.values().any(|routed| routed == session)
    }

    /// Routes an agent's id to a session.
    pub fn add(&mut self, agent_session: String, session: String) {
        self.routes.insert(agent_session, session);
    }

    /// Removes all of a session's ids: what still comes under them belongs to no session.
    pub fn remove(&mut self, session: &str) {
        self.routes.retain(|_, routed| routed != session);
    }

    /// Routes a session by another id of the agent; returns the session.
    pub fn rename(&mut self, old: &str, to: String) -> Option<String> {
        let session = self.routes.remove(old)?;
        self.routes.insert(to, session.clone());
        Some(session)
    }

    /// Remembers whose subagent an update announces.
    pub fn note_subagent(&mut self, session: &str, update: &Update<'_>) {
        if let Update::Subagent { id } = update
            && self.subagents.len() < SUBAGENTS
            && !self.routes.contains_key(id.as_ref())
        {
            self.subagents
                .entry(id.clone().into_owned())
                .or_insert_with(|| session.to_owned());
        }
    }

    /// Keeps the state of a session that may be about to be opened; any other update belongs to no session.
    pub fn note_early(
        &mut self,
        agent_session: &str,
        update: &Update<'_>,
        original: Original<'_>,
        now: Instant,
    ) {
        self.early_at = Some(now);
        if let Some((news, cost)) = state_news(update, original)
            && (self.early.len() < EARLY_SESSIONS || self.early.contains_key(agent_session))
        {
            let early = self.early.entry(agent_session.to_owned()).or_default();
            merge_state(&mut early.state, &news);
            early.cost = cost.or(early.cost);
            return;
        }
        self.unclaimed += 1;
        if self.unclaimed.is_power_of_two() {
            let count = self.unclaimed;
            warn!(
                agent_session,
                count, "update of a session that was not opened"
            );
        }
    }

    /// Takes the state that came before the session was open.
    pub fn take_early(&mut self, agent_session: &str) -> Early {
        self.early.remove(agent_session).unwrap_or_default()
    }

    /// When an update of an unknown session last came.
    #[must_use]
    pub fn early_at(&self) -> Option<Instant> {
        self.early_at
    }

    /// Notes that a session is being closed: to open it again waits for that, `until` at most.
    pub fn note_closing(
        &mut self,
        agent_session: &str,
        child: Option<Child>,
        now: Instant,
        until: Option<Instant>,
    ) {
        self.closing
            .retain(|_, closing| closing.until.is_some_and(|at| at > now));
        let closing = Closing { until, child };
        self.closing.insert(agent_session.to_owned(), closing);
    }

    /// Until when a session is being closed, if it is.
    #[must_use]
    pub fn closing_until(&self, agent_session: &str, now: Instant) -> Option<Instant> {
        let until = self.closing.get(agent_session)?.until;
        until.filter(|at| *at > now)
    }

    /// The session that is closed by the end of this process.
    #[must_use]
    pub fn closed_by(&self, child: Child) -> Option<String> {
        let mut closing = self.closing.iter();
        let closed = closing.find(|(_, closing)| closing.child == Some(child));
        closed.map(|(session, _)| session.clone())
    }

    /// A session is closed. What came of it meanwhile belongs to the closed one.
    pub fn closed(&mut self, agent_session: &str) {
        self.closing.remove(agent_session);
        self.early.remove(agent_session);
    }

    /// The wait for a session's close is over.
    pub fn give_up_closing(&mut self, agent_session: &str) {
        self.closing.remove(agent_session);
    }

    /// Remembers a released session that the agent cannot close.
    pub fn leave_open(&mut self, agent_session: String, state: Map<String, Value>) {
        self.left_open.retain(|l| l.agent_session != agent_session);
        if self.left_open.len() >= MOST_LEFT_OPEN {
            self.left_open.pop_front();
        }
        self.left_open.push_back(LeftOpen {
            agent_session,
            state,
        });
    }

    /// Takes a session that is still open in the agent's process.
    pub fn take_left_open(&mut self, agent_session: &str) -> Option<LeftOpen> {
        let mut left = self.left_open.iter();
        let at = left.position(|l| l.agent_session == agent_session)?;
        self.left_open.remove(at)
    }
}

/// The news of a session's state in an update, and the cost of the session so far.
#[must_use]
pub fn state_news<'a>(
    update: &Update<'a>,
    original: Original<'a>,
) -> Option<(Members<'a>, Option<f64>)> {
    match update {
        Update::Session(news) => Some((news.clone(), None)),
        Update::Context { cost, figures } => {
            let figures = figures.clone().unwrap_or_else(|| original.fields());
            let mut news = Members::default();
            news.set_owned("context", &figures);
            Some((news, *cost))
        }
        _ => None,
    }
}
