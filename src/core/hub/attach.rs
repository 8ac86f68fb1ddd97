//! Clients that attach to sessions, and what a client may do in its role.

use super::Hub;
use crate::core::client::{ClientId, Command, History, Reply, Token};
use crate::core::client_sink::ClientSinks;
use crate::core::error::{Error, ErrorKind};
use crate::core::presence::session_clients;
use crate::core::subscribers::Participation;
use crate::proto::wire::{AttachParams, ClientsResult, Done, Role, SessionParams};
use std::time::Instant;

impl Hub {
    /// Subscribes a client to a session, which is opened from the store if necessary, but not at its agent.
    pub(super) fn attach(
        &mut self,
        token: Token,
        p: &AttachParams,
        now: Instant,
        clients: &mut impl ClientSinks,
    ) -> Result<(), Error> {
        let id = self.session_id(token.client, p.session_id.as_deref())?;
        let result = self.with_session(&id, now, clients, |session, cx| {
            session.attach(token.client, p, cx)
        })?;
        // The result precedes the chunks that the client has missed.
        clients.reply(token, Ok(Reply::Attached(Box::new(result))));
        Ok(())
    }

    /// Ends the subscription of a client.
    pub(super) fn detach(
        &mut self,
        token: Token,
        p: &SessionParams,
        now: Instant,
        clients: &mut impl ClientSinks,
    ) -> Result<(), Error> {
        let id = self.session_id(token.client, p.session_id.as_deref())?;
        self.with_session(&id, now, clients, |session, cx| {
            session.detach(token.client, cx);
            Ok(())
        })?;
        clients.reply(token, Ok(Reply::Done(Done {})));
        Ok(())
    }

    /// Returns the clients of a session.
    pub(super) fn session_clients(
        &mut self,
        token: Token,
        p: &SessionParams,
        clients: &mut impl ClientSinks,
    ) -> Result<(), Error> {
        let id = self.session_id(token.client, p.session_id.as_deref())?;
        self.session(&id)?;
        let session = self.sessions.get(&id);
        let all = session.map(|session| {
            session_clients(&session.subscribers, &self.shared.clients, token.client)
        });
        let result = ClientsResult {
            clients: all.unwrap_or_default(),
        };
        clients.reply(token, Ok(Reply::Clients(result)));
        Ok(())
    }

    /// Checks that the role of a client allows a command.
    pub(super) fn check_role(&self, client: ClientId, command: &Command) -> Result<(), Error> {
        let declared = self.shared.clients.get(client).map(|d| d.role);
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
        let id = self.session_id(client, given)?;
        if self.participation(&id, client).map(|p| p.role) != Some(Role::Observer) {
            return Ok(());
        }
        let message = format!(
            "{} is not allowed: this client observes session {id:?}; call session/attach with role \"controller\" first",
            command.method().name
        );
        Err(Error::new(ErrorKind::Forbidden, message).with("sessionId", id))
    }

    fn participation(&self, id: &str, client: ClientId) -> Option<Participation> {
        let session = self.sessions.get(id).map(|session| &session.subscribers);
        let subscribers = session.or_else(|| self.idle.subscribers(id))?;
        subscribers.participation(client)
    }
}

/// Returns `true` if a client that may only observe can call the command.
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
fn controlled(command: &Command) -> Option<Option<&str>> {
    let named = match command {
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
    };
    Some(named.as_deref())
}
