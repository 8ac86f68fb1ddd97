//! Operations on whole sessions: open from the store, describe, close, clear.

use super::Hub;
use super::cx::HubCx;
use super::router::storage;
use crate::core::agent::AgentSpec;
use crate::core::agent_definition::AgentDefinition;
use crate::core::agent_file::{AgentFile, FileAccess};
use crate::core::client::{ClientId, Reply, Token};
use crate::core::error::{Error, ErrorKind};
use crate::core::ids::AgentRef;
use crate::core::log::Identity;
use crate::core::session::{SessionAgents, SessionMachine};
use crate::proto::wire::{ClearSessionParams, Done, SessionInfo, SessionParams};

impl Hub {
    /// Opens a stored session, if it exists.
    pub(super) fn reopen(&mut self, id: &str) -> Result<(), Error> {
        let log = storage::open_log(self.router.store_mut(), id)?;
        let Some(identity) = log.identity().cloned() else {
            return Ok(());
        };
        let agent = self.agent_of(&identity)?;
        let cwd = identity.cwd.clone();
        let mut session = SessionMachine::new(id.to_owned(), agent, cwd, log);
        session.known = SessionAgents::of(&identity);
        session
            .settings
            .put_stored(identity.options, identity.wanted);
        session.cost = identity.cost;
        self.router.unloaded_mut().restore(&mut session);
        if session.listing_clients().is_empty() {
            // No client of this process has opened the session with its list of allowed tools.
            let own = &self.router.agents().get(agent).spec().options;
            session.settings.keep_own_list(own);
        }
        self.router.sessions_mut().insert(id.to_owned(), session);
        Ok(())
    }

    /// Returns the agent of a stored session by its name. An agent that is neither configured nor built in is
    /// added with its stored command.
    fn agent_of(&mut self, identity: &Identity) -> Result<AgentRef, Error> {
        if let Some(agent) = self.unnamed_agent_of(identity) {
            return Ok(agent);
        }
        let Some(name) = &identity.agent_name else {
            return Ok(self.default_agent());
        };
        match self.agent_named(Some(name)) {
            Err(error) if error.kind == ErrorKind::AgentNotFound => {}
            known => return known,
        }
        let default = self.router.agents().get(self.default_agent()).configured();
        let stored = identity.agent_command.as_deref().cloned();
        let is_configured = stored.as_ref().is_some_and(|stored| stored.configured);
        let was_in_process = stored.as_ref().is_some_and(|stored| stored.in_process);
        let spec = stored.and_then(|stored| AgentSpec::of_stored(stored, default));
        let spec = spec.unwrap_or_else(|| default.clone());
        let mut definition = AgentDefinition::new(name, spec);
        // Without its definition, the agent would run without the rules of the definition.
        definition.locked = match (is_configured, was_in_process) {
            (true, _) => Some(undefined(name)),
            (_, true) => Some(unregistered(name)),
            _ => None,
        };
        self.router.agents_mut().add(definition);
        self.agent_named(Some(name))
    }

    pub(super) fn session_info(
        &mut self,
        client: ClientId,
        p: &SessionParams,
        cx: &HubCx<'_>,
    ) -> Result<SessionInfo, Error> {
        let id = &self.session_id(client, p.session_id.as_deref())?;
        let session = self.session(id)?;
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
        self.with_session(id, cx, SessionMachine::close)?;
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
        let id = &self.session_id(token.client, p.session_id.as_deref())?;
        let file = if p.delete_agent_files {
            self.file_of(id)?
        } else {
            None
        };
        self.with_session(id, cx, |session, cx| {
            session.must_be_idle()?;
            session.end_background(cx);
            session.write(cx)?;
            session.catch_up_at_end(cx.clients);
            session.output.remove(p.archive)
        })?;
        self.close_session(id, token.client, cx)?;
        self.scopes.forget_refused(id);
        match file {
            Some((owner, file)) => self.delete_agent_file(token, owner, file, cx),
            None => cx.clients.reply(token, Ok(Reply::Done(Done {}))),
        }
        Ok(())
    }

    /// Returns the access to the agent's file of a session; `None` if the agent never had the session.
    fn file_of(&mut self, id: &str) -> Result<Option<OwnedFile>, Error> {
        let session = self.session(id)?;
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
/// Describes an agent of a stored session that ran inside a program and is not registered in this one.
fn unregistered(name: &str) -> String {
    format!(
        "agent {name:?} of the session runs inside another program; continue the session there, or name another agent"
    )
}

/// Describes an agent of a stored session that is not defined any more.
fn undefined(name: &str) -> String {
    format!(
        "agent {name:?} of the session is not defined any more; define it in the configuration, or name another agent"
    )
}
