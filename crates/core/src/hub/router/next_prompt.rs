//! Prompts that go to an agent, and the agent that a session needs for them.

use super::Router;
use super::panics::catch_in_call;
use super::room::make_room;
use crate::agent::AgentSpec;
use crate::agent_spec::identity;
use crate::hub::agents::Agents;
use crate::hub::cx::HubCx;
use crate::ids::AgentRef;
use crate::sessions::Sessions;
use acpipe_model::error::{Error, no_session, out_of_order};
use acpipe_protocol::wire::{AgentSource, Strategy};

/// Sends the next prompts of a session that can take one. If its agent is lost, restores the session
/// first.
pub(super) fn next_prompt(router: &mut Router, id: &str, cx: &mut HubCx<'_>) {
    let Some(session) = router.sessions.get(id) else {
        return;
    };
    let agent = session.agent;
    if session.prompting.waits_for_agent(&session.talk) && !router.agents.get(agent).is_stopping() {
        let room = make_room(router, id, agent, cx);
        let needed = room.and_then(|()| ensure_agent(router, id, agent, cx));
        router.with(id, cx, |session, cx| match needed {
            Ok(()) => session.open(Strategy::Auto, cx),
            Err(error) => session.cannot_open(&error, cx),
        });
        return;
    }
    // After a prompt that cannot be sent, the next one is tried.
    while let Some(queued) = router
        .with(id, cx, |session, cx| {
            session.prompting.next_prompt(&mut session.talk, cx)
        })
        .flatten()
    {
        catch_in_call(router, queued.token, cx, |router, cx| {
            let begun = router.with(id, cx, |session, cx| {
                session.notify_queue(cx.clients);
                session.begin_turn(queued, cx)
            });
            begun.unwrap_or_else(|| Err(no_session(id)))
        });
    }
}

/// Drops the list of allowed tools of a session that is about to be opened again, unless a client that opened the
/// session with it is still connected.
pub fn drop_unclaimed_list(router: &mut Router, id: &str) {
    let Some(session) = router.sessions.get(id) else {
        return;
    };
    let clients = &router.shared.clients;
    let mut listing = session.talk.terms.listing_clients().iter();
    if listing.any(|client| clients.get(*client).is_some()) {
        return;
    }
    let own = router.agents.get(session.agent).spec().options.clone();
    if let Some(session) = router.sessions.get_mut(id) {
        session.talk.settings.keep_own_list(&own);
    }
}

/// Makes sure that the session's agent is running or being started. The demo agent never takes over a
/// session of another agent.
pub fn ensure_agent(
    router: &mut Router,
    id: &str,
    agent: AgentRef,
    cx: &mut HubCx<'_>,
) -> Result<(), Error> {
    check_not_taken_by_demo(&router.agents, &router.sessions, id, agent)?;
    let configured = &router.agents.get(agent).definition().spec;
    let stored = router
        .sessions
        .get(id)
        .and_then(|s| s.known.command.as_deref().cloned());
    let own = stored.and_then(|stored| AgentSpec::of_stored(stored, configured, &configured.env));
    router.with_agent(agent, cx, |agent, cx| agent.need(own, cx))
}

/// Returns an error if the demo agent is connected, since no agent was named, and another agent has the
/// session.
fn check_not_taken_by_demo(
    agents: &Agents,
    sessions: &Sessions,
    id: &str,
    agent: AgentRef,
) -> Result<(), Error> {
    let machine = agents.get(agent);
    let demo = machine.connected_spec();
    let demo = demo.filter(|spec| spec.source == AgentSource::Demo);
    let session = sessions.get(id);
    // The demo agent may have had the session under its name, or as the default agent without one.
    let other = demo.and_then(|demo| {
        let known = &session?.known;
        known.other_than(&identity(&machine.definition().name, demo))?;
        known.other_than(&demo.key())
    });
    match other {
        None => Ok(()),
        Some(other) => Err(out_of_order(&format!(
            "session {id:?} belongs to the agent {other:?}, but the demo agent is connected; call \
                 agent/disconnect, then agent/connect with that agent's command"
        ))),
    }
}
