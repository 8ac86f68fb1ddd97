//! Clients that attach to sessions, and what a client may do in its role.

use crate::client::{ClientId, Command, History, Reply, Token};
use crate::client_sink::ClientSinks;
use crate::hub::catalog::Catalog;
use crate::hub::cx::HubCx;
use crate::hub::router::{Router, room};
use crate::presence;
use crate::subscribers::Subscribers;
use acpipe_model::error::{Error, ErrorKind, no_session};
use acpipe_protocol::wire::{AttachParams, ClientsResult, Done, Role, SessionParams};

/// Subscribes a client to a session, which is opened from the store if necessary, but not at its agent.
pub(super) fn attach(
    catalog: &Catalog,
    router: &mut Router,
    token: Token,
    p: &AttachParams,
    cx: &mut HubCx<'_>,
) -> Result<(), Error> {
    let id = catalog.session_id(router, token.client, p.session_id.as_deref())?;
    let result = catalog.with_session(router, &id, cx, |session, cx| {
        session.attach(token.client, p, cx)
    })?;
    // The result precedes the chunks that the client has missed.
    cx.clients
        .reply(token, Ok(Reply::Attached(Box::new(result))));
    Ok(())
}

pub(super) fn detach(
    catalog: &Catalog,
    router: &mut Router,
    token: Token,
    p: &SessionParams,
    cx: &mut HubCx<'_>,
) -> Result<(), Error> {
    let client = token.client;
    let id = catalog.session_id(router, client, p.session_id.as_deref())?;
    must_exist(router, &id)?;
    let is_open = router.with(&id, cx, |session, cx| session.detach(client, cx));
    if is_open.is_none() {
        room::detach(router, &id, client, cx);
    }
    cx.clients.reply(token, Ok(Reply::Done(Done {})));
    Ok(())
}

pub(super) fn session_clients(
    catalog: &Catalog,
    router: &Router,
    token: Token,
    p: &SessionParams,
    clients: &mut dyn ClientSinks,
) -> Result<(), Error> {
    let id = catalog.session_id(router, token.client, p.session_id.as_deref())?;
    must_exist(router, &id)?;
    let subscribers = subscribers(router, &id);
    let all = subscribers
        .map(|all| presence::session_clients(all, &router.shared().clients, token.client));
    let result = ClientsResult {
        clients: all.unwrap_or_default(),
    };
    clients.reply(token, Ok(Reply::Clients(result)));
    Ok(())
}

pub(super) fn check_role(
    catalog: &Catalog,
    router: &Router,
    client: ClientId,
    command: &Command,
) -> Result<(), Error> {
    let declared = router.shared().clients.get(client).map(|d| d.role);
    if declared == Some(Role::Observer) && !is_open_to_observers(command) {
        let message = format!(
            "{} is not allowed: this connection may only observe; use a connection that may control sessions",
            command.method().name
        );
        return Err(Error::new(ErrorKind::Forbidden, message));
    }
    let Some(given) = controlled(command) else {
        return Ok(());
    };
    let id = catalog.session_id(router, client, given.as_deref())?;
    let own = subscribers(router, &id).and_then(|all| all.participation(client));
    if own.map(|own| own.role) != Some(Role::Observer) {
        return Ok(());
    }
    let message = format!(
        "{} is not allowed: this client observes session {id:?}; call session/attach with role \"controller\" first",
        command.method().name
    );
    Err(Error::new(ErrorKind::Forbidden, message).with("sessionId", id))
}

/// Returns the clients of a session that is open or unloaded.
pub(super) fn subscribers<'a>(router: &'a Router, id: &str) -> Option<&'a Subscribers> {
    let session = router
        .sessions()
        .get(id)
        .map(|session| session.talk.output.subscribers());
    session.or_else(|| router.unloaded().subscribers(id))
}

/// Checks that a session exists, without opening it.
pub(super) fn must_exist(router: &Router, id: &str) -> Result<(), Error> {
    if router.sessions().contains_key(id) || router.store().has(id)? {
        return Ok(());
    }
    Err(no_session(id))
}

fn is_open_to_observers(command: &Command) -> bool {
    match command {
        Command::Attach(p) => p.role != Some(Role::Controller),
        Command::Initialize(_)
        | Command::Status(_)
        | Command::ListAgents(_)
        | Command::Subscribe(_)
        | Command::Detach(_)
        | Command::Clients(_) => true,
        Command::History(asked) => match asked {
            History::ListSessions(_)
            | History::GetSession(_)
            | History::Replay(_)
            | History::ListMessages(_)
            | History::LastMessage(_) => true,
            History::CloseSession(_)
            | History::ClearSession(_)
            | History::AddMessage(_)
            | History::UpdateMessage(_)
            | History::ClearMessages(_) => false,
        },
        _ => false,
    }
}

/// Returns the session, as the call names it, that a command changes; `None` if it changes none.
fn controlled(command: &Command) -> Option<&Option<String>> {
    Some(match command {
        Command::Ensure(p) => &p.session_id,
        Command::Prompt(p) => &p.session_id,
        Command::Cancel(p) => &p.session_id,
        Command::Steer(p) => &p.session_id,
        Command::SetMode(p) => &p.session_id,
        Command::SetModel(p) => &p.session_id,
        Command::SetOption(p) => &p.session_id,
        Command::History(History::CloseSession(p)) => &p.session_id,
        Command::History(History::ClearSession(p)) => &p.session_id,
        Command::History(History::AddMessage(p)) => &p.session_id,
        Command::History(History::UpdateMessage(p)) => &p.session_id,
        Command::History(History::ClearMessages(p)) => &p.session_id,
        _ => return None,
    })
}
