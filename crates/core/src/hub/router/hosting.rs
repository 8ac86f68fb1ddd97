//! Files and terminals that acpipe serves: events of the host, and cleanup after sessions.

use super::Router;
use crate::effect::Effect;
use crate::hub::cx::HubCx;
use acpipe_model::host::HostEvent;

pub fn handle(router: &mut Router, event: HostEvent, cx: &mut HubCx<'_>) {
    router.hosting.host.handle_event(event, cx.now);
    settle(router, cx);
}

/// Delivers the host's effects and answers.
pub(super) fn settle(router: &mut Router, cx: &mut HubCx<'_>) {
    let effects = router.hosting.host.take_effects().into_iter();
    router.effects.extend(effects.map(Effect::Host));
    for (ticket, answer) in router.hosting.host.take_answers() {
        if let Some(id) = router.hosting.session(ticket).cloned() {
            router.with(&id, cx, |session, cx| {
                session.host_answered(ticket, &answer, cx);
            });
        }
    }
}

/// Performs the host operations that were decided, and ends those of sessions that no longer belong to an
/// agent.
pub fn continue_all(router: &mut Router, cx: &mut HubCx<'_>) {
    for id in router.hosting.take_decided_sessions() {
        router.with(&id, cx, |session, cx| {
            session.do_host_decisions(cx);
        });
    }
    for id in router.hosting.sessions() {
        sweep(router, &id, cx);
    }
}

fn sweep(router: &mut Router, id: &str, cx: &mut HubCx<'_>) {
    let agent = router.sessions.get(id).map(|session| session.agent);
    let connection = agent.and_then(|agent| router.agents.get(agent).connection());
    // A session that is being opened already belongs to the agent.
    let is_live = connection.is_some_and(|c| !c.is_stopping() && c.directory.has_session(id));
    router.with(id, cx, |session, cx| {
        if is_live {
            session.end_host_calls(true, cx);
        } else {
            session.end_host_calls(false, cx);
        }
    });
    if !is_live {
        router.hosting.host.release_session(id);
        settle(router, cx);
    }
}

pub fn show_terminals(router: &mut Router, cx: &mut HubCx<'_>) {
    for (id, terminal) in router.hosting.host.unreported(cx.now) {
        router.with(&id, cx, |session, cx| {
            let talk = &mut session.talk;
            let host = &mut cx.hosting.host;
            talk.turns
                .show_terminal(terminal, host, &mut talk.output, cx.clients);
        });
    }
}
