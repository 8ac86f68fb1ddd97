//! Implements `execute`: one turn in a session that exists for it alone.

use super::ensure::checked_options;
use super::prompts;
use super::sessions::close_session;
use crate::client::Token;
use crate::hub::catalog::Catalog;
use crate::hub::cx::HubCx;
use crate::hub::history_reads::HistoryReads;
use crate::hub::lifecycle::total_limits::TotalLimits;
use crate::hub::router::Router;
use crate::log::Log;
use crate::output_schema;
use crate::session::{Prompting, SessionMachine};
use crate::store::{MemoryStore, Store as _};
use acpipe_model::error::{Error, ErrorKind, invalid};
use acpipe_protocol::wire::{ExecuteParams, PromptParams, SessionOptions};
use std::path::Path;

/// Opens a session in memory and queues its only prompt, whose turn answers the call.
pub(super) fn execute(
    catalog: &mut Catalog,
    router: &mut Router,
    reads: &mut HistoryReads,
    limits: &mut TotalLimits,
    token: Token,
    p: ExecuteParams,
    cx: &mut HubCx<'_>,
) -> Result<(), Error> {
    if p.cwd
        .as_deref()
        .is_some_and(|cwd| !Path::new(cwd).is_absolute())
    {
        return Err(invalid("cwd", "must be an absolute path"));
    }
    if p.max_turns == Some(0) {
        return Err(invalid("maxTurns", "must be at least 1"));
    }
    output_schema::check("outputSchema", p.output_schema.as_ref())?;
    let id = new_session_id(router, p.session_id)?;
    let agent = catalog.agent_named(router, p.agent.as_deref())?;
    let options = p.options;
    let wished = SessionOptions {
        output_schema: p.output_schema.or(options.output_schema),
        max_turns: p.max_turns.or(options.max_turns),
        ..*options
    };
    let options = checked_options(catalog, router, &id, agent, wished.clone(), &[])?;
    let prompt = PromptParams {
        session_id: Some(id.clone()),
        retry: p.retry,
        timeout_ms: p.timeout_ms,
        context: p.context,
        ..PromptParams::of(p.message)
    };
    let spec = router.agents().get(agent).spec();
    let (protocol, defined) = (spec.protocol, spec.options.clone());
    let cwd = p.cwd.unwrap_or_else(|| spec.cwd.clone());
    let log = Log::open(MemoryStore.open(&id)?)?;
    let mut session = SessionMachine::new(id.clone(), agent, cwd, log);
    session.set_options(options, &wished, protocol);
    session.talk.settings.set_defined(&defined);
    session.prompting = Prompting::of_one_call(p.retry);
    router.sessions_mut().insert(id.clone(), session);
    router.with(&id, cx, |session, cx| {
        session.join(token.client, cx);
        session
            .talk
            .terms
            .claim_lists(token.client, &wished, &session.talk.output);
    });
    // If this fails, the session is removed with the spent ones.
    prompts::prompt(catalog, router, reads, limits, token, prompt, cx)
}

pub(super) fn new_session_id(router: &mut Router, given: Option<String>) -> Result<String, Error> {
    let Some(id) = given else {
        return Ok(router.shared_mut().next_id("execute"));
    };
    if id.is_empty() {
        return Err(invalid("sessionId", "must not be empty"));
    }
    if router.sessions().contains_key(&id) || router.store().has(&id)? {
        let message = format!("session {id:?} already exists; use another id, or omit sessionId");
        return Err(Error::new(ErrorKind::SessionExists, message));
    }
    Ok(id)
}

/// Closes and removes the sessions of `execute` calls that are answered.
pub(in crate::hub) fn remove_spent(catalog: &Catalog, router: &mut Router, cx: &mut HubCx<'_>) {
    let spent = router
        .sessions()
        .awake()
        .filter(|session| session.is_spent());
    let spent = spent.map(|session| {
        let own = session.talk.output.subscribers().leader();
        (session.id.clone(), own.unwrap_or_default())
    });
    for (id, own) in spent.collect::<Vec<_>>() {
        // A spent session is idle, so it can be closed.
        let _ = close_session(catalog, router, &id, own, cx);
    }
}
