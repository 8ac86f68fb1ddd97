//! Sessions that the agent was asked to close: some agents fail a `session/load` or `session/resume` that comes before
//! they have answered `session/close` of the same session, and forget the session with it.

use super::{Bridge, Call, Phase};
use crate::core::client::Outlet;
use crate::core::ladder::Ladder;
use crate::core::limits::Wait;
use crate::core::session::{Session, Stage};
use crate::core::silence::Silence;
use crate::proto::wire::Rung;
use std::time::Instant;

impl Bridge {
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
        let Some(agent) = &mut self.agent else { return };
        if !agent.dialect.close(call, agent_session, &mut agent.out) {
            self.calls.remove(&call);
            return;
        }
        self.closing
            .retain(|_, until| until.is_some_and(|at| at > now));
        let until = self.settings.limits.until(Wait::CloseSession, now);
        self.closing.insert(agent_session.to_owned(), until);
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
        self.climb(id, now, outlet);
        true
    }

    /// Lets a session wait where the agent is still closing it; true where it waits.
    pub(super) fn hold(&mut self, id: &str, known: Option<&str>, now: Instant) -> bool {
        let Some(known) = known else { return false };
        let Some(Some(until)) = self
            .closing
            .get(known)
            .copied()
            .filter(|at| at.is_some_and(|at| at > now))
        else {
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
