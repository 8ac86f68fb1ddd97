//! Requests of agents to clients: permissions, elicitations, files and terminals, each passed to its session.

use crate::agent::Call;
use crate::hub::cx::HubCx;
use crate::hub::router::Router;
use crate::ids::AgentRef;
use crate::session::{RequestOfAgent, denies_question};
use crate::sessions::Sessions;
use acpipe_model::decision::{Decision, DecisionSource};
use acpipe_model::dialect::AgentAnswer;
use acpipe_model::error::{Error, ErrorKind};
use acpipe_model::event::{Elicitation, HostRequestReceived, Permission};
use acpipe_model::limits::Timeout;
use acpipe_policy::Effect;
use tracing::{debug, warn};

pub(super) fn url_completed(sessions: &mut Sessions, id: &str, cx: &mut HubCx<'_>) {
    let mut known = false;
    sessions.for_each_awake(|session| {
        known |= session
            .talk
            .turns
            .url_completed(id, &mut session.talk.output, cx.clients);
    });
    if !known {
        debug!(id, "URL of an unknown turn was opened");
    }
}

pub(super) fn permission(
    router: &mut Router,
    agent: AgentRef,
    mut permission: Permission<'_>,
    cx: &mut HubCx<'_>,
) {
    let found = router.route(agent, &permission.session);
    let asked = found.and_then(|(id, subagent)| {
        router.with(&id, cx, |session, cx| {
            let request = RequestOfAgent::Permission(&mut permission);
            session.asked(subagent.as_deref(), request, cx);
        })
    });
    if asked.is_none() {
        let session = &permission.session;
        warn!(%session, "refused a question of a session that is not open");
        let cancelled = Decision::cancelled(DecisionSource::End);
        if let Some(connection) = router.agents_mut().get_mut(agent).connection_mut() {
            connection.answer(&permission.key, AgentAnswer::Permission(&cancelled));
        }
    }
}

pub(super) fn judge_call(
    router: &mut Router,
    agent: AgentRef,
    mut call: Permission<'_>,
    cx: &mut HubCx<'_>,
) {
    let found = router.route(agent, &call.session);
    let judged = found.and_then(|(id, subagent)| {
        router.with(&id, cx, |session, cx| {
            session.asked(subagent.as_deref(), RequestOfAgent::Hook(&mut call), cx);
        })
    });
    if judged.is_none() {
        warn!(session = %call.session, "refused a tool of a session that is not open");
        if let Some(connection) = router.agents_mut().get_mut(agent).connection_mut() {
            connection.answer(&call.key, AgentAnswer::Hook(Effect::Deny));
        }
    }
}

/// Routes an elicitation. The agent's machine handles one that belongs to no session.
pub(super) fn elicitation(
    router: &mut Router,
    agent: AgentRef,
    asked: Elicitation<'_>,
    cx: &mut HubCx<'_>,
) {
    let named = asked.session.as_deref();
    let named = named.and_then(|session| router.route(agent, session));
    let (session, subagent) = named.unzip();
    let prompted = || match router.agents().call(agent, asked.call?)? {
        Call::Prompt { session } => Some(session.clone()),
        _ => None,
    };
    if let Some(id) = session.or_else(prompted) {
        router.with(&id, cx, |session, cx| {
            let subagent = subagent.flatten();
            session.asked(subagent.as_deref(), RequestOfAgent::Elicitation(asked), cx);
        });
        return;
    }
    let denied = denied_in_turn(router, agent, &asked.elicitation.message);
    let is_asked = router.with_agent(agent, cx, |agent, cx| {
        agent.ask_without_session(asked, denied, cx)
    });
    if is_asked {
        wait_for_user(router, agent);
    }
}

/// Returns the rule by which a session of the agent declines a question that names no session: each one that runs a turn
/// may have caused it.
fn denied_in_turn(router: &mut Router, agent: AgentRef, message: &str) -> Option<String> {
    let definition = router.agents().get(agent).definition();
    let policy = router.shared().settings.policy_of(definition).clone();
    let mut denied = None;
    router.sessions_mut().for_each_awake(|session| {
        if session.agent == agent && denied.is_none() {
            denied = denies_question(message, &policy, &session.talk);
        }
    });
    denied
}

/// Extends the timeouts of calls to the agent by the time that the user has to answer an elicitation
/// outside of an open session.
fn wait_for_user(router: &mut Router, agent: AgentRef) {
    let limits = router.agents().get(agent).limits(&router.shared().settings);
    let Some(by) = limits.of(Timeout::Answer) else {
        return;
    };
    router.agents_mut().get_mut(agent).wait_for_user(by);
    router.sessions_mut().for_each_awake(|session| {
        if session.is_opening() && session.agent == agent {
            session.postpone(by);
        }
    });
}

pub(super) fn host_request(
    router: &mut Router,
    agent: AgentRef,
    wanted: HostRequestReceived<'_>,
    cx: &mut HubCx<'_>,
) {
    let HostRequestReceived {
        session,
        key,
        request,
        method,
        acp,
    } = wanted;
    let found = router.route(agent, &session).map(|(id, _)| id);
    let id = found.filter(|id| router.sessions().contains_key(id));
    if let Some(id) = id {
        let original = acp.map(|params| (&*method, params));
        router.with(&id, cx, |session, cx| {
            session.asked(None, RequestOfAgent::Host(key, request, original), cx);
        });
        return;
    }
    let message =
        format!("session {session:?} not found: acpipe cannot serve files or terminals for it");
    let error = Error::new(ErrorKind::InvalidParams, message);
    if let Some(connection) = router.agents_mut().get_mut(agent).connection_mut() {
        connection.answer(&key, AgentAnswer::Host(Err(&error)));
    }
}
