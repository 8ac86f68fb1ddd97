//! Updates of agents, each passed to its session. The ids by which an agent names tool calls are replaced by those of
//! the calls, so that nothing behind it has the others.

use crate::client_sink::ClientSinks;
use crate::hub::cx::HubCx;
use crate::hub::router::Router;
use crate::ids::AgentRef;
use crate::session::{Unapproved, UpdateOrigin};
use crate::turn::{Renamed, with_call_id_of_chunk};
use acpipe_dialects::with_call_ids;
use acpipe_model::event::{LostCall, Original, Update};
use acpipe_protocol::wire::Protocol;

/// Routes an update that names no tool call. The hot path is an update of a running turn.
pub(super) fn take_update(
    router: &mut Router,
    agent: AgentRef,
    agent_session: &str,
    update: &Update<'_>,
    original: Original<'_>,
    cx: &mut HubCx<'_>,
) -> bool {
    router.shared_mut().counters.updates += 1;
    let may_have_run = match router
        .routed(agent, agent_session)
        .and_then(|session| session.turn_update(update, original, cx.now, cx.clients))
    {
        Some(may_have_run) => may_have_run,
        None => other_update(router, agent, agent_session, update, original, cx),
    };
    if router.shared().clients.have_acp() {
        pass_update(router, agent, agent_session, update, original, cx.clients);
    }
    may_have_run
}

/// Passes an update on to the clients of its session that speak ACP.
fn pass_update(
    router: &mut Router,
    agent: AgentRef,
    agent_session: &str,
    update: &Update<'_>,
    original: Original<'_>,
    clients: &mut dyn ClientSinks,
) {
    let is_acp = router.agents().get(agent).spec().protocol == Protocol::Acp;
    let found = router.routed_with_subagents(agent, agent_session);
    if let Some((session, is_of_subagent)) = found {
        let origin = UpdateOrigin {
            session: agent_session,
            is_of_subagent,
            is_acp,
        };
        session.pass_update(origin, update, original, clients);
    }
}

/// Routes an update that does not belong to a running turn. Returns `true` if a tool may have run without
/// a permission request.
fn other_update(
    router: &mut Router,
    agent: AgentRef,
    agent_session: &str,
    update: &Update<'_>,
    original: Original<'_>,
    cx: &mut HubCx<'_>,
) -> bool {
    let passes_on = router.shared().clients.have_acp()
        && router.agents().get(agent).spec().protocol == Protocol::Acp;
    let Some(connection) = router.agents_mut().get_mut(agent).connection_mut() else {
        return false;
    };
    let Some(route) = connection.directory.route(agent_session) else {
        let directory = &mut connection.directory;
        directory.note_early(agent_session, (update, original), passes_on, cx.now);
        if matches!(update, Update::Tool(_)) {
            call_of_unknown_session(router, agent, agent_session, cx);
        }
        return false;
    };
    let taken = router.with(&route.session, cx, |session, cx| {
        session.other_update(route.subagent.as_deref(), update, original, cx)
    });
    taken.unwrap_or(false)
}

/// Routes an update that may name tool calls.
pub(super) fn update_of_call(
    router: &mut Router,
    agent: AgentRef,
    agent_session: &str,
    mut update: Update<'_>,
    original: Original<'_>,
    cx: &mut HubCx<'_>,
) {
    let renamed = identify_calls(router, agent, agent_session, &mut update);
    let new_id = |id: &str| {
        let mut renamed = renamed.iter();
        renamed.find_map(|(of, own)| (of == id).then(|| own.clone()))
    };
    if renamed.is_empty() {
        take_named(router, agent, agent_session, &update, original, cx);
        return;
    }
    let protocol = router.agents().get(agent).spec().protocol;
    let line = with_call_ids(protocol, original.line, new_id);
    let original = Original {
        line: line.as_deref().unwrap_or(original.line),
        ..original
    };
    let json = match &update {
        Update::Chunk { json, .. } => with_call_id_of_chunk(json, new_id),
        _ => None,
    };
    let chunk = json.as_ref().and_then(|json| {
        let chunk = Box::new(serde_json::from_str(json.get()).ok()?);
        Some(Update::Chunk { json, chunk })
    });
    let update = chunk.as_ref().unwrap_or(&update);
    take_named(router, agent, agent_session, update, original, cx);
}

fn identify_calls(
    router: &mut Router,
    agent: AgentRef,
    agent_session: &str,
    update: &mut Update<'_>,
) -> Renamed {
    let machine = router.agents().get(agent);
    // ACP has ids of sessions for subagents.
    let is_named = update.names_call()
        && !(machine.spec().protocol == Protocol::Acp && matches!(update, Update::Subagent { .. }));
    if !is_named {
        return Renamed::new();
    }
    let found = router.routed_with_subagents(agent, agent_session);
    found.map_or_else(Renamed::new, |(session, is_of_subagent)| {
        let subagent = is_of_subagent.then_some(agent_session);
        session.identify_calls(subagent, update)
    })
}

/// Routes an update whose ids of tool calls are those of the calls.
fn take_named(
    router: &mut Router,
    agent: AgentRef,
    agent_session: &str,
    update: &Update<'_>,
    original: Original<'_>,
    cx: &mut HubCx<'_>,
) {
    let has_terminals = !router.hosting().host.is_idle();
    if has_terminals && matches!(update, Update::Tool(tool) if tool.ends()) {
        // The output of a terminal is part of the tool's result.
        router.with_routed(agent, agent_session, cx, |session, cx| {
            let talk = &mut session.talk;
            let host = &mut cx.hosting.host;
            talk.turns
                .show_terminals(host, &mut talk.output, cx.clients);
        });
    }
    let may_have_run = take_update(router, agent, agent_session, update, original, cx);
    if let Update::Tool(tool) = update
        && tool.content.is_some()
    {
        // The tool call may show a terminal from now on.
        router.hosting_mut().host.report_now(cx.now);
    }
    if may_have_run {
        let connection = router.agents().get(agent).connection();
        let id = connection.and_then(|c| c.directory.owner(agent_session));
        if let Some(id) = id.cloned() {
            router.with(&id, cx, |session, cx| session.report(Unapproved::Ran, cx));
        }
    }
}

/// Reports a call whose message cannot be read: in the turn of its session, or if that is not known, in all turns
/// of the agent.
pub(super) fn call_lost(router: &mut Router, agent: AgentRef, lost: &LostCall, cx: &mut HubCx<'_>) {
    let connection = router.agents().get(agent).connection();
    let named = lost.session.as_deref();
    let owner = named.and_then(|named| connection?.directory.owner(named).cloned());
    let sessions = owner.map_or_else(|| router.sessions().ids_of(agent), |id| vec![id]);
    for id in sessions {
        router.with(&id, cx, |session, cx| {
            session.report(Unapproved::Lost(lost), cx);
        });
    }
}

/// Reports that the agent runs a tool in a session that acpipe does not know, once for each of them.
fn call_of_unknown_session(
    router: &mut Router,
    agent: AgentRef,
    agent_session: &str,
    cx: &mut HubCx<'_>,
) {
    let connection = router.agents().get(agent).connection();
    if connection.is_none_or(|connection| connection.directory.is_reported(agent_session)) {
        return;
    }
    let why = format!(
        "the agent uses a tool in its session {agent_session:?}, which acpipe does not know"
    );
    let mut is_reported = false;
    for id in router.sessions().ids_of(agent) {
        let reported = router.with(&id, cx, |session, cx| {
            session.report(Unapproved::Unknown(&why), cx)
        });
        is_reported |= reported == Some(true);
    }
    if is_reported && let Some(connection) = router.agents_mut().get_mut(agent).connection_mut() {
        connection.directory.note_reported(agent_session);
    }
}
