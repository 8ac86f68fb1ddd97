//! Routing of tool calls that cannot be read, or whose session is not known.

use super::Hub;
use super::cx::HubCx;
use crate::core::event::LostCall;
use crate::core::ids::AgentRef;

impl Hub {
    /// Reports a call whose message cannot be read: in the turn of its session, or if that is not known, in all turns
    /// of the agent.
    pub(super) fn call_lost(&mut self, agent: AgentRef, lost: &LostCall, cx: &mut HubCx<'_>) {
        let connection = self.router.agents().get(agent).connection();
        let named = lost.session.as_deref();
        let owner = named.and_then(|named| connection?.directory.owner(named).cloned());
        let sessions = owner.map_or_else(|| self.router.sessions().ids_of(agent), |id| vec![id]);
        for id in sessions {
            self.router.with(&id, cx, |session, cx| {
                session.report_lost_call(lost, cx);
            });
        }
    }

    /// Reports that the agent runs a tool in a session that acpipe does not know, once for each of them.
    pub(super) fn call_of_unknown_session(
        &mut self,
        agent: AgentRef,
        agent_session: &str,
        cx: &mut HubCx<'_>,
    ) {
        let connection = self.router.agents().get(agent).connection();
        if connection.is_none_or(|connection| connection.directory.is_reported(agent_session)) {
            return;
        }
        let why = format!(
            "the agent uses a tool in its session {agent_session:?}, which acpipe does not know"
        );
        let mut is_reported = false;
        for id in self.router.sessions().ids_of(agent) {
            let reported = self
                .router
                .with(&id, cx, |session, cx| session.report_unknown_call(&why, cx));
            is_reported |= reported == Some(true);
        }
        if is_reported
            && let Some(connection) = self.router.agents_mut().get_mut(agent).connection_mut()
        {
            connection.directory.note_reported(agent_session);
        }
    }
}
