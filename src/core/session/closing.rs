//! Closing of sessions at the agent, and sessions that the agent cannot close.
//! [`directory`](crate::core::agent::directory) explains why a session waits for its own close.

use super::restore::Adoption;
use super::{SessionMachine, Stage};
use crate::core::cx::Cx;
use crate::core::idle_timer::IdleTimer;
use crate::proto::wire::Rung;

impl SessionMachine {
    /// Releases the session at the agent: sends `session/close` if the agent supports it.
    pub fn release_at_agent(&mut self, cx: &mut Cx<'_>) {
        let Some(agent_session) = self.talk.agent_session().map(str::to_owned) else {
            return;
        };
        self.talk.leave_directory(cx);
        self.host_calls
            .end_host_calls(&mut self.decisions, &mut self.talk, cx);
        let closes = cx.agent.ready().is_none_or(|info| info.capabilities.close);
        if let (false, Some(connection)) = (closes, &mut cx.agent.connection) {
            let state = self.talk.settings.state().clone();
            connection
                .directory
                .leave_open(agent_session.clone(), state);
        }
        cx.close_at_agent(&agent_session);
    }

    /// Takes over a session that is still open in the agent's process although the agent did not load it.
    /// Returns `false` if no such session is open.
    pub(super) fn take_left_open(&mut self, cx: &mut Cx<'_>) -> bool {
        let key = cx.agent.identity();
        let (Some(known), Some(connection)) =
            (self.talk.known.id_of(&key), &mut cx.agent.connection)
        else {
            return false;
        };
        let Some(left) = connection.directory.take_left_open(known) else {
            return false;
        };
        let Stage::Opening(restore) = &mut self.talk.stage else {
            return false;
        };
        restore.take_over();
        let early = connection.directory.take_early(&left.agent_session);
        for state in [&left.state, &early.state] {
            self.talk.settings.extend_state(state);
            restore.report_earlier(state, None);
        }
        let agent_session = left.agent_session;
        connection
            .directory
            .add(agent_session.clone(), self.talk.id.clone());
        self.agent_has_session(agent_session, Adoption::Unknown, cx);
        true
    }

    /// Waits while the agent is still closing the session. Returns `true` if the session waits.
    pub(super) fn wait_for_close(&mut self, known: Option<&str>, cx: &Cx<'_>) -> bool {
        let directory = cx.agent.connection.as_ref().map(|c| &c.directory);
        let (Some(known), Some(directory)) = (known, directory) else {
            return false;
        };
        let Some(until) = directory.closing_until(known, cx.now) else {
            return false;
        };
        let Stage::Opening(restore) = &mut self.talk.stage else {
            return false;
        };
        if !matches!(restore.next(), Some(Rung::Resume | Rung::Load)) {
            return false;
        }
        restore.wait_for_close(known, until);
        self.talk.idle_timer = Some(IdleTimer::begin(cx.now, None));
        true
    }

    /// Continues the restore after a close that was not answered in time. Returns `false` if the session did
    /// not wait for a close.
    pub(super) fn close_overdue(&mut self, cx: &mut Cx<'_>) -> bool {
        let Some(agent_session) = self.awaited_close().map(str::to_owned) else {
            return false;
        };
        if let Some(connection) = &mut cx.agent.connection {
            connection.directory.give_up_closing(&agent_session);
        }
        if let Stage::Opening(restore) = &mut self.talk.stage {
            restore.give_up_close();
        }
        self.continue_restore(cx);
        true
    }

    /// The agent session id whose close the session waits for.
    #[must_use]
    pub fn awaited_close(&self) -> Option<&str> {
        match &self.talk.stage {
            Stage::Opening(restore) => restore.awaited_close(),
            Stage::Live { .. } | Stage::Resting => None,
        }
    }
}
