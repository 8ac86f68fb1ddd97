//! Operations on whole sessions: describe, close, clear.

use crate::agent::timeouts;
use crate::client::{ClientId, Reply, Token};
use crate::hub::catalog::Catalog;
use crate::hub::cx::HubCx;
use crate::hub::history_reads::HistoryReads;
use crate::hub::history_reads::agent_files::agent_file;
use crate::hub::router::Router;
use crate::ids::AgentRef;
use crate::session::{SessionMachine, waits_for_start};
use acpipe_model::agent_file::{AgentFile, FileAccess};
use acpipe_model::error::{Error, ErrorKind};
use acpipe_protocol::wire::{ClearSessionParams, Done, SessionInfo, SessionParams};

pub(super) fn session_info(
    catalog: &Catalog,
    router: &mut Router,
    client: ClientId,
    p: &SessionParams,
    cx: &HubCx<'_>,
) -> Result<SessionInfo, Error> {
    let id = &catalog.session_id(router, client, p.session_id.as_deref())?;
    let session = catalog.session(router, id)?;
    let (info, agent) = (session.info(), session.agent);
    let machine = router.agents().get(agent);
    let secrets = &router.shared().settings.secrets;
    let waiting_for = match router.sessions().get(id) {
        Some(session) if waits_for_start(session) => {
            timeouts::start_wait(machine.connection(), machine.spec(), secrets, cx.now)
        }
        Some(session) => session.waiting_for(machine.connection(), secrets, cx.now),
        None => None,
    };
    Ok(SessionInfo {
        waiting_for,
        ..info
    })
}

/// Closes a session for a client: the agent may drop it, and other programs may use it. Stored data is kept.
/// The other clients are notified and detached.
pub(super) fn close_session(
    catalog: &Catalog,
    router: &mut Router,
    id: &str,
    by: ClientId,
    cx: &mut HubCx<'_>,
) -> Result<(), Error> {
    catalog.with_session(router, id, cx, SessionMachine::close)?;
    if let Some(session) = router.sessions_mut().get_mut(id) {
        session.talk.output.notify_closed(by, cx.clients);
    }
    router.remove_session(id, cx.clients);
    Ok(())
}

/// Removes a session with its stored messages and identity, and the agent's file of it if that is
/// requested.
pub(super) fn clear_session(
    catalog: &mut Catalog,
    router: &mut Router,
    reads: &mut HistoryReads,
    token: Token,
    p: &ClearSessionParams,
    cx: &mut HubCx<'_>,
) -> Result<(), Error> {
    let id = &catalog.session_id(router, token.client, p.session_id.as_deref())?;
    let file = if p.delete_agent_files {
        file_of(catalog, router, id)?
    } else {
        None
    };
    catalog.with_session(router, id, cx, |session, cx| {
        session.must_be_idle()?;
        session.end_background(cx);
        session.write(cx)?;
        session.talk.output.catch_up_at_end(cx.clients);
        session.talk.output.remove(p.archive)
    })?;
    close_session(catalog, router, id, token.client, cx)?;
    catalog.scopes_mut().forget_opened(id);
    match file {
        Some((owner, file)) => reads.files().delete(router, token, owner, file, cx),
        None => cx.clients.reply(token, Ok(Reply::Done(Done {}))),
    }
    Ok(())
}

/// Returns the access to the agent's file of a session; `None` if the agent never had the session.
pub(super) fn file_of(
    catalog: &Catalog,
    router: &mut Router,
    id: &str,
) -> Result<Option<OwnedFile>, Error> {
    let session = catalog.session(router, id)?;
    let (agent, cwd, known) = (session.agent, session.cwd.clone(), session.known.clone());
    let identity = router.agents().get(agent).identity();
    let agent_session = known.id_of(&identity).unwrap_or_default();
    // An agent whose files are unknown is refused, also without a session.
    let named = if agent_session.is_empty() {
        "none"
    } else {
        agent_session
    };
    let field = (agent, "deleteAgentFiles");
    let shares =
        |other: &&SessionMachine| other.id != id && other.known.id_of(&identity) == Some(named);
    if let Some(other) = router.sessions().values().find(shares) {
        let message = format!(
            "session {:?} continues the same session of the agent; clear it first, or omit deleteAgentFiles",
            other.id
        );
        return Err(Error::new(ErrorKind::SessionExists, message));
    }
    let file = agent_file(router, field, &cwd, named, FileAccess::Delete)?;
    let owner = (agent, agent_session.to_owned());
    Ok((!agent_session.is_empty()).then_some((owner, file)))
}

/// File of an agent's session, with the agent and its id of the session.
type OwnedFile = ((AgentRef, String), Box<dyn AgentFile>);
