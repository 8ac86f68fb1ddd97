//! Implements `session/ensure`: makes a session live at its agent.

use crate::agent::{Connection, Renewal, STOPPING, servers};
use crate::client::{Reply, Token};
use crate::hub::catalog::{Catalog, agent_for, session_names};
use crate::hub::cx::HubCx;
use crate::hub::lifecycle::total_limits;
use crate::hub::lifecycle::total_limits::{CallPlace, GivenLimit, TotalLimits};
use crate::hub::router::{Router, next_prompt, room, storage};
use crate::ids::AgentRef;
use crate::session::{
    Given, RequiredSettings, RestoreEvent, SessionAgents, SessionMachine, Stage, Waiter,
    already_open,
};
use crate::terms::own_lists;
use crate::{options, output_schema};
use acpipe_dialects::traits;
use acpipe_model::error::{Error, ErrorKind, invalid, out_of_order};
use acpipe_model::mcp;
use acpipe_protocol::wire::{
    EnsureParams, McpServer, Memory, Recovery, Rung, SessionOptions, Strategy,
};

pub(super) fn ensure(
    catalog: &mut Catalog,
    router: &mut Router,
    limits: &mut TotalLimits,
    token: Token,
    p: EnsureParams,
    cx: &mut HubCx<'_>,
) -> Result<(), Error> {
    let (id, cwd) = catalog.ensured_id(
        router,
        token.client,
        p.session_id.as_deref(),
        p.cwd.as_deref(),
    )?;
    let id = &id;
    total_limits::check(p.timeout_ms)?;
    let limit = GivenLimit {
        timeout_ms: p.timeout_ms,
        elapsed_ms: p.elapsed_ms,
    };
    limits.limit(token, limit, CallPlace::Session(id.clone()), cx);
    if !router.sessions().contains_key(id) && router.store().has(id)? {
        catalog.reopen(router, id)?;
    }
    let names_agent = p.agent.is_some();
    let (agent, own) = agent_to_open(catalog, router, id, p.agent.as_deref())?;
    let moves = own.is_some_and(|own| own != agent);
    let machine = router.agents().get(agent);
    let stopping = machine.is_stopping();
    if stopping && !machine.renewal().is_some_and(Renewal::is_pending) {
        return Err(out_of_order(STOPPING));
    }
    let adopts = p.agent_session_id.is_some();
    if adopts && router.sessions().contains_key(id) {
        let message = format!(
            "session {id:?} already exists; adopt the agent's session under another sessionId"
        );
        return Err(Error::new(ErrorKind::SessionExists, message));
    }
    let adopted = p.agent_session_id.as_deref();
    if let Some(other) = adopted.and_then(|adopted| open_as(router, agent, adopted)) {
        return Err(already_open(other));
    }
    check_params(&p)?;
    session_names::check_directory(router, id, cwd.as_deref())?;
    session_names::note_default(
        router,
        token.client,
        p.session_id.as_deref(),
        id,
        cwd.as_deref(),
        agent,
    );
    let replaced = router.with(id, cx, |session, cx| {
        session.join(token.client, cx);
        session.replace_opening(&p.strategy, cx)
    });
    let cwd = cwd.or(replaced.flatten());
    let asked = (*p.options).clone();
    if !moves && ensured_already(catalog, router, (id, agent), token, &p, cx)? {
        return catalog.note_opened(router, id, asked, names_agent);
    }
    room::make_room(router, id, agent, cx)?;
    if moves {
        router.with_agent(agent, cx, |agent, cx| agent.need(None, cx))?;
    } else {
        next_prompt::ensure_agent(router, id, agent, cx)?;
    }
    let spec = router.agents().get(agent).spec();
    let (base, protocol) = (spec.cwd.clone(), spec.protocol);
    if p.fork && !traits(protocol).forks {
        return Err(invalid("fork", "ACP agents do not support it"));
    }
    let asked_options = asked_options(router, id, agent, &p.options);
    let options = checked_options(
        catalog,
        router,
        id,
        agent,
        asked_options.clone(),
        &p.mcp_servers,
    )?;
    let caller = catalog.caller_settings_for(router, (id, agent), names_agent, &p.options, &[])?;
    if !router.sessions().contains_key(id) {
        add_session(router, id, agent, cwd.unwrap_or(base), &p, cx)?;
        router.with(id, cx, |session, cx| {
            session.join(token.client, cx);
        });
    }
    if moves {
        let is_resident = router.shared().is_resident;
        catalog.with_session(router, id, cx, |session, cx| {
            session.hand_over(agent, cx)?;
            // Their secrets are those of the client that named them.
            if is_resident {
                session.restoring.withhold_mcp_servers();
            }
            Ok(())
        })?;
    }
    let opening = AskedOpening {
        waiter: Waiter { token, caller },
        asked: asked_options,
        options,
    };
    begin_ensured(router, id, p, opening, cx);
    catalog.note_opened(router, id, asked, names_agent)
}

/// Returns the id of the live session that has this session of the agent, at any process of the agent's program: clients with
/// other settings have another process.
fn open_as<'a>(router: &'a Router, agent: AgentRef, agent_session: &str) -> Option<&'a str> {
    let program = |agent| router.agents().get(agent).spec().key();
    let own = program(agent);
    let mut sessions = router.sessions().values();
    let other = sessions.find(|session| {
        session.talk.agent_session() == Some(agent_session) && program(session.agent) == own
    });
    other.map(|session| session.talk.id.as_str())
}

fn add_session(
    router: &mut Router,
    id: &str,
    agent: AgentRef,
    cwd: String,
    p: &EnsureParams,
    cx: &HubCx<'_>,
) -> Result<(), Error> {
    let log = storage::open_log(router.store_mut(), id)?;
    let mut session = SessionMachine::new(id.to_owned(), agent, cwd, log);
    let identity = router.agents().get(agent).identity();
    let program = router.agents().get(agent).spec().key();
    let given = Given {
        at: &router.shared().time(cx.now),
        created: false,
        program: &program,
    };
    let known = p
        .agent_session_id
        .clone()
        .map(|id| SessionAgents::from_client(identity, id, given));
    session.known = known.unwrap_or_default();
    session.restoring.fork_next(p.fork);
    router.sessions_mut().insert(id.to_owned(), session);
    Ok(())
}

struct AskedOpening {
    waiter: Waiter,
    /// Options that the client asks for; see [`asked_options`].
    asked: SessionOptions,
    /// Checked options of the session.
    options: SessionOptions,
}

fn begin_ensured(
    router: &mut Router,
    id: &str,
    p: EnsureParams,
    opening: AskedOpening,
    cx: &mut HubCx<'_>,
) {
    let AskedOpening {
        waiter,
        asked,
        options,
    } = opening;
    // The client asked to adopt a session; a new one must not take its place.
    let strategy = match p.strategy {
        Strategy::Auto if p.agent_session_id.is_some() => {
            Strategy::Order(vec![Rung::Load, Rung::Resume])
        }
        other => other,
    };
    router.with(id, cx, |session, cx| {
        let protocol = cx.agent.spec.protocol;
        if strategy == Strategy::Only(Rung::New) {
            session.release_at_agent(cx);
        }
        session.prompting.forget_abandoned(&mut session.talk, cx);
        session.end_background(cx);
        if !p.mcp_servers.is_empty() {
            session.restoring.set_mcp_servers(p.mcp_servers);
        }
        if !p.acp.is_empty() {
            session.restoring.set_acp_setup(p.acp);
        }
        let is_new = session.talk.output.log().identity().is_none();
        let required = RequiredSettings::of(&asked, p.strict, is_new);
        session.set_options(options, &asked, protocol);
        session.talk.settings.set_defined(&cx.agent.spec.options);
        session
            .talk
            .terms
            .claim_lists(waiter.token.client, &p.options, &session.talk.output);
        session.begin_opening(strategy, vec![waiter]);
        session.require(required);
        if let Some(connection) = &mut cx.agent.connection {
            connection.directory.remove(&session.id);
        }
        session.restore(RestoreEvent::Ready, cx);
    });
}

/// Returns the agent at which the client whose call is being handled opens a session, and the one that has it. Which client
/// has loaded the session before does not matter.
pub(super) fn agent_to_open(
    catalog: &Catalog,
    router: &mut Router,
    id: &str,
    named: Option<&str>,
) -> Result<(AgentRef, Option<AgentRef>), Error> {
    catalog.choose_agent_again(router, id)?;
    let own = router.sessions().get(id).map(|session| session.agent);
    let agent = match (named, own) {
        (None, Some(own)) => catalog.callers_definition(router, own)?.unwrap_or(own),
        (named, _) => catalog.agent_named(router, named)?,
    };
    let agent = agent_for(router, id, agent);
    Ok((
        agent,
        router.sessions().get(id).map(|session| session.agent),
    ))
}

/// Returns the options that a client asks for: those of the call, then those of its definition of the agent, unless the
/// session was opened with them before.
fn asked_options(
    router: &Router,
    id: &str,
    agent: AgentRef,
    wished: &SessionOptions,
) -> SessionOptions {
    let defined = &router.agents().get(agent).spec().options;
    let session = router.sessions().get(id);
    let new = session.map(|session| session.talk.settings.newly_defined(defined));
    wished.clone().or(&new.unwrap_or_default())
}

/// Lets the settings of the client whose call is being handled hold in a session that its prompt or setting opens, as in one
/// that `session/ensure` opens. A session whose agent has ended keeps the agent's definition. Returns the session's agent.
pub(super) fn prepare_opening(
    catalog: &Catalog,
    router: &mut Router,
    id: &str,
) -> Result<AgentRef, Error> {
    let session = catalog.session(router, id)?;
    if !session.is_resting() {
        return Ok(session.agent);
    }
    catalog.choose_agent_again(router, id)?;
    let agent = catalog.session(router, id)?.agent;
    let own = catalog.callers_definition(router, agent)?.unwrap_or(agent);
    let spec = router.agents().get(own).spec();
    let (protocol, defined) = (spec.protocol, spec.options.clone());
    let asked = asked_options(router, id, own, &SessionOptions::default());
    if !asked.is_empty() {
        let options = checked_options(catalog, router, id, agent, asked.clone(), &[])?;
        let session = catalog.session(router, id)?;
        session.set_options(options, &asked, protocol);
    }
    let session = catalog.session(router, id)?;
    session.talk.settings.set_defined(&defined);
    next_prompt::drop_unclaimed_list(router, id);
    Ok(agent)
}

pub(super) fn checked_options(
    catalog: &Catalog,
    router: &Router,
    id: &str,
    agent: AgentRef,
    wished: SessionOptions,
    servers: &[McpServer],
) -> Result<SessionOptions, Error> {
    let machine = router.agents().get(agent);
    let spec = machine.spec();
    let session = router.sessions().get(id);
    let options = match session {
        None => wished.or(&spec.options),
        Some(session)
            if session
                .talk
                .terms
                .listing_clients()
                .contains(&catalog.scopes().caller()) =>
        {
            wished.or(session.talk.settings.options())
        }
        Some(session) => wished.or(&own_lists(session.talk.settings.options(), &spec.options)),
    };
    let servers = match session {
        Some(session) if servers.is_empty() && router.shared().is_resident => {
            let moves = session.agent != agent;
            session.restoring.servers_for(spec, moves)
        }
        Some(session) if servers.is_empty() => session.restoring.mcp_servers(),
        _ => servers,
    };
    mcp::check(servers)?;
    let started_by = (machine.definition(), machine.spec());
    let ready = machine.connection().and_then(Connection::ready);
    let servers = servers::servers(servers, &router.shared().settings, started_by, ready)?;
    options::check(
        spec.protocol,
        &options,
        &servers,
        router.shared().settings.policy_of(machine.definition()),
    )?;
    Ok(options)
}

/// Checks parameters for which no agent is to be started.
fn check_params(p: &EnsureParams) -> Result<(), Error> {
    if p.fork && p.agent_session_id.is_none() {
        return Err(invalid(
            "fork",
            "requires agentSessionId, the session to fork",
        ));
    }
    output_schema::check("options.outputSchema", p.options.output_schema.as_ref())
}

/// Returns `true` if the session is already live or being opened as requested. In that case the call is
/// answered, or will be when the session is open.
fn ensured_already(
    catalog: &Catalog,
    router: &mut Router,
    (id, agent): (&str, AgentRef),
    token: Token,
    p: &EnsureParams,
    cx: &mut HubCx<'_>,
) -> Result<bool, Error> {
    if !router.sessions().contains_key(id) {
        return Ok(false);
    }
    let caller = catalog.caller_settings_for(
        router,
        (id, agent),
        p.agent.is_some(),
        &p.options,
        &p.mcp_servers,
    )?;
    let machine = router.agents().get(agent);
    let (stopping, protocol) = (machine.is_stopping(), machine.spec().protocol);
    let Some(session) = router.sessions_mut().get_mut(id) else {
        return Ok(false);
    };
    match &mut session.talk.stage {
        Stage::Opening(restore) => {
            session
                .talk
                .settings
                .must_have(&session.talk.id, &p.options)?;
            restore.waiters_mut().push(Waiter { token, caller });
            session
                .talk
                .terms
                .claim_lists(token.client, &p.options, &session.talk.output);
            Ok(true)
        }
        Stage::Live { .. } if p.strategy == Strategy::Auto && !stopping => {
            let settings = &session.talk.settings;
            settings.must_have(&session.talk.id, &settings.missing_of(&p.options))?;
            session
                .talk
                .terms
                .claim_lists(token.client, &p.options, &session.talk.output);
            session.used = Some(cx.now);
            // Until a turn has reported it, the loss of the memory is news to every client.
            let lost = session.receipt.as_deref();
            let lost = lost.filter(|receipt| receipt.memory == Memory::Lost);
            let mut recovery = Recovery {
                rung: Rung::Live,
                memory: lost.map_or(Memory::Kept, |receipt| receipt.memory),
                failed: lost.map_or_else(Vec::new, |receipt| receipt.failed.clone()),
                replayed: None,
                messages: session.talk.output.log().count(),
                adopted: 0,
                reinjected: 0,
                missed: 0,
                not_restored: session.talk.settings.changed_since(&p.options),
                differing_settings: Vec::new(),
                agent_command: None,
                warning: None,
                chosen_mode: None,
                policy_warning: None,
                handed_over_from: None,
                instructions_in_prompt: false,
            };
            session.talk.terms.fill_asking(&mut recovery);
            router.with(id, cx, |session, cx| {
                let talk = &mut session.talk;
                let held = (&talk.settings, &talk.known);
                let shown = (&mut talk.terms, &talk.output);
                caller.fill(held, shown, &mut recovery, cx);
                let result = session.result(recovery, protocol);
                cx.clients
                    .reply(token, Ok(Reply::Session(Box::new(result))));
            });
            Ok(true)
        }
        Stage::Live { .. } => session
            .prompting
            .may_be_opened_anew(&p.strategy, &session.talk)
            .map(|()| false),
        Stage::Resting => Ok(false),
    }
}
