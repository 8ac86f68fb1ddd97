//! Verification of an agent's claims about a session against its session list: a refusal of a session that it
//! still lists, and a load of a session that it does not have.

use super::restore::{ListPage, Listed};
use super::{SessionMachine, Stage};
use crate::core::agent::connection::Call;
use crate::core::cx::Cx;
use crate::core::dialect::AgentCall;
use crate::core::error::{Error, ErrorKind};
use crate::core::limits::Timeout;
use crate::core::restore_plan::{allows_next_strategy, describe_attempts};
use crate::proto::wire::{Attempt, Rung};

/// Advice that helps whatever the failure of a session is.
pub(super) const RECOVERY_ADVICE: &str =
    "call session/ensure with strategy \"new\" to continue without its memory";

/// Creates the error of a session for which no strategy is left.
pub(super) fn nothing_left(id: &str, failed: &[Attempt]) -> Error {
    let tried = match failed {
        [] => "no strategy is left to try".to_owned(),
        failed => describe_attempts(failed),
    };
    let message = format!("cannot restore session {id:?}: {tried}; {RECOVERY_ADVICE}");
    Error::new(ErrorKind::SessionNotFound, message)
}

impl SessionMachine {
    /// Handles a failed call for the session: tries the next strategy, unless the error rules that out.
    pub fn open_refused(&mut self, mut error: Error, cx: &mut Cx<'_>) {
        let Stage::Opening(restore) = &mut self.talk.stage else {
            return;
        };
        restore.answered();
        let rung = restore.rung().unwrap_or(Rung::New);
        if rung == Rung::New || !allows_next_strategy(&error) || restore.next().is_none() {
            if rung != Rung::New && allows_next_strategy(&error) {
                error.message = format!("{}; {RECOVERY_ADVICE}", error.message);
            }
            self.opening_failed(&error, cx);
            return;
        }
        restore.note_failed(rung, &error);
        restore.history_mut().expect(None);
        let is_last = restore.next() == Some(Rung::New);
        if is_last && self.take_left_open(cx) {
            return;
        }
        // A new session in place of one that the agent still has would hide its history.
        if is_last
            && can_list(cx)
            && let Stage::Opening(restore) = &mut self.talk.stage
        {
            restore.look_up(error);
            self.request_list(None, cx);
            return;
        }
        self.continue_restore(cx);
    }

    fn request_list(&mut self, cursor: Option<&str>, cx: &mut Cx<'_>) {
        let call = cx.next_call();
        let limit = cx.limits().of(Timeout::Open);
        if let Some(connection) = &mut cx.agent.connection {
            let session = self.talk.id.clone();
            connection.calls.insert(call, Call::List { session });
            let cwd = Some(self.talk.cwd.as_str());
            connection.tell(AgentCall::List { call, cwd, cursor });
            self.talk.opening(call, cx.now, limit);
        }
    }

    /// Handles a page of the agent's session list.
    pub fn listed(&mut self, page: ListPage<'_>, cx: &mut Cx<'_>) {
        let known = self.talk.known.id_of(&cx.agent.identity());
        let Stage::Opening(restore) = &mut self.talk.stage else {
            return;
        };
        match restore.listed(page, known) {
            Some(Listed::More) => self.request_list(page.and_then(|(_, cursor)| cursor), cx),
            Some(Listed::StillThere(mut error)) => {
                let said = &error.message;
                error.message =
                    format!("{said}; the agent still lists the session; {RECOVERY_ADVICE}");
                self.opening_failed(&error, cx);
            }
            Some(Listed::Gone) => self.continue_restore(cx),
            Some(Listed::Adopted(agent_session, adoption)) => {
                self.agent_has_session(agent_session, adoption, cx);
            }
            Some(Listed::NotThere(agent_session)) => self.cannot_adopt(&agent_session, cx),
            None => {}
        }
    }

    /// Looks up a session to adopt in the agent's list, because the agent reported a load but replayed no
    /// message. Returns `false` if the agent has no list.
    pub(super) fn doubt_adopted(&mut self, agent_session: &str, cx: &mut Cx<'_>) -> bool {
        if !can_list(cx) {
            return false;
        }
        let Stage::Opening(restore) = &mut self.talk.stage else {
            return false;
        };
        restore.look_up_adopted(agent_session.to_owned());
        self.request_list(None, cx);
        true
    }

    /// Handles the lack of the session that was to be adopted.
    fn cannot_adopt(&mut self, agent_session: &str, cx: &mut Cx<'_>) {
        let Stage::Opening(restore) = &mut self.talk.stage else {
            return;
        };
        let message = format!(
            "the agent does not have session {agent_session:?}: it replayed no messages, and its list of \
                 sessions does not contain the id"
        );
        let error = Error::new(ErrorKind::SessionNotFound, message);
        restore.note_failed(Rung::Load, &error);
        let may_be_new = restore.may_be_new();
        cx.close_at_agent(agent_session);
        if may_be_new {
            self.continue_restore(cx);
            return;
        }
        let message = format!(
            "{}; list the agent's ids with session/list and `agent: true`, or {RECOVERY_ADVICE}",
            error.message
        );
        self.opening_failed(&Error::new(ErrorKind::SessionNotFound, message), cx);
    }
}

/// Returns `true` if the agent can list its sessions.
fn can_list(cx: &Cx<'_>) -> bool {
    cx.agent.ready().is_some_and(|info| info.capabilities.list)
}
