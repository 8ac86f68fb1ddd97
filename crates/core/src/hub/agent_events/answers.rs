//! Responses of agents to calls that are not about a turn: the handshake, sign-ins, closed and renamed sessions.

use crate::agent::Call;
use crate::hub::cx::HubCx;
use crate::hub::router::Router;
use crate::ids::AgentRef;
use crate::session::RestoreEvent;
use acpipe_model::event::{AgentInfo, CallId};

/// Completes the handshake and opens the agent's sessions.
pub(super) fn agent_ready(
    router: &mut Router,
    agent: AgentRef,
    info: Box<AgentInfo>,
    cx: &mut HubCx<'_>,
) {
    if router.with_agent(agent, cx, |agent, cx| agent.ready(info, cx)) {
        for id in router.sessions().ids_of(agent) {
            router.with(&id, cx, |session, cx| {
                session.restore(RestoreEvent::Ready, cx);
            });
        }
    }
}

/// Handles the success of a sign-in, sign-out or close.
pub(super) fn call_done(router: &mut Router, agent: AgentRef, call: CallId, cx: &mut HubCx<'_>) {
    match router.agents_mut().take_call(agent, call) {
        Some(Call::Sign) => {
            router.with_agent(agent, cx, |agent, cx| {
                agent.sign_in_answered(call, &Ok(()), cx);
            });
        }
        Some(Call::Close { agent_session }) => {
            closed(router, agent, &agent_session, cx);
        }
        _ => {}
    }
}

/// Handles a session that the agent has closed: opens the sessions that waited for that.
pub(super) fn closed(
    router: &mut Router,
    agent: AgentRef,
    agent_session: &str,
    cx: &mut HubCx<'_>,
) {
    if let Some(connection) = router.agents_mut().get_mut(agent).connection_mut() {
        connection.directory.closed(agent_session);
    }
    let own = router.sessions().of(agent);
    let awaited_close = own.filter(|session| session.stage.awaited_close() == Some(agent_session));
    let awaited_close: Vec<String> = awaited_close.map(|session| session.id.clone()).collect();
    for id in awaited_close {
        router.with(&id, cx, |session, cx| {
            session.restore(RestoreEvent::Ready, cx);
        });
    }
}

pub(super) fn session_renamed(
    router: &mut Router,
    agent: AgentRef,
    agent_session: &str,
    to: String,
    cx: &mut HubCx<'_>,
) {
    let connection = router.agents_mut().get_mut(agent).connection_mut();
    let id = connection.and_then(|c| c.directory.rename(agent_session, to.clone()));
    if let Some(id) = id {
        router.with(&id, cx, |session, cx| session.renamed(to, cx));
    }
}
