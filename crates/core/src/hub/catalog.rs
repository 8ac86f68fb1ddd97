//! The catalog: which agent and which session a client means by a name.
//!
//! Owns the settings of the clients that brought their own (`Scopes`), and the calls that wait while the programs of agents
//! are searched on the computer. The agents themselves belong to the router, to which it adds those that a client names, and
//! it opens stored sessions there. It knows nothing of what agents send, and passes no event to an agent.

mod opened_sessions;
mod registration;
mod scopes;
mod searches;
pub(super) mod session_names;
mod stored_sessions;

use super::agents::Agents;
use super::router::Router;
use crate::agent::DEFAULT_AGENT;
use crate::agent_names::{NameError, resolve};
use crate::builtin_definition::builtin_definition;
use crate::client::ClientId;
use crate::config::Settings;
use crate::ids::AgentRef;
use crate::session::CallerSettings;
use acpipe_model::builtin_agents;
use acpipe_model::error::{Error, ErrorKind};
use acpipe_protocol::wire::{McpServer, SessionOptions};
use opened_sessions::{AgentOfOpener, OpenedSession, hash_of};
use scopes::Scopes;
use searches::ProgramSearch;

/// Agents and sessions by name.
#[derive(Default)]
pub(super) struct Catalog {
    scopes: Scopes,
    searches: Vec<ProgramSearch>,
}

impl Catalog {
    pub(super) fn set_caller(&mut self, client: ClientId) {
        self.scopes.set_caller(client);
    }

    pub(super) fn scopes(&self) -> &Scopes {
        &self.scopes
    }

    pub(super) fn scopes_mut(&mut self) -> &mut Scopes {
        &mut self.scopes
    }

    /// Gives a client settings of its own.
    ///
    /// # Errors
    /// There are too many different agent definitions.
    pub(super) fn join(
        &mut self,
        agents: &mut Agents,
        client: ClientId,
        settings: Box<Settings>,
    ) -> Result<(), Error> {
        self.scopes.join(agents, client, settings)
    }

    /// Removes a client that has left, and the searches that it waits for.
    pub(super) fn forget(&mut self, client: ClientId) {
        self.searches.retain(|search| search.client() != client);
        self.scopes.remove(client);
    }

    /// Returns the agent with this name, or without a name the default agent. A built-in agent is added when
    /// it is named first.
    pub(in crate::hub) fn agent_named(
        &self,
        router: &mut Router,
        name: Option<&str>,
    ) -> Result<AgentRef, Error> {
        let Some(name) = name else {
            return Ok(self.scopes.default_agent());
        };
        if let Some(agent) = self.scoped_agent(router, name)? {
            return Ok(agent);
        }
        if let Some(agent) = router.agents().find(name) {
            return Ok(agent);
        }
        let Some(builtin) = builtin_agents::find(name) else {
            return Err(self.no_agent(router.agents(), name));
        };
        if let Some(agent) = router.agents().find(&builtin.id) {
            return Ok(agent);
        }
        // The number of built-in agents is bounded.
        let definition = builtin_definition(builtin, &router.shared().settings);
        Ok(router.agents_mut().add(definition))
    }

    /// Returns the same agent by the definition of the client whose call is being handled. `None` if its settings have
    /// no such agent.
    pub(super) fn callers_definition(
        &self,
        router: &mut Router,
        agent: AgentRef,
    ) -> Result<Option<AgentRef>, Error> {
        let (agents, shared) = router.agents_and_shared();
        self.scopes.callers_definition(agents, shared, agent)
    }

    /// Returns the settings of the client whose call is being handled, for the comparison with those of a session at this
    /// agent. `servers` are the MCP servers of a call that joins the session.
    pub(super) fn caller_settings_for(
        &self,
        router: &mut Router,
        (id, agent): (&str, AgentRef),
        names_agent: bool,
        options: &SessionOptions,
        servers: &[McpServer],
    ) -> Result<CallerSettings, Error> {
        let session = router.sessions().get(id);
        let has_others = !servers.is_empty()
            && session.is_some_and(|session| servers != session.restoring.mcp_servers());
        let (agents, shared) = router.agents_and_shared();
        let place = (id, agent);
        self.scopes
            .caller_settings_for(agents, shared, place, names_agent, options, has_others)
    }

    /// Returns the settings of the client whose prompt is being handled: those with which it opened or joined the session, and
    /// those of its own definition of the agent. Without terms, all clients have the settings of the hub.
    pub(super) fn prompting_caller(
        &self,
        router: &mut Router,
        id: &str,
        agent: AgentRef,
    ) -> Result<CallerSettings, Error> {
        if !router.shared().is_resident {
            return Ok(CallerSettings::default());
        }
        let Some(opened) = self.scopes.opened(id) else {
            let none = SessionOptions::default();
            return self.caller_settings_for(router, (id, agent), false, &none, &[]);
        };
        let session = router.sessions().get(id);
        let has_others = session
            .is_some_and(|session| opened.mcp_servers != hash_of(session.restoring.mcp_servers()));
        let (agents, shared) = router.agents_and_shared();
        let (place, asked) = ((id, agent), &opened.asked);
        let caller = self
            .scopes
            .caller_settings_for(agents, shared, place, false, asked, has_others)?;
        Ok(CallerSettings {
            got: Some(opened.got.clone()),
            ..caller
        })
    }

    /// Notes that the client whose call is being handled opened or joined a session, and asked for these options. Only
    /// clients of a daemon have settings of their own.
    ///
    /// # Errors
    /// There are too many different agent definitions.
    pub(super) fn note_opened(
        &mut self,
        router: &mut Router,
        id: &str,
        asked: SessionOptions,
        names_agent: bool,
    ) -> Result<(), Error> {
        let session = router.sessions().get(id);
        let Some(session) = session.filter(|_| router.shared().is_resident) else {
            return Ok(());
        };
        let agent = session.agent;
        let got = session.talk.settings.options().clone();
        let mcp_servers = hash_of(session.restoring.mcp_servers());
        let (agents, shared) = router.agents_and_shared();
        let opened = OpenedSession {
            asked,
            got,
            mcp_servers,
            agents: vec![AgentOfOpener {
                name: agents.get(agent).name().to_owned(),
                terms: self.scopes.terms_at(agents, shared, agent)?.0,
                was_opened: true,
            }],
        };
        self.scopes.note_opened(id, opened, names_agent);
        Ok(())
    }

    /// Notes that the client whose call is being handled uses a session: if it did not open it before, it joins it, and if it
    /// did, the call that named the agent has succeeded.
    ///
    /// # Errors
    /// There are too many different agent definitions.
    pub(super) fn note_used(&mut self, router: &mut Router, id: &str) -> Result<(), Error> {
        if self.scopes.opened(id).is_some() {
            let caller = self.scopes.caller();
            let session = router.sessions().get(id);
            if let Some(session) = session.filter(|s| s.talk.terms.has_opener(caller)) {
                let name = router.agents().get(session.agent).name().to_owned();
                self.scopes.note_success(id, &name);
            }
            return Ok(());
        }
        self.note_opened(router, id, SessionOptions::default(), false)
    }

    /// Returns the agent of this name by the settings of the client whose call is being handled.
    fn scoped_agent(&self, router: &mut Router, name: &str) -> Result<Option<AgentRef>, Error> {
        let (agents, shared) = router.agents_and_shared();
        self.scopes.scoped_agent(agents, shared, name)
    }

    fn no_agent(&self, agents: &Agents, name: &str) -> Error {
        let own = self.scopes.listed_agents(agents);
        let own: Vec<&str> = own
            .iter()
            .map(|agent| agents.get(*agent).name())
            .filter(|name| *name != DEFAULT_AGENT)
            .collect();
        let why = match resolve(name, own.iter().copied()) {
            Ok(meant) => format!(
                "agent {name:?} not found; use the full name {:?}",
                meant.as_str()
            ),
            Err(error @ NameError::Ambiguous { .. }) => error.to_string(),
            Err(NameError::Unknown { similar, .. }) => {
                let similar = if similar.is_empty() {
                    String::new()
                } else {
                    format!("did you mean {}? ", similar.join(" or "))
                };
                let mut own = own.join(", ");
                if !own.is_empty() {
                    own = format!("one of {own}, ");
                }
                format!(
                    "agent {name:?} not found; {similar}use {own}a name that `acpipe agents` lists, or call agent/connect with its \
                     command"
                )
            }
        };
        Error::new(ErrorKind::AgentNotFound, why).with("field", "agent")
    }
}

/// Returns the agent that a call means by `agent` for a session: the session's own agent, if it is the same agent
/// by another definition. A session that is not live takes the definition of the call.
pub(super) fn agent_for(router: &mut Router, session: &str, agent: AgentRef) -> AgentRef {
    if !router.shared().is_resident {
        return agent;
    }
    let Some(own) = router.sessions().get(session).map(|s| s.agent) else {
        return agent;
    };
    if router.agents().get(own).identity() != router.agents().get(agent).identity() {
        return agent;
    }
    let Some(session) = router.sessions_mut().get_mut(session) else {
        return agent;
    };
    if session.is_resting() && !session.restoring.keeps_agent() {
        session.set_agent(agent);
    }
    session.agent
}
