//! Sessions that are closed at the agent. Some agents fail a `session/load` or `session/resume` that comes before they
//! have answered `session/close` of the same session, and forget the session with it. Others cannot close a session, and
//! do not load one that is still open in their process. A session with a process of its own is closed when that has
//! ended: until then both would write what the agent keeps of it.

use super::doubts::Adoption;
use super::{Bridge, Call, Phase};
use crate::core::client::Outlet;
use crate::core::dialect::Child;
use crate::core::ladder::Ladder;
use crate::core::limits::Wait;
use crate::core::session::{Session, Stage};
use crate::core::silence::Silence;
use crate::proto::wire::Rung;
use serde_json::{Map, Value};
use std::time::Instant;

/// How many sessions are remembered that the agent could not close.
const MOST_LEFT_OPEN: usize = 64;

/// A session that is still open in the agent's process, since the agent offers no `session/close`.
#[derive(Debug)]
pub(super) struct LeftOpen {
    agent_session: String,
    /// Its modes, models, options, commands and title when it was let go.
    state: Map<String, Value>,
}

/// A session that the agent is closing.
#[derive(Debug)]
pub(super) struct Closing {
    /// Until when its end is awaited.
    until: Option<Instant>,
    /// Its own process, whose end that is; `None` where it is the answer to `session/close`.
    child: Option<Child>,
}

impl Bridge {
    /// Remembers a session that is let go, where the agent offers no `session/close`.
    pub(super) fn leave_open(&mut self, id: &str) {
        let closes = match self.agent.as_ref().map(|agent| &agent.phase) {
            Some(Phase::Ready(info)) => info.capabilities.close,
            _ => true,
        };
        let Some(session) = self.sessions.get(id).filter(|_| !closes) else {
            return;
        };
        let Some(agent_session) = session.agent_session().map(str::to_owned) else {
            return;
        };
        let state = session.state.clone();
        self.left_open.retain(|l| l.agent_session != agent_session);
        if self.left_open.len() >= MOST_LEFT_OPEN {
            self.left_open.pop_front();
        }
        self.left_open.push_back(LeftOpen {
            agent_session,
            state,
        });
    }

    /// The agent did not load a session that is still open in its process: goes on with that; false where it is not open.
    pub(super) fn go_on_with_open(
        &mut self,
        id: &str,
        now: Instant,
        outlet: &mut impl Outlet,
    ) -> bool {
        let key = self.agent_key();
        let Some(session) = self.sessions.get_mut(id) else {
            return false;
        };
        let known = session.known.id_of(&key);
        let at = known.and_then(|known| {
            let mut left = self.left_open.iter();
            left.position(|l| l.agent_session == known)
        });
        let Some(left) = at.and_then(|at| self.left_open.remove(at)) else {
            return false;
        };
        let Stage::Opening { climb, .. } = &mut session.stage else {
            return false;
        };
        climb.rung = Some(Rung::Live);
        let early = self.early.remove(&left.agent_session).unwrap_or_default();
        for told in [&mut session.state, &mut climb.told] {
            told.extend(left.state.clone());
            told.extend(early.state.clone());
        }
        self.routes
            .insert(left.agent_session.clone(), id.to_owned());
        self.arrived(id, left.agent_session, Adoption::Unknown, now, outlet);
        true
    }

    /// Asks the agent to close a session, by the agent's id, where it can do that.
    pub(super) fn close_at_agent(&mut self, agent_session: &str, now: Instant) {
        let closes = match self.agent.as_ref().map(|agent| &agent.phase) {
            Some(Phase::Ready(info)) => info.capabilities.close,
            _ => false,
        };
        if !closes {
            return;
        }
        let call = self.next_call(Call::Close {
            agent_session: agent_session.to_owned(),
        });
        let child = self.own_process(agent_session);
        let Some(agent) = &mut self.agent else { return };
        if agent.dialect.close(call, agent_session, &mut agent.out) {
            self.note_closing(agent_session, None, now);
            return;
        }
        self.calls.remove(&call);
        if child.is_some() {
            self.note_closing(agent_session, child, now);
        }
    }

    /// The process that a session has for itself, by the agent's id of the session.
    pub(super) fn own_process(&self, agent_session: &str) -> Option<Child> {
        let agent = self.agent.as_ref()?;
        let child = agent.dialect.child_of(Some(agent_session), None)?;
        (child != Child::MAIN).then_some(child)
    }

    /// Notes that a session is being closed: to open it again waits for that.
    pub(super) fn note_closing(&mut self, agent_session: &str, child: Option<Child>, now: Instant) {
        self.closing
            .retain(|_, closing| closing.until.is_some_and(|at| at > now));
        let until = self.settings.limits.until(Wait::CloseSession, now);
        let closing = Closing { until, child };
        self.closing.insert(agent_session.to_owned(), closing);
    }

    /// A process that was stopped has ended: the session that had it is closed.
    pub(super) fn stopped(&mut self, child: Child, now: Instant, outlet: &mut impl Outlet) {
        let mut closing = self.closing.iter();
        let closed = closing.find(|(_, closing)| closing.child == Some(child));
        if let Some(session) = closed.map(|(session, _)| session.clone()) {
            self.closed(&session, now, outlet);
        }
    }

    /// The agent has answered: sessions that waited for that are opened.
    pub(super) fn closed(&mut self, agent_session: &str, now: Instant, outlet: &mut impl Outlet) {
        self.closing.remove(agent_session);
        // What it said of the session meanwhile is of the one that was closed.
        self.early.remove(agent_session);
        let held = |session: &&Session| session.held() == Some(agent_session);
        let held: Vec<String> = self
            .sessions
            .values()
            .filter(held)
            .map(|s| s.id.clone())
            .collect();
        for id in held {
            self.climb(&id, now, outlet);
        }
    }

    /// A session waited long enough for the answer to `session/close`; false where it did not wait for that.
    pub(super) fn close_overdue(
        &mut self,
        id: &str,
        now: Instant,
        outlet: &mut impl Outlet,
    ) -> bool {
        let held = self
            .sessions
            .get(id)
            .and_then(Session::held)
            .map(str::to_owned);
        let Some(agent_session) = held else {
            return false;
        };
        self.closing.remove(&agent_session);
        if let Some(session) = self.sessions.get_mut(id)
            && let Stage::Opening {
                climb, deadline, ..
            } = &mut session.stage
        {
            // An agent that is not ready now opens it when it is.
            (climb.held, *deadline) = (None, None);
        }
        self.climb(id, now, outlet);
        true
    }

    /// Lets a session wait where the agent is still closing it; true where it waits.
    pub(super) fn hold(&mut self, id: &str, known: Option<&str>, now: Instant) -> bool {
        let Some(known) = known else { return false };
        let until = self.closing.get(known).and_then(|closing| closing.until);
        let Some(until) = until.filter(|at| *at > now) else {
            return false;
        };
        let Some(session) = self.sessions.get_mut(id) else {
            return false;
        };
        let Stage::Opening {
            climb, deadline, ..
        } = &mut session.stage
        else {
            return false;
        };
        let next = climb.ladder.as_ref().and_then(Ladder::peek);
        if !matches!(next, Some(Rung::Resume | Rung::Load)) {
            return false;
        }
        climb.held = Some(known.to_owned());
        *deadline = Some(until);
        session.silence = Some(Silence::begin(now, None));
        true
    }
}

impl Session {
    /// The agent's id of the session, while it waits for the answer to `session/close` of that.
    pub(super) fn held(&self) -> Option<&str> {
        match &self.stage {
            Stage::Opening { climb, .. } => climb.held.as_deref(),
            Stage::Live { .. } | Stage::Resting => None,
        }
    }
}
