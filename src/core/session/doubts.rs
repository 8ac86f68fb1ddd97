//! Verification of an agent's claims about a session against its session list: a refusal of a session that it
//! still lists, and a load of a session that it does not have.

use super::{SessionMachine, Stage};
use crate::core::agent::connection::Call;
use crate::core::cx::Cx;
use crate::core::error::{Error, ErrorKind};
use crate::core::limits::Timeout;
use crate::core::restore_plan::{RestorePlan, allows_next_strategy, describe_attempts};
use crate::proto::wire::Rung;

/// Page of an agent's sessions: their ids, and the cursor of the next page. `None` if the agent has no
/// session list.
pub type ListPage<'a> = Option<(&'a [String], Option<&'a str>)>;

/// Advice that helps whatever the failure of a session is.
pub(super) const RECOVERY_ADVICE: &str =
    "call session/ensure with strategy \"new\" to continue without its memory";

/// Creates the error of a session for which no strategy is left.
pub(super) fn nothing_left(id: &str, plan: &RestorePlan) -> Error {
    let tried = match plan.failed() {
        [] => "no strategy is left to try".to_owned(),
        failed => describe_attempts(failed),
    };
    let message = format!("cannot restore session {id:?}: {tried}; {RECOVERY_ADVICE}");
    Error::new(ErrorKind::SessionNotFound, message)
}

/// Maximum number of pages of an agent's session list that are searched.
pub(super) const PAGES: u32 = 50;

/// Result of looking up a loaded session in the agent's list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Adoption {
    /// The id was not looked up.
    Unknown,
    /// The agent's list contains the id.
    Listed,
    /// The agent has no list, or did not return all of it.
    NotListed,
}

impl SessionMachine {
    /// Handles a failed call for the session: tries the next strategy, unless the error rules that out.
    pub fn open_refused(&mut self, mut error: Error, cx: &mut Cx<'_>) {
        let Stage::Opening { restore, call, .. } = &mut self.stage else {
            return;
        };
        *call = None;
        let rung = restore.rung.unwrap_or(Rung::New);
        let restore_plan = restore.restore_plan.get_or_insert_default();
        if rung == Rung::New || !allows_next_strategy(&error) || restore_plan.peek().is_none() {
            if rung != Rung::New && allows_next_strategy(&error) {
                error.message = format!("{}; {RECOVERY_ADVICE}", error.message);
            }
            self.opening_failed(&error, cx);
            return;
        }
        restore_plan.note(rung, &error);
        restore.replay = None;
        let is_last = restore_plan.peek() == Some(Rung::New);
        if is_last && self.take_left_open(cx) {
            return;
        }
        // A new session in place of one that the agent still has would hide its history.
        if is_last
            && can_list(cx)
            && let Stage::Opening { restore, .. } = &mut self.stage
        {
            restore.error_before_lookup = Some(error);
            restore.pages = 0;
            self.request_list(None, cx);
            return;
        }
        self.continue_restore(cx);
    }

    fn request_list(&mut self, cursor: Option<&str>, cx: &mut Cx<'_>) {
        let call = cx.next_call();
        let limit = cx.limits().of(Timeout::Open);
        if let Some(connection) = &mut cx.agent.connection {
            let session = self.id.clone();
            connection.calls.insert(call, Call::List { session });
            let (cwd, out) = (Some(self.cwd.as_str()), &mut connection.out);
            connection.dialect.list(call, cwd, cursor, out);
            self.opening(call, cx.now, limit);
        }
    }

    /// Handles a page of the agent's session list.
    pub fn listed(&mut self, page: ListPage<'_>, cx: &mut Cx<'_>) {
        let known = self.known.id_of(&cx.agent.identity()).map(str::to_owned);
        let Stage::Opening { restore, .. } = &mut self.stage else {
            return;
        };
        restore.pages += 1;
        if restore.adopting.is_some() {
            self.listed_for_adoption(page, cx);
            return;
        }
        let there = |ids: &[String]| known.as_ref().is_some_and(|known| ids.contains(known));
        match page {
            Some((ids, _)) if there(ids) => {
                if let Some(mut error) = restore.error_before_lookup.take() {
                    let said = &error.message;
                    error.message =
                        format!("{said}; the agent still lists the session; {RECOVERY_ADVICE}");
                    self.opening_failed(&error, cx);
                }
            }
            Some((_, Some(cursor))) if restore.pages < PAGES => {
                self.request_list(Some(cursor), cx);
            }
            _ => self.continue_restore(cx),
        }
    }

    /// Looks up a session to adopt in the agent's list, because the agent reported a load but replayed no
    /// message. Returns `false` if the agent has no list.
    pub(super) fn doubt_adopted(&mut self, agent_session: &str, cx: &mut Cx<'_>) -> bool {
        if !can_list(cx) {
            return false;
        }
        let Stage::Opening { restore, .. } = &mut self.stage else {
            return false;
        };
        restore.adopting = Some(agent_session.to_owned());
        restore.pages = 0;
        self.request_list(None, cx);
        true
    }

    /// Handles a page of the agent's session list while a session is being adopted.
    fn listed_for_adoption(&mut self, page: ListPage<'_>, cx: &mut Cx<'_>) {
        let Stage::Opening { restore, call, .. } = &mut self.stage else {
            return;
        };
        *call = None;
        let Some(agent_session) = restore.adopting.take() else {
            return;
        };
        match page {
            Some((ids, _)) if ids.contains(&agent_session) => {
                self.agent_has_session(agent_session, Adoption::Listed, cx);
            }
            Some((_, Some(cursor))) if restore.pages < PAGES => {
                restore.adopting = Some(agent_session);
                self.request_list(Some(cursor), cx);
            }
            Some((_, None)) => {
                let message = format!(
                    "the agent does not have session {agent_session:?}: it replayed no messages, and its list of \
                         sessions does not contain the id"
                );
                let error = Error::new(ErrorKind::SessionNotFound, message);
                let may_be_new = restore.strategy.allows(Rung::New);
                let restore_plan = restore.restore_plan.get_or_insert_default();
                restore_plan.note(Rung::Load, &error);
                cx.close_at_agent(&agent_session);
                if may_be_new {
                    self.continue_restore(cx);
                    return;
                }
                let message = format!(
                    "{}; list the agent's ids with session/list and `agent: true`, or {RECOVERY_ADVICE}",
                    error.message
                );
                let error = Error::new(ErrorKind::SessionNotFound, message);
                self.opening_failed(&error, cx);
            }
            _ => self.agent_has_session(agent_session, Adoption::NotListed, cx),
        }
    }
}

/// Returns `true` if the agent can list its sessions.
fn can_list(cx: &Cx<'_>) -> bool {
    cx.agent.ready().is_some_and(|info| info.capabilities.list)
}
