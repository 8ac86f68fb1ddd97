//! Sessions that are only in the store: loaded when they are named, with the agent that had them by the settings of the client
//! that names them. Their agent is chosen again when they are opened.

use super::Catalog;
use crate::agent::AgentSpec;
use crate::agent_definition::AgentDefinition;
use crate::cx::Cx;
use crate::hub::cx::HubCx;
use crate::hub::router::{Router, storage};
use crate::ids::AgentRef;
use crate::log::Identity;
use crate::session::{SessionAgents, SessionMachine};
use acpipe_model::error::{Error, ErrorKind};

impl Catalog {
    /// Returns the session with this id, opening it from the store if necessary.
    pub(in crate::hub) fn session<'r>(
        &self,
        router: &'r mut Router,
        id: &str,
    ) -> Result<&'r mut SessionMachine, Error> {
        if !router.sessions().contains_key(id) && router.store().has(id)? {
            self.reopen(router, id)?;
        }
        let missing = || acpipe_model::error::no_session(id);
        router.sessions_mut().get_mut(id).ok_or_else(missing)
    }

    /// Returns a session whose log can be read: waits for a pending write to the disk.
    pub(in crate::hub) fn readable<'r>(
        &self,
        router: &'r mut Router,
        id: &str,
    ) -> Result<&'r mut SessionMachine, Error> {
        let session = self.session(router, id)?;
        session.talk.output.wait_for_append()?;
        Ok(session)
    }

    /// Like [`Router::with`], for a session that may be only in the store.
    pub(in crate::hub) fn with_session<T>(
        &self,
        router: &mut Router,
        id: &str,
        cx: &mut HubCx<'_>,
        act: impl FnOnce(&mut SessionMachine, &mut Cx<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.session(router, id)?;
        let missing = || Err(acpipe_model::error::no_session(id));
        router.with(id, cx, act).unwrap_or_else(missing)
    }

    /// Opens a stored session, if it exists.
    pub(in crate::hub) fn reopen(&self, router: &mut Router, id: &str) -> Result<(), Error> {
        let log = storage::open_log(router.store_mut(), id)?;
        let Some(identity) = log.identity().cloned() else {
            return Ok(());
        };
        let agent = self.agent_of(router, &identity)?;
        let cwd = identity.cwd.clone();
        let mut session = SessionMachine::new(id.to_owned(), agent, cwd, log);
        session.known = SessionAgents::of(&identity);
        session
            .talk
            .settings
            .put_stored(identity.options, identity.wanted);
        session.talk.turns.set_cost(identity.cost);
        router.unloaded_mut().restore(&mut session);
        router.sessions_mut().insert(id.to_owned(), session);
        Ok(())
    }

    /// Chooses the agent of a loaded session again, since the client whose call is being handled opens it. Another client may
    /// have loaded it, to read it for example, and its settings must not count.
    pub(in crate::hub) fn choose_agent_again(
        &self,
        router: &mut Router,
        id: &str,
    ) -> Result<(), Error> {
        if !router.shared().is_resident {
            return Ok(());
        }
        let session = router.sessions().get(id);
        let loaded = session.filter(|s| s.is_resting() && !s.restoring.was_open());
        let Some(identity) = loaded.and_then(|s| s.talk.output.log().identity().cloned()) else {
            return Ok(());
        };
        let agent = self.agent_of(router, &identity)?;
        if let Some(session) = router.sessions_mut().get_mut(id) {
            session.set_agent(agent);
        }
        Ok(())
    }

    /// Returns the agent of a stored session by its name. An agent that is neither configured nor built in is
    /// added with its stored command.
    fn agent_of(&self, router: &mut Router, identity: &Identity) -> Result<AgentRef, Error> {
        let (agents, shared) = router.agents_and_shared();
        if let Some(agent) = self.scopes.unnamed_agent_of(agents, shared, identity) {
            return Ok(agent);
        }
        let Some(name) = &identity.agent_name else {
            return Ok(self.scopes.default_agent());
        };
        match self.agent_named(router, Some(name)) {
            Err(error) if error.kind == ErrorKind::AgentNotFound => {}
            known => return known,
        }
        let default = &router
            .agents()
            .get(self.scopes.default_agent())
            .definition()
            .spec;
        // The variables of the default agent are not for another program.
        let variables = &self.scopes.caller_settings(router.shared()).variables;
        let stored = identity.agent_command.as_deref().cloned();
        let is_configured = stored.as_ref().is_some_and(|stored| stored.configured);
        let was_in_process = stored.as_ref().is_some_and(|stored| stored.in_process);
        let spec = stored.and_then(|stored| AgentSpec::of_stored(stored, default, variables));
        let spec = spec.unwrap_or_else(|| default.clone());
        let mut definition = AgentDefinition::new(name, spec);
        // Without its definition, the agent would run without the rules of the definition.
        definition.locked = match (is_configured, was_in_process) {
            (true, _) => Some(undefined(name)),
            (_, true) => Some(unregistered(name)),
            _ => None,
        };
        router.agents_mut().add(definition);
        self.agent_named(router, Some(name))
    }
}

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
