//! What the client asks of sessions as a whole: lists, the end of one.

use super::Bridge;
use crate::core::client::{Outlet, Token};
use crate::core::error::{Error, ErrorKind};
use crate::core::permit::By;
use crate::core::session::{Session, Stage};
use crate::core::setting;
use crate::core::store::Card;
use crate::core::summary::Ending;
use crate::proto::wire::{
    ClearParams, Recovery, SessionInfo, SessionParams, SessionResult, SessionStage, Strategy,
    SubscribeParams,
};
use serde_json::Value;
use std::time::Instant;

impl Bridge {
    pub(super) fn session_info(
        &mut self,
        p: &SessionParams,
        now: Instant,
    ) -> Result<SessionInfo, Error> {
        let id = &self.session_id(p.session_id.as_deref())?;
        let info = self.session(id)?.info();
        let waiting_for = self.session_waits(id, now);
        Ok(SessionInfo {
            waiting_for,
            ..info
        })
    }

    /// The agent may forget the session, and other programs may have it; what is stored stays.
    pub(super) fn close_session(
        &mut self,
        p: &SessionParams,
        now: Instant,
        outlet: &mut impl Outlet,
    ) -> Result<(), Error> {
        let id = self.session_id(p.session_id.as_deref())?;
        self.close(&id, now, outlet)
    }

    fn close(&mut self, id: &str, now: Instant, outlet: &mut impl Outlet) -> Result<(), Error> {
        self.session(id)?.must_be_idle()?;
        self.end_unprompted(id, now, outlet);
        let session = self.session(id)?;
        // What changed outside of turns, a title say, and what was told before it was open. A full disk keeps
        // nobody from closing.
        let _ = match session.log.identity() {
            Some(_) => self.identify(id, now, outlet),
            None => self.write(id, now, outlet),
        };
        let message = "the session was closed before it was open";
        self.opening_failed(id, &Error::new(ErrorKind::Cancelled, message), now, outlet);
        let session = self.sessions.get_mut(id);
        for token in session
            .map(|s| s.settings.take_waiting())
            .into_iter()
            .flatten()
        {
            let message = "the session was closed before the agent answered";
            outlet.reply(token, Err(Error::new(ErrorKind::Cancelled, message)));
        }
        self.let_go(id, now);
        self.release_roots(id);
        if let Some(agent) = &mut self.agent {
            agent.used = now;
        }
        self.sessions.remove(id);
        Ok(())
    }

    /// The session is no more: its messages and who it was are removed.
    pub(super) fn clear_session(
        &mut self,
        p: &ClearParams,
        now: Instant,
        outlet: &mut impl Outlet,
    ) -> Result<(), Error> {
        let id = &self.session_id(p.session_id.as_deref())?;
        self.session(id)?.must_be_idle()?;
        self.end_unprompted(id, now, outlet);
        self.write(id, now, outlet)?;
        self.session(id)?.log.remove(p.archive)?;
        self.close(id, now, outlet)
    }

    pub(super) fn subscribe(&mut self, p: &SubscribeParams) -> Result<(), Error> {
        let Some(id) = &p.session_id else {
            self.view.chunks = p.chunks;
            for session in self.sessions.values_mut() {
                session.view.chunks = p.chunks;
            }
            for released in self.released.values_mut() {
                released.view.chunks = p.chunks;
            }
            return Ok(());
        };
        let id = &self.session_id(Some(id))?;
        self.session(id)?.view.chunks = p.chunks;
        Ok(())
    }

    /// The agent has the session no more, though it serves others: the next prompt brings it back.
    pub(super) fn session_lost(
        &mut self,
        agent_session: &str,
        error: &Error,
        now: Instant,
        outlet: &mut impl Outlet,
    ) {
        let Some(id) = self.routes.get(agent_session).cloned() else {
            return;
        };
        self.end_asks(&id, &By::End, now, outlet);
        self.end_turn(&id, Ending::Failed(error.clone()), now, outlet);
        let Some(session) = self.sessions.get_mut(&id) else {
            return;
        };
        session.end_unprompted(Some(error), outlet);
        for token in session.settings.take_waiting() {
            outlet.reply(token, Err(error.clone()));
        }
        self.opening_failed(&id, error, now, outlet);
        self.routes.retain(|_, routed| *routed != id);
        self.forget_abandoned(&id);
        self.freed.push(id.clone());
        if let Some(session) = self.sessions.get_mut(&id) {
            session.rest();
            // Prompts that wait need it still, those for another environment with that.
            let prompts: Vec<Token> = session.queue.tokens().collect();
            if !prompts.is_empty() {
                session.begin_opening(Strategy::Auto, Vec::new());
                if !prompts.into_iter().all(|prompt| self.is_held(prompt)) {
                    self.climb(&id, now, outlet);
                }
            }
        }
    }

    /// The agent calls a session by another id: what it had under the old one may be gone.
    pub(super) fn session_renamed(
        &mut self,
        old: &str,
        to: String,
        now: Instant,
        outlet: &mut impl Outlet,
    ) {
        let Some(id) = self.routes.remove(old) else {
            return;
        };
        self.routes.insert(to.clone(), id.clone());
        let Some(session) = self.sessions.get_mut(&id) else {
            return;
        };
        session.known.rename(to.clone());
        // What it counts from now on is not known to go on from before.
        session.cost = None;
        session.with_turn(outlet, |turn, sink| turn.moved(&to, sink));
        if let Stage::Live { agent_session } = &mut session.stage {
            *agent_session = to;
        }
        // A full disk tells of itself with the turn.
        let _ = self.identify(&id, now, outlet);
    }

    /// Tells the agent that a session is not needed any more, where it takes that.
    pub(super) fn let_go(&mut self, id: &str, now: Instant) {
        let agent_session = self.sessions.get(id).and_then(Session::agent_session);
        let Some(agent_session) = agent_session.map(str::to_owned) else {
            return;
        };
        self.routes.retain(|_, routed| routed != id);
        self.leave_open(id);
        self.close_at_agent(&agent_session, now);
    }
}

impl Session {
    /// The answer to a call for it.
    pub(super) fn result(&self, recovery: Recovery) -> SessionResult {
        SessionResult {
            session_id: self.id.clone(),
            agent_session_id: self.agent_session().unwrap_or_default().to_owned(),
            cwd: self.cwd.clone(),
            recovery,
            state: Value::Object(self.state.clone()),
        }
    }

    /// What lists show of it.
    pub(super) fn info(&self) -> SessionInfo {
        let card = self.log.card();
        SessionInfo {
            state: match self.stage {
                Stage::Live { .. } => SessionStage::Live,
                Stage::Opening { .. } => SessionStage::Opening,
                Stage::Resting => SessionStage::Resting,
            },
            turn_id: self.turn_id().map(str::to_owned),
            corrupt_lines: Some(self.log.corrupt()),
            waiting_for: None,
            mode: setting::mode(&self.state).or(card.mode.clone()),
            model: setting::model(&self.state).or(card.model.clone()),
            ..stored(card)
        }
    }
}

/// A stored session that is not open.
pub(super) fn stored(card: Card) -> SessionInfo {
    SessionInfo {
        session_id: Some(card.session_id),
        agent_session_id: card.agent_session_id,
        agent: card.agent,
        state: SessionStage::Resting,
        turn_id: None,
        cwd: card.cwd,
        title: card.title,
        mode: card.mode,
        model: card.model,
        created_at: Some(card.created_at),
        updated_at: Some(card.updated_at),
        messages: Some(card.messages),
        seq: Some(card.seq),
        corrupt_lines: None,
        waiting_for: None,
    }
}
