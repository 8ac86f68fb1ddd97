//! Directory of an agent's sessions by agent session id: the client's session for each id, and the updates of
//! sessions that are not open yet or not closed yet.
//!
//! Some agents fail a `session/load` or `session/resume` that arrives before they have answered
//! `session/close` of the same session. Others cannot close a session, and do not load one that is still open
//! in their process. A session with its own process counts as closed when the process has exited: before
//! that, both processes would write the agent's stored session.

use crate::agent_session_record::AgentSessionRecord;
use acpipe_json::Members;
use acpipe_model::acp_notification::AcpNotification;
use acpipe_model::dialect::Child;
use acpipe_model::event::{Original, Update};
use acpipe_model::setting::merge_state;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::ops::Range;
use std::time::Instant;
use tracing::warn;

/// Maximum number of sessions whose state is kept before the agent answers the calls that open them.
const EARLY_SESSIONS: usize = 64;

/// Maximum size of the updates that are kept of a session before it is open, in bytes.
const EARLY_BYTES: usize = 64 << 10;

/// Maximum number of subagents whose session ids are remembered.
const SUBAGENTS: usize = 4096;

/// Maximum number of agent session ids whose sessions are remembered after they have left the agent.
const HOLDERS: usize = 16 << 10;

/// Maximum number of remembered sessions that the agent could not close.
const MOST_LEFT_OPEN: usize = 64;

/// The sessions of an agent, by agent session id.
#[derive(Debug, Default)]
pub struct Directory {
    /// Agent session id → client's session id. Looked up at every update; a tree, since there are few
    /// entries.
    routes: BTreeMap<String, String>,
    /// Agent session id of a subagent → client's id of the session that it works for.
    subagents: HashMap<String, String>,
    /// State of sessions that arrived before the agent answered the calls that open them.
    early: HashMap<String, EarlyState>,
    /// Time of the last update of an unknown session.
    early_at: Option<Instant>,
    /// Unknown sessions whose tool calls were reported.
    reported: HashSet<String>,
    /// Number of updates of sessions that no client opened and the agent did not announce.
    unclaimed: u64,
    closing: BTreeMap<String, Closing>,
    /// Released sessions that are still open in the agent's process.
    left_open: VecDeque<LeftOpen>,
    holders: Holders,
}

/// Sessions to which the agent gave its ids since it was started.
#[derive(Debug, Default)]
struct Holders {
    by_id: HashMap<String, Holder>,
    /// Ids in the order in which they were given first.
    order: VecDeque<String>,
}

/// Session for which the agent has an id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// The client's id of the session.
    pub session: String,
    pub record: AgentSessionRecord,
}

/// State of a session that is not open yet.
#[derive(Debug, Clone, Default)]
pub struct EarlyState {
    /// Modes, models, options, commands and title, as the agent sent them.
    pub state: Map<String, Value>,
    pub cost: Option<f64>,
    /// The updates as an ACP agent sent them, for clients that speak ACP.
    pub updates: EarlyUpdates,
}

/// Notifications of an ACP agent about a session that is not open yet, as lines.
#[derive(Debug, Clone, Default)]
pub struct EarlyUpdates {
    lines: Vec<(String, Option<Range<usize>>)>,
    size: usize,
}

impl EarlyUpdates {
    fn add(&mut self, agent_session: &str, line: &str) {
        if self.size + line.len() > EARLY_BYTES {
            warn!(
                agent_session,
                "too many updates before the session is open; one is dropped"
            );
            return;
        }
        self.size += line.len();
        self.lines
            .push((line.to_owned(), part_of(line, agent_session)));
    }

    /// Passes the notifications to `put`, in order.
    pub fn each(&self, agent_session: &str, put: &mut dyn FnMut(AcpNotification<'_>)) {
        for (line, id) in &self.lines {
            let id = id.clone().and_then(|id| line.get(id));
            put(AcpNotification::Line {
                line,
                session: Some(id.unwrap_or(agent_session)),
            });
        }
    }
}

/// Returns the range of a text in a line that it borrows from; `None` if it is not a part of the line.
fn part_of(line: &str, text: &str) -> Option<Range<usize>> {
    let start = (text.as_ptr() as usize).checked_sub(line.as_ptr() as usize)?;
    let range = start..start.checked_add(text.len())?;
    line.get(range.clone()).map(|_| range)
}

/// Target of the updates of an agent's session: the client's session, or one of its subagents.
#[derive(Debug, Clone)]
pub struct Route {
    /// The client's id of the session.
    pub session: String,
    /// Agent session id of the subagent; `None` for the session itself.
    pub subagent: Option<String>,
}

/// Session that is still open in the agent's process because the agent does not offer `session/close`.
#[derive(Debug)]
pub struct LeftOpen {
    pub agent_session: String,
    /// Modes, models, options, commands and title at the time of the release.
    pub state: Map<String, Value>,
}

/// Session that the agent is closing.
#[derive(Debug)]
struct Closing {
    /// Deadline of the wait for the end of the close.
    until: Option<Instant>,
    /// The session's own process, whose exit closes it; `None` if the response to `session/close` does.
    child: Option<Child>,
}

impl Directory {
    /// Returns the client's id of an agent's session.
    pub fn session(&self, agent_session: &str) -> Option<&String> {
        self.routes.get(agent_session)
    }

    /// Returns the client's id of an agent's session, or of the session that a subagent works for.
    pub fn owner(&self, agent_session: &str) -> Option<&String> {
        let routed = self.routes.get(agent_session);
        routed.or_else(|| self.subagents.get(agent_session))
    }

    /// Returns the target of the updates of an agent's session. A subagent's session was announced by the
    /// agent and opened by no client.
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

    /// Returns `true` if a client's session has an agent session id.
    pub fn has_session(&self, session: &str) -> bool {
        self.routes.values().any(|routed| routed == session)
    }

    pub fn add(&mut self, agent_session: String, session: String) {
        self.routes.insert(agent_session, session);
    }

    /// Records that the agent has a session under an id. A session that the agent created takes the id from the
    /// session that had it before; one that only continues the agent's session does not.
    pub fn note_holder(&mut self, holder: Holder) {
        let agent_session = holder.record.id.clone();
        let Holders { by_id, order } = &mut self.holders;
        match by_id.get_mut(&agent_session) {
            Some(known) if holder.record.created => *known = holder,
            Some(_) => {}
            None => {
                if order.len() >= HOLDERS
                    && let Some(oldest) = order.pop_front()
                {
                    by_id.remove(&oldest);
                }
                order.push_back(agent_session.clone());
                by_id.insert(agent_session, holder);
            }
        }
    }

    /// Returns the session to which the agent gave an id last, if it did since it was started.
    pub fn holder(&self, agent_session: &str) -> Option<&Holder> {
        self.holders.by_id.get(agent_session)
    }

    /// Removes all agent session ids of a client's session. Later updates with these ids belong to no
    /// session.
    pub fn remove(&mut self, session: &str) {
        self.routes.retain(|_, routed| routed != session);
    }

    /// Replaces an agent session id; returns the client's session id.
    pub fn rename(&mut self, old: &str, to: String) -> Option<String> {
        let session = self.routes.remove(old)?;
        self.routes.insert(to, session.clone());
        Some(session)
    }

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

    /// Keeps the state of a session that may be about to be opened, and the line of the update if `passes_on`. All
    /// other updates only count as unclaimed.
    pub fn note_early(
        &mut self,
        agent_session: &str,
        (update, original): (&Update<'_>, Original<'_>),
        passes_on: bool,
        now: Instant,
    ) {
        self.early_at = Some(now);
        let has_room = self.early.len() < EARLY_SESSIONS || self.early.contains_key(agent_session);
        let news = state_news(update, original);
        if has_room && (passes_on || news.is_some()) {
            let early = self.early.entry(agent_session.to_owned()).or_default();
            if passes_on {
                early.updates.add(agent_session, original.line);
            }
            if let Some((news, cost)) = news {
                merge_state(&mut early.state, &news);
                early.cost = cost.or(early.cost);
                return;
            }
        }
        self.unclaimed += 1;
        if self.unclaimed.is_power_of_two() {
            let count = self.unclaimed;
            warn!(
                agent_session,
                count, "update for a session that is not open"
            );
        }
    }

    /// Returns `true` if the tool calls of an unknown session were reported, or if too many sessions have been.
    pub fn is_reported(&self, agent_session: &str) -> bool {
        self.reported.len() >= EARLY_SESSIONS || self.reported.contains(agent_session)
    }

    pub fn note_reported(&mut self, agent_session: &str) {
        self.reported.insert(agent_session.to_owned());
    }

    /// Takes the state that arrived before the session was open.
    pub fn take_early(&mut self, agent_session: &str) -> EarlyState {
        self.early.remove(agent_session).unwrap_or_default()
    }

    /// Returns when the last update of an unknown session arrived.
    pub fn early_at(&self) -> Option<Instant> {
        self.early_at
    }

    /// Records that a session is being closed. It cannot be opened again before the close has ended, or
    /// before `until`.
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

    /// Returns the deadline of a session's close; `None` if it is not being closed.
    pub fn closing_until(&self, agent_session: &str, now: Instant) -> Option<Instant> {
        let until = self.closing.get(agent_session)?.until;
        until.filter(|at| *at > now)
    }

    /// Returns the session that is closed by the exit of this process.
    pub fn closed_by(&self, child: Child) -> Option<String> {
        let mut closing = self.closing.iter();
        let closed = closing.find(|(_, closing)| closing.child == Some(child));
        closed.map(|(session, _)| session.clone())
    }

    /// Records that a session is closed. State that arrived meanwhile belongs to the closed session and is
    /// dropped.
    pub fn closed(&mut self, agent_session: &str) {
        self.closing.remove(agent_session);
        self.early.remove(agent_session);
    }

    /// Ends the wait for a session's close without a result.
    pub fn give_up_closing(&mut self, agent_session: &str) {
        self.closing.remove(agent_session);
    }

    /// Records a released session that the agent cannot close.
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

    pub fn take_left_open(&mut self, agent_session: &str) -> Option<LeftOpen> {
        let mut left = self.left_open.iter();
        let at = left.position(|l| l.agent_session == agent_session)?;
        self.left_open.remove(at)
    }
}

/// Returns the changes of a session's state in an update, and the cost of the session so far.
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
