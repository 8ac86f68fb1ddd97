//! Clients with settings of their own.
//!
//! All clients of `acpipe serve` have the settings of the hub. A client of the daemon has those of its own command
//! line, directory and configuration: the agents that it names, with their policies and limits, are separate from
//! those of other clients. Clients with equal definitions share an agent.

use super::Hub;
use super::agents::Agents;
use crate::core::agent_command::key;
use crate::core::agent_definition::AgentDefinition;
use crate::core::agent_spec::{AgentSpec, DEFAULT_AGENT};
use crate::core::builtin_agents;
use crate::core::builtin_definition::builtin_definition;
use crate::core::client::ClientId;
use crate::core::config::Settings;
use crate::core::error::{Error, ErrorKind};
use crate::core::ids::AgentRef;
use crate::core::log::Identity;
use crate::core::terms::{CallerTerms, Terms};
use crate::proto::wire::{AgentSource, McpServer, SessionOptions};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Maximum number of different agent definitions of clients. Agents are never removed.
const MOST_DEFINITIONS: usize = 1024;

/// Clients with settings of their own.
#[derive(Default)]
pub(super) struct Scopes {
    all: BTreeMap<ClientId, Scope>,
    /// Client whose call is being handled or answered.
    caller: ClientId,
    /// Tools that clients refused when they opened a session. They hold for the client, also if another one opens the
    /// session with other lists.
    refused: BTreeMap<ClientId, BTreeMap<String, Vec<String>>>,
    /// Clients that defined an agent, or gave it its list of allowed tools.
    definers: BTreeMap<AgentRef, ClientId>,
}

/// Settings of a client.
struct Scope {
    settings: Box<Settings>,
    default: AgentRef,
}

impl Scopes {
    /// Sets the client whose call is being handled or answered.
    pub(super) fn set_caller(&mut self, client: ClientId) {
        self.caller = client;
    }

    /// Returns the client whose call is being handled or answered.
    pub(super) fn caller(&self) -> ClientId {
        self.caller
    }

    /// Removes a client that has left.
    pub(super) fn remove(&mut self, client: ClientId) {
        self.all.remove(&client);
        self.refused.remove(&client);
    }

    /// Notes that the client whose call is being handled defined an agent, or gave it its list of allowed tools.
    pub(super) fn set_definer(&mut self, agent: AgentRef) {
        self.definers.insert(agent, self.caller);
    }

    /// Returns `true` if the list of allowed tools of an agent is that of the client whose call is being handled.
    fn gave_list(&self, agent: AgentRef) -> bool {
        self.definers.get(&agent) == Some(&self.caller)
    }

    /// Notes the tools that the client whose call is being handled refuses in a session, if it names some.
    pub(super) fn note_refused(&mut self, session: &str, tools: Vec<String>) {
        if !tools.is_empty() {
            let own = self.refused.entry(self.caller).or_default();
            own.insert(session.to_owned(), tools);
        }
    }

    /// Forgets the tools that clients refused in a session that is removed.
    pub(super) fn forget_refused(&mut self, session: &str) {
        for own in self.refused.values_mut() {
            own.remove(session);
        }
    }

    fn of_caller(&self) -> Option<&Scope> {
        self.all.get(&self.caller)
    }
}

impl Hub {
    /// Makes this the hub of a daemon, whose clients may have settings of their own.
    #[must_use]
    pub fn resident(mut self) -> Self {
        self.router.shared_mut().is_resident = true;
        self
    }

    /// Gives a client settings of its own. Call it before the first call of the client.
    ///
    /// # Errors
    /// There are too many different agent definitions.
    pub fn client_joined(
        &mut self,
        client: ClientId,
        settings: Box<Settings>,
    ) -> Result<(), Error> {
        let definition = complete(settings.default_agent.clone(), &settings);
        let default = self.scoped(definition)?;
        let scope = Scope { settings, default };
        self.scopes.all.insert(client, scope);
        Ok(())
    }

    /// Returns the default agent of the client whose call is being handled.
    pub(super) fn default_agent(&self) -> AgentRef {
        let own = self.scopes.of_caller();
        own.map_or(Agents::DEFAULT, |scope| scope.default)
    }

    /// Returns the settings of the client whose call is being handled.
    pub(super) fn caller_settings(&self) -> &Settings {
        let own = self.scopes.of_caller();
        own.map_or(&self.router.shared().settings, |scope| &scope.settings)
    }

    /// Returns the agent of this name by the settings of the client whose call is being handled. An agent that is not in
    /// them, since a client defined it for example, is given them as well. `None` if there is no such agent, or if the client
    /// has the settings of the hub and no other client has given the agent a list of allowed tools.
    pub(super) fn scoped_agent(&mut self, name: &str) -> Result<Option<AgentRef>, Error> {
        let Some(scope) = self.scopes.of_caller() else {
            return without_list_of_others(self, name);
        };
        if name == DEFAULT_AGENT || self.router.agents().get(scope.default).name() == name {
            return Ok(Some(scope.default));
        }
        let settings = &scope.settings;
        let configured = settings.agents.iter().find(|own| own.name == name);
        let builtin = || builtin_agents::find(name).map(|own| builtin_definition(own, settings));
        let definition = match configured.cloned().or_else(builtin) {
            Some(own) => complete(own, settings),
            None => match self.router.agents().find(name) {
                Some(shared) => restricted(self, shared, settings),
                None => return Ok(None),
            },
        };
        self.scoped(definition).map(Some)
    }

    /// Adds the configured agents of the client whose call is being handled, so that a list has them.
    pub(super) fn add_scoped_agents(&mut self) {
        let Some(scope) = self.scopes.of_caller() else {
            return;
        };
        let settings = &scope.settings;
        let own = settings.agents.iter().cloned();
        let own: Vec<AgentDefinition> = own.map(|own| complete(own, settings)).collect();
        for definition in own {
            if self.scoped(definition).is_err() {
                return;
            }
        }
    }

    /// Returns the agents that the client whose call is being handled can name, the default one first.
    pub(super) fn listed_agents(&self) -> Vec<AgentRef> {
        let shared = |agent: &AgentRef| !self.router.agents().is_scoped(*agent);
        let Some(scope) = self.scopes.of_caller() else {
            return self.router.agents().present().filter(shared).collect();
        };
        let settings = &scope.settings;
        let configured = settings.agents.iter().filter_map(|own| {
            let own = complete(own.clone(), settings);
            self.router.agents().find_scoped(&own)
        });
        let of_clients = self
            .router
            .agents()
            .present()
            .filter(shared)
            .filter(|agent| {
                self.router.agents().get(*agent).definition().spec.source == AgentSource::Client
            });
        let of_clients = of_clients.map(|agent| {
            let own = restricted(self, agent, settings);
            self.router.agents().find_scoped(&own).unwrap_or(agent)
        });
        let default = std::iter::once(scope.default);
        default.chain(configured).chain(of_clients).collect()
    }

    /// Returns the agent of a stored session that had an agent without a name, by its command line. `None` if the
    /// hub is not that of a daemon: there, only the default agent has no name.
    pub(super) fn unnamed_agent_of(&mut self, identity: &Identity) -> Option<AgentRef> {
        if !self.router.shared().is_resident || identity.agent_name.is_some() {
            return None;
        }
        let stored = identity.agent_command.as_deref().cloned()?;
        let key = key(stored.protocol, &stored.command, &stored.args);
        let default = self.default_agent();
        let is_same = |agent: &AgentRef| {
            let machine = self.router.agents().get(*agent);
            machine.name() == DEFAULT_AGENT && machine.identity() == key
        };
        if is_same(&default) {
            return Some(default);
        }
        if let Some(agent) = self.router.agents().all().find(is_same) {
            return Some(agent);
        }
        let spec = AgentSpec::of_stored(stored, self.router.agents().get(default).configured())?;
        let definition = complete(AgentDefinition::unnamed(spec), self.caller_settings());
        self.scoped(definition).ok()
    }

    /// Returns the terms of the client whose call is being handled, for a session and its agent. `None` if all clients
    /// have the settings of the hub.
    ///
    /// # Errors
    /// There are too many different agent definitions.
    pub(super) fn caller_terms(
        &mut self,
        session: &str,
        agent: AgentRef,
    ) -> Result<Option<Box<CallerTerms>>, Error> {
        if !self.router.shared().is_resident {
            return Ok(None);
        }
        let own = self.callers_definition(agent)?;
        let settings = self.caller_settings();
        let definition = own.map(|own| self.router.agents().get(own).definition());
        let terms = match definition {
            Some(own) => Terms::of(own, settings),
            None => Terms {
                policy: settings.policy.clone(),
                limits: settings.limits,
            },
        };
        let options = definition.map(|own| own.spec.options.clone());
        let mut options = options.unwrap_or_default();
        let caller = self.scopes.caller;
        let refused = self.scopes.refused.get(&caller);
        if let Some(refused) = refused.and_then(|own| own.get(session)) {
            options.disallowed_tools.extend_from_slice(refused);
        }
        Ok(Some(Box::new(CallerTerms {
            client: caller,
            terms,
            options,
        })))
    }

    /// Returns the same agent by the definition of the client whose call is being handled. `None` if its settings have
    /// no such agent.
    pub(super) fn callers_definition(
        &mut self,
        agent: AgentRef,
    ) -> Result<Option<AgentRef>, Error> {
        let machine = self.router.agents().get(agent);
        let (name, identity) = (machine.name().to_owned(), machine.identity());
        let own = self.scoped_agent(&name)?;
        let own = own.or_else(|| self.router.agents().find(&name));
        Ok(own.filter(|own| self.router.agents().get(*own).identity() == identity))
    }

    /// Returns the names of the settings in which a session differs from those of the client whose call is being handled,
    /// and from the MCP servers of the call.
    pub(super) fn differing_settings(
        &mut self,
        session: &str,
        servers: &[McpServer],
    ) -> Result<Vec<String>, Error> {
        let id = session;
        let Some(session) = self.router.sessions().get(id) else {
            return Ok(Vec::new());
        };
        let agent = session.agent;
        let has_others = !servers.is_empty() && servers != session.mcp_servers;
        let own = self.caller_terms(id, agent)?;
        let definition = self.callers_definition(agent)?.filter(|_| own.is_some());
        let name = self.router.agents().get(agent).name().to_owned();
        let has_other_agent =
            definition.is_none() && name != DEFAULT_AGENT && self.scoped_agent(&name)?.is_some();
        let settings = &self.router.shared().settings;
        let held = self.router.agents().get(agent).definition();
        let mut differing = Vec::new();
        if let Some(own) = own {
            let terms = Terms::of(held, settings);
            differing.push(("agent", has_other_agent));
            differing.push(("permissions", own.terms.policy != terms.policy));
            differing.push(("limits", own.terms.limits != terms.limits));
        }
        let wished = definition.map(|agent| self.router.agents().get(agent).definition());
        if let Some(wished) = wished {
            let (ours, theirs) = (&wished.spec.options, &held.spec.options);
            let without = |options: &SessionOptions| SessionOptions {
                mode: None,
                model: None,
                ..options.clone()
            };
            differing.push(("mode", ours.mode != theirs.mode));
            differing.push(("model", ours.model != theirs.model));
            differing.push(("options", without(ours) != without(theirs)));
            differing.push(("instructions", wished.instructions != held.instructions));
            differing.push(("environment", wished.spec.env != held.spec.env));
        }
        let has_others = has_others
            || wished.is_some_and(|wished| {
                settings.mcp_servers_of(wished) != settings.mcp_servers_of(held)
            });
        differing.push(("mcpServers", has_others));
        let names = differing.into_iter().filter(|(_, differs)| *differs);
        Ok(names.map(|(name, _)| name.to_owned()).collect())
    }

    /// Returns the agent that a call means by `agent` for a session: the session's own agent, if it is the same agent
    /// by another definition. A session that is not live takes the definition of the call.
    pub(super) fn agent_for(&mut self, session: &str, agent: AgentRef) -> AgentRef {
        if !self.router.shared().is_resident {
            return agent;
        }
        let Some(own) = self.router.sessions().get(session).map(|s| s.agent) else {
            return agent;
        };
        if self.router.agents().get(own).identity() != self.router.agents().get(agent).identity() {
            return agent;
        }
        let Some(session) = self.router.sessions_mut().get_mut(session) else {
            return agent;
        };
        if session.is_resting() {
            session.set_agent(agent);
        }
        session.agent
    }

    fn scoped(&mut self, definition: AgentDefinition) -> Result<AgentRef, Error> {
        if let Some(agent) = self.router.agents().find_scoped(&definition) {
            return Ok(agent);
        }
        let all = self.router.agents().present();
        let all = all.filter(|agent| self.router.agents().is_scoped(*agent));
        if all.count() >= MOST_DEFINITIONS {
            let message = format!(
                "the daemon has {MOST_DEFINITIONS} different agent definitions; restart it with `acpipe daemon restart`"
            );
            return Err(Error::new(ErrorKind::Overloaded, message));
        }
        Ok(self.router.agents_mut().add_scoped(definition))
    }
}

/// Gives an agent that a client has connected with another command the same command for the clients that name it later.
/// `gives_list` is `true` if the client gave it a list of allowed tools, too.
pub(super) fn share_command(hub: &mut Hub, agent: AgentRef, gives_list: bool) {
    let machine = hub.router.agents().get(agent);
    let (name, mut spec) = (machine.name(), machine.configured().clone());
    let Some(shared) = hub
        .router
        .agents()
        .find(name)
        .filter(|_| name != DEFAULT_AGENT)
    else {
        return;
    };
    if gives_list {
        hub.scopes.set_definer(shared);
    } else {
        let list = &hub
            .router
            .agents()
            .get(shared)
            .configured()
            .options
            .allowed_tools;
        spec.options.allowed_tools.clone_from(list);
    }
    if hub.router.agents().is_scoped(agent) {
        hub.router.agents_mut().get_mut(shared).set_configured(spec);
        let own = restricted(hub, shared, hub.caller_settings());
        hub.router.agents_mut().set_scope(agent, own);
    }
}

/// Returns a definition that no longer depends on the settings of the hub.
fn complete(mut definition: AgentDefinition, settings: &Settings) -> AgentDefinition {
    definition.mcp_servers = settings.mcp_servers_of(&definition);
    let policy = &mut definition.policy;
    policy.get_or_insert_with(|| Arc::new(settings.policy.clone()));
    let limits = &mut definition.limits;
    limits.get_or_insert_with(|| Box::new(settings.limits));
    definition.on_lost.get_or_insert(settings.on_lost);
    definition
}

/// Returns the agent of this name for a client with the settings of the daemon, if another client has given it a list
/// of allowed tools.
fn without_list_of_others(hub: &mut Hub, name: &str) -> Result<Option<AgentRef>, Error> {
    let shared = hub
        .router
        .agents()
        .find(name)
        .filter(|_| hub.router.shared().is_resident);
    let has_list = |agent: &AgentRef| {
        let machine = hub.router.agents().get(*agent);
        let is_of_client = machine.configured().source == AgentSource::Client;
        is_of_client && !machine.configured().options.allowed_tools.is_empty()
    };
    let of_other = |agent: &AgentRef| !hub.scopes.gave_list(*agent);
    let Some(shared) = shared.filter(has_list).filter(of_other) else {
        return Ok(None);
    };
    hub.scoped(restricted(hub, shared, &hub.router.shared().settings))
        .map(Some)
}

/// Returns the definition of an agent that is not in a client's settings, by which these hold in addition to its own.
/// Its list of allowed tools counts only for the client that gave it.
fn restricted(hub: &Hub, shared: AgentRef, settings: &Settings) -> AgentDefinition {
    let mut definition = hub.router.agents().get(shared).definition().clone();
    if !hub.scopes.gave_list(shared) {
        definition.spec.options.allowed_tools.clear();
    }
    if let Some(policy) = &mut definition.policy {
        *policy = Arc::new(policy.with_caller(&settings.policy, None));
    }
    if let Some(limits) = &mut definition.limits {
        **limits = limits.stricter(&settings.limits);
    }
    complete(definition, settings)
}
