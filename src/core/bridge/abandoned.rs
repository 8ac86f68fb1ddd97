//! Turns that were given up: the agent did not answer their cancel. Whatever it does there, the session takes
//! prompts again after a while, and the others of the agent go on.

use super::{Bridge, Call, Phase};
use crate::core::client::Outlet;
use crate::core::error::{Error, ErrorKind};
use crate::core::event::CallId;
use crate::core::limits::Wait;
use crate::core::session::{Abandoned, Session};
use crate::core::summary::Ending;
use crate::proto::wire::{Rung, Strategy};
use std::time::Instant;
use tracing::warn;

impl Bridge {
    /// Ends a turn whose cancel the agent does not answer. Where the session has a process of its own that is
    /// ended, else the session waits for the answer.
    pub(super) fn abandon_turn(
        &mut self,
        id: &str,
        error: Error,
        now: Instant,
        outlet: &mut impl Outlet,
    ) {
        let Some(session) = self.sessions.get_mut(id) else {
            return;
        };
        let Some(call) = session.running.as_ref().map(|r| r.call) else {
            return;
        };
        session.abandoned = Some(Abandoned {
            call,
            // As long again, before the session is brought back without it.
            until: self.settings.limits.until(Wait::Cancel, now),
        });
        self.end_turn(id, Ending::Failed(error), now, outlet);
        let session = id.to_owned();
        self.calls.insert(call, Call::Prompt { session });
        self.end_alone(id, now, outlet);
    }

    /// Whether this is the late answer to a turn that was given up: then the session is free again.
    pub(super) fn was_abandoned(
        &mut self,
        id: &str,
        call: CallId,
        outlet: &mut impl Outlet,
    ) -> bool {
        let Some(session) = self.sessions.get_mut(id) else {
            return false;
        };
        let late = session
            .abandoned
            .take_if(|abandoned| abandoned.call == call);
        if late.is_some() {
            // What came after the turn was given up belonged to it.
            session.end_unprompted(None, outlet);
            self.freed.push(id.to_owned());
        }
        late.is_some()
    }

    /// The answer to a turn that was given up is not waited for any more.
    pub(super) fn forget_abandoned(&mut self, id: &str) {
        let session = self.sessions.get_mut(id);
        if let Some(abandoned) = session.and_then(|session| session.abandoned.take()) {
            self.calls.remove(&abandoned.call);
        }
    }

    /// The answer did not come for too long.
    pub(super) fn tick_abandoned(&mut self, id: &str, now: Instant, outlet: &mut impl Outlet) {
        let session = self.sessions.get_mut(id);
        let abandoned = session.and_then(|session| session.abandoned.as_mut());
        if let Some(abandoned) = abandoned.filter(|a| a.until.is_some_and(|at| at <= now)) {
            abandoned.until = None;
            self.recover_abandoned(id, now, outlet);
        }
    }

    /// Turns have ended: sessions that had to wait for that are brought back.
    pub(super) fn recover_overdue(&mut self, now: Instant, outlet: &mut impl Outlet) {
        let sessions = self.sessions.values();
        let overdue = sessions.filter(|s| s.abandoned.as_ref().is_some_and(|a| a.until.is_none()));
        let overdue: Vec<String> = overdue.map(|session| session.id.clone()).collect();
        for id in overdue {
            self.recover_abandoned(&id, now, outlet);
        }
    }

    /// Frees a session of a turn that does not end. A process that no other turn runs in is started again;
    /// where one does the session alone is closed and brought back, if the agent can do that. If it cannot, the
    /// others' turns are waited for.
    fn recover_abandoned(&mut self, id: &str, now: Instant, outlet: &mut impl Outlet) {
        if self.end_alone(id, now, outlet) {
            return;
        }
        let Some(Phase::Ready(info)) = self.agent.as_ref().map(|agent| &agent.phase) else {
            return;
        };
        let can = info.capabilities;
        if !self.sessions.values().any(|s| s.running.is_some()) {
            warn!(
                session = id,
                "a turn that was cancelled does not end: the agent is started again"
            );
            self.start_anew();
        } else if can.close && (can.resume || can.load) {
            warn!(
                session = id,
                "a turn that was cancelled does not end: its session is closed"
            );
            if let Some(agent_session) = self.agent_session(id) {
                self.close_at_agent(&agent_session, now);
                self.session_lost(&agent_session, &too_late(), now, outlet);
            }
        }
    }

    /// Ends the process of a session, if it has one of its own; the next prompt brings the session back.
    fn end_alone(&mut self, id: &str, now: Instant, outlet: &mut impl Outlet) -> bool {
        let Some(agent_session) = self.agent_session(id) else {
            return false;
        };
        let child = self.own_process(&agent_session);
        let Some(agent) = &mut self.agent else {
            return false;
        };
        if !agent.dialect.abandon(&agent_session, &mut agent.out) {
            return false;
        }
        if child.is_some() {
            self.note_closing(&agent_session, child, now);
        }
        warn!(
            session = id,
            "a turn that was cancelled does not end: its process is ended"
        );
        self.session_lost(&agent_session, &too_late(), now, outlet);
        true
    }

    fn agent_session(&self, id: &str) -> Option<String> {
        let session = self.sessions.get(id)?;
        session.agent_session().map(str::to_owned)
    }
}

impl Session {
    /// Whether a live session may be opened anew: not in a turn. A new one takes the place of whatever the agent
    /// is at.
    pub(super) fn may_be_opened_anew(&self, strategy: &Strategy) -> Result<(), Error> {
        let lost = self.abandoned.is_some() && *strategy != Strategy::Only(Rung::New);
        if self.running.is_none() && !lost {
            return Ok(());
        }
        let id = &self.id;
        let message = format!("session {id:?} is in a turn: ensure it again when that has ended");
        Err(Error::new(ErrorKind::Busy, message))
    }
}

fn too_late() -> Error {
    let message = "the agent did not end a turn that was cancelled: its session is brought back";
    Error::new(ErrorKind::Cancelled, message)
}
