//! What an agent says of a session and may not be true: a refusal while its list has the session, and a session that it
//! says it loaded though it does not have it.

use super::recovery::{PAGES, WAY_OUT};
use super::{Bridge, Call, Phase};
use crate::core::client::Outlet;
use crate::core::error::{Error, ErrorKind};
use crate::core::ladder::leads_down;
use crate::core::limits::Wait;
use crate::core::session::Stage;
use crate::proto::wire::Rung;
use std::time::Instant;

/// What is known of a session that an agent loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Adoption {
    /// Its id was not looked up.
    Unknown,
    /// The agent's list has its id.
    Listed,
    /// The agent has no list, or did not give the whole of it.
    NotListed,
}

impl Bridge {
    /// A call for a session failed: down a rung, unless the error says that there is no use in it.
    pub(super) fn refused(
        &mut self,
        id: &str,
        mut error: Error,
        now: Instant,
        outlet: &mut impl Outlet,
    ) {
        let can_list = match self.agent.as_ref().map(|agent| &agent.phase) {
            Some(Phase::Ready(info)) => info.capabilities.list,
            _ => false,
        };
        let Some(session) = self.sessions.get_mut(id) else {
            return;
        };
        let Stage::Opening { climb, call, .. } = &mut session.stage else {
            return;
        };
        *call = None;
        let rung = climb.rung.unwrap_or(Rung::New);
        let ladder = climb.ladder.get_or_insert_default();
        if rung == Rung::New || !leads_down(&error) || ladder.peek().is_none() {
            if rung != Rung::New && leads_down(&error) {
                error.message = format!("{}; {WAY_OUT}", error.message);
            }
            self.opening_failed(id, &error, now, outlet);
            return;
        }
        ladder.note(rung, &error);
        climb.replay = None;
        let last = ladder.peek() == Some(Rung::New);
        if last && self.go_on_with_open(id, now, outlet) {
            return;
        }
        let Some(session) = self.sessions.get_mut(id) else {
            return;
        };
        let Stage::Opening { climb, .. } = &mut session.stage else {
            return;
        };
        // A fresh session in the place of one that the agent still has would hide its history.
        if last && can_list {
            climb.doubted = Some(error);
            climb.pages = 0;
            self.ask_for_list(id, None, now);
            return;
        }
        self.climb(id, now, outlet);
    }

    fn ask_for_list(&mut self, id: &str, cursor: Option<&str>, now: Instant) {
        let call = self.next_call(Call::List {
            session: id.to_owned(),
        });
        if let (Some(agent), Some(session)) = (&mut self.agent, self.sessions.get_mut(id)) {
            let cwd = &session.cwd;
            agent.dialect.list(call, Some(cwd), cursor, &mut agent.out);
            session.opening(call, now, self.settings.limits.of(Wait::Open));
        }
    }

    /// The agent told a page of its sessions, or with `None` that it will not.
    pub(super) fn listed(
        &mut self,
        id: &str,
        page: Option<(&[String], Option<&str>)>,
        now: Instant,
        outlet: &mut impl Outlet,
    ) {
        let key = self.agent_key();
        let Some(session) = self.sessions.get_mut(id) else {
            return;
        };
        let known = session.known.id_of(&key).map(str::to_owned);
        let Stage::Opening { climb, .. } = &mut session.stage else {
            return;
        };
        climb.pages += 1;
        if climb.adopting.is_some() {
            self.looked_for_adopted(id, page, now, outlet);
            return;
        }
        let there = |ids: &[String]| known.as_ref().is_some_and(|known| ids.contains(known));
        match page {
            Some((ids, _)) if there(ids) => {
                if let Some(mut error) = climb.doubted.take() {
                    let said = &error.message;
                    error.message = format!("{said}; the agent still lists the session: {WAY_OUT}");
                    self.opening_failed(id, &error, now, outlet);
                }
            }
            Some((_, Some(cursor))) if climb.pages < PAGES => {
                self.ask_for_list(id, Some(cursor), now);
            }
            _ => self.climb(id, now, outlet),
        }
    }

    /// An agent says that it loaded a session that is to be adopted, but repeated no message: looks it up in the agent's
    /// list, where there is one. False where there is none.
    pub(super) fn doubt_adopted(&mut self, id: &str, agent_session: &str, now: Instant) -> bool {
        let can_list = match self.agent.as_ref().map(|agent| &agent.phase) {
            Some(Phase::Ready(info)) => info.capabilities.list,
            _ => false,
        };
        let Some(session) = self.sessions.get_mut(id).filter(|_| can_list) else {
            return false;
        };
        let Stage::Opening { climb, .. } = &mut session.stage else {
            return false;
        };
        climb.adopting = Some(agent_session.to_owned());
        climb.pages = 0;
        self.ask_for_list(id, None, now);
        true
    }

    /// The agent told a page of its sessions while one is to be adopted, or with `None` that it will not.
    fn looked_for_adopted(
        &mut self,
        id: &str,
        page: Option<(&[String], Option<&str>)>,
        now: Instant,
        outlet: &mut impl Outlet,
    ) {
        let Some(session) = self.sessions.get_mut(id) else {
            return;
        };
        let Stage::Opening { climb, call, .. } = &mut session.stage else {
            return;
        };
        *call = None;
        let Some(agent_session) = climb.adopting.take() else {
            return;
        };
        match page {
            Some((ids, _)) if ids.contains(&agent_session) => {
                self.arrived(id, agent_session, Adoption::Listed, now, outlet);
            }
            Some((_, Some(cursor))) if climb.pages < PAGES => {
                climb.adopting = Some(agent_session);
                self.ask_for_list(id, Some(cursor), now);
            }
            Some((_, None)) => {
                let message = format!(
                    "the agent does not have session {agent_session:?}: it repeated no message of it, and its list of \
                     sessions lacks the id"
                );
                let error = Error::new(ErrorKind::SessionNotFound, message);
                let may_be_new = climb.strategy.allows(Rung::New);
                climb
                    .ladder
                    .get_or_insert_default()
                    .note(Rung::Load, &error);
                self.close_at_agent(&agent_session, now);
                if may_be_new {
                    self.climb(id, now, outlet);
                    return;
                }
                let message = format!(
                    "{}; session/list with `agent: true` shows the ids that it has, and {WAY_OUT}",
                    error.message
                );
                self.opening_failed(
                    id,
                    &Error::new(ErrorKind::SessionNotFound, message),
                    now,
                    outlet,
                );
            }
            _ => self.arrived(id, agent_session, Adoption::NotListed, now, outlet),
        }
    }
}
