//! Commands on an agent: its connection, environment and sign-in.

use crate::client::{Reply, Token};
use crate::hub::agent_events::AgentEvents;
use crate::hub::catalog::Catalog;
use crate::hub::cx::HubCx;
use crate::hub::lifecycle::total_limits;
use crate::hub::lifecycle::total_limits::{CallPlace, GivenLimit, TotalLimits};
use crate::hub::router::Router;
use crate::ids::AgentRef;
use acpipe_model::error::Error;
use acpipe_protocol::wire::{
    AgentParams, AuthenticateParams, ConnectParams, UpdateEnvironmentParams, Variables,
};

/// Connects an agent. A new name with a command adds an agent.
pub(super) fn connect(
    catalog: &mut Catalog,
    router: &mut Router,
    limits: &mut TotalLimits,
    token: Token,
    p: ConnectParams,
    cx: &mut HubCx<'_>,
) -> Result<(), Error> {
    total_limits::check(p.timeout_ms)?;
    let has_command = p.command.is_some() || p.protocol.is_some();
    let gives_list = !p.options.allowed_tools.is_empty();
    let agent = catalog.agent_to_connect(router, &p)?;
    if router.shared().is_resident {
        let scopes = catalog.scopes();
        scopes.check_options_of_other(router.agents(), agent, &p.options)?;
    }
    let limit = GivenLimit {
        timeout_ms: p.timeout_ms,
        elapsed_ms: p.elapsed_ms,
    };
    limits.limit(token, limit, CallPlace::Agent(agent), cx);
    router.with_agent(agent, cx, |agent, cx| agent.connect(token, p, cx))?;
    if has_command {
        catalog.share_command(router, agent, gives_list);
    }
    // Variables of this call end with the connection.
    note_change(catalog, router, agent, Variables::default());
    Ok(())
}

/// Notes that the client whose call is being handled changed an agent, and set these variables for good.
fn note_change(catalog: &mut Catalog, router: &mut Router, agent: AgentRef, set: Variables) {
    let agents = router.agents_mut();
    catalog.scopes_mut().note_change(agents, agent, set);
}

/// Stops an agent in order. It is not restarted.
pub(super) fn disconnect(
    router: &mut Router,
    events: &mut AgentEvents,
    token: Token,
    agent: AgentRef,
    cx: &mut HubCx<'_>,
) {
    router.agents_mut().get_mut(agent).forbid_restart();
    events.stop_agent(router, agent, cx);
    router.with_agent(agent, cx, |agent, cx| agent.disconnect(token, cx));
}

pub(super) fn status(
    catalog: &Catalog,
    router: &mut Router,
    token: Token,
    p: &AgentParams,
    cx: &mut HubCx<'_>,
) -> Result<(), Error> {
    let agent = catalog.agent_named(router, p.agent.as_deref())?;
    router.with_agent(agent, cx, |agent, cx| {
        agent.request_status(token, cx);
    });
    Ok(())
}

pub(super) fn environment(
    catalog: &Catalog,
    router: &mut Router,
    token: Token,
    p: &AgentParams,
    cx: &mut HubCx<'_>,
) -> Result<(), Error> {
    let agent = catalog.agent_named(router, p.agent.as_deref())?;
    let environment = router.agents().get(agent).environment();
    cx.clients.reply(token, Ok(Reply::Environment(environment)));
    Ok(())
}

pub(super) fn update_environment(
    catalog: &mut Catalog,
    router: &mut Router,
    token: Token,
    p: UpdateEnvironmentParams,
    cx: &mut HubCx<'_>,
) -> Result<(), Error> {
    let agent = catalog.agent_named(router, p.agent.as_deref())?;
    let (busy, ahead) = (
        router.sessions().are_busy(agent),
        router.sessions().queued_prompts(agent),
    );
    let unset = p.unset.iter().map(|name| (name.clone(), None));
    let set = p.set.0.clone().into_iter().chain(unset).collect();
    router.with_agent(agent, cx, |agent, cx| {
        agent.update_environment(token, p, (busy, ahead), cx)
    })?;
    note_change(catalog, router, agent, set);
    Ok(())
}

pub(super) fn authenticate(
    catalog: &mut Catalog,
    router: &mut Router,
    token: Token,
    p: AuthenticateParams,
    cx: &mut HubCx<'_>,
) -> Result<(), Error> {
    let agent = catalog.agent_named(router, p.agent.as_deref())?;
    let ahead = router.sessions().queued_prompts(agent);
    let set = p.env.clone();
    router.with_agent(agent, cx, |agent, cx| {
        agent.authenticate(token, p, ahead, cx)
    })?;
    note_change(catalog, router, agent, set);
    Ok(())
}

pub(super) fn logout(
    catalog: &Catalog,
    router: &mut Router,
    token: Token,
    p: &AgentParams,
    cx: &mut HubCx<'_>,
) -> Result<(), Error> {
    let agent = catalog.agent_named(router, p.agent.as_deref())?;
    router.with_agent(agent, cx, |agent, cx| agent.logout(token, cx))?;
    Ok(())
}
