//! Operations on whole sessions: open from the store, describe, close, clear.

use super::Hub;
use super::cx::HubCx;
use crate::core::agent_file::{AgentFile, FileAccess};
use crate::core::client::{ClientId, Reply, Token};
use crate::core::error::{Error, ErrorKind};
use crate::core::ids::AgentRef;
use crate::core::session::SessionMachine;
use crate::proto::wire::{ClearSessionParams, Done, SessionInfo, SessionParams};

impl Hub {
    pub(super) fn session_info(
        &mut self,
        client: ClientId,
        p: &SessionParams,
        cx: &HubCx<'_>,
    ) -> Result<SessionInfo, Error> {
        let id = &self
            .catalog
            .session_id(&self.router, client, p.session_id.as_deref())?;
        let session = self.catalog.session(&mut self.router, id)?;
        let (info, agent) = (session.info(), session.agent);
        let machine = self.router.agents().get(agent);
        let secrets = &self.router.shared().settings.secrets;
        let waiting_for = match self.router.sessions().get(id) {
            Some(session) if session.waits_for_start() => machine.start_wait(secrets, cx.now),
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
        &mut self,
        id: &str,
        by: ClientId,
        cx: &mut HubCx<'_>,
    ) -> Result<(), Error> {
        self.catalog
            .with_session(&mut self.router, id, cx, SessionMachine::close)?;
        if let Some(session) = self.router.sessions_mut().get_mut(id) {
            session.output.notify_closed(by, cx.clients);
        }
        self.router.remove_session(id, cx.clients);
        Ok(())
    }

    /// Removes a session with its stored messages and identity, and the agent's file of it if that is
    /// requested.
    pub(super) fn clear_session(
        &mut self,
        token: Token,
        p: &ClearSessionParams,
        cx: &mut HubCx<'_>,
    ) -> Result<(), Error> {
        let id = &self
            .catalog
            .session_id(&self.router, token.client, p.session_id.as_deref())?;
        let file = if p.delete_agent_files {
            self.file_of(id)?
        } else {
            None
        };
        self.catalog
            .with_session(&mut self.router, id, cx, |session, cx| {
                session.must_be_idle()?;
                session.end_background(cx);
                session.write(cx)?;
                session.catch_up_at_end(cx.clients);
                session.output.remove(p.archive)
            })?;
        self.close_session(id, token.client, cx)?;
        self.catalog.scopes_mut().forget_refused(id);
        match file {
            Some((owner, file)) => self.delete_agent_file(token, owner, file, cx),
            None => cx.clients.reply(token, Ok(Reply::Done(Done {}))),
        }
        Ok(())
    }

    /// Returns the access to the agent's file of a session; `None` if the agent never had the session.
    fn file_of(&mut self, id: &str) -> Result<Option<OwnedFile>, Error> {
        let session = self.catalog.session(&mut self.router, id)?;
        let (agent, cwd, known) = (session.agent, session.cwd.clone(), session.known.clone());
        let identity = self.router.agents().get(agent).identity();
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
        if let Some(other) = self.router.sessions().values().find(shares) {
            let message = format!(
                "session {:?} continues the same session of the agent; clear it first, or omit deleteAgentFiles",
                other.id
            );
            return Err(Error::new(ErrorKind::SessionExists, message));
        }
        let file = self.agent_file(field, &cwd, named, FileAccess::Delete)?;
        let owner = (agent, agent_session.to_owned());
        Ok((!agent_session.is_empty()).then_some((owner, file)))
    }
}

/// File of an agent's session, with the agent and its id of the session.
type OwnedFile = ((AgentRef, String), Box<dyn AgentFile>);
