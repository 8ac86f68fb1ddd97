//! Clients with settings of their own.
//!
//! All clients of `acpipe serve` have the settings of the hub. A client of the daemon has those of its own command
//! line, directory and configuration: the agents that it names, with their policies and limits, are separate from
//! those of other clients. Clients with equal definitions, which serve the same files and terminals, share an agent.
//!
//! Owns the settings of each client, the client whose call is being handled, and which client gave tools, and with
//! which settings it opened sessions. It
//! adds agents, and touches nothing else.

use super::opened_sessions::{AgentOfOpener, OpenedSession, OpenedSessions};
use crate::agent_command::key;
use crate::agent_definition::AgentDefinition;
use crate::agent_spec::{AgentSpec, DEFAULT_AGENT};
use crate::builtin_definition::builtin_definition;
use crate::client::ClientId;
use crate::clients::ClientServices;
use crate::config::Settings;
use crate::hub::agents::Agents;
use crate::ids::AgentRef;
use crate::log::Identity;
use crate::session::CallerSettings;
use crate::shared::Shared;
use crate::terms::{CallerTerms, Terms};
use acpipe_model::builtin_agents;
use acpipe_model::error::{Error, invalid};
use acpipe_model::setting::Setting;
use acpipe_protocol::wire::{AgentSource, SessionOptions, Variables};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Clients with settings of their own.
#[derive(Default)]
pub(in crate::hub) struct Scopes {
    all: BTreeMap<ClientId, Scope>,
    /// Client whose call is being handled or answered.
    caller: ClientId,
    opened: OpenedSessions,
    /// Clients that defined an agent.
    definers: BTreeMap<AgentRef, ClientId>,
    /// Clients that gave an agent its list of allowed tools.
    list_givers: BTreeMap<AgentRef, ClientId>,
}

/// Settings of a client.
struct Scope {
    settings: Box<Settings>,
    /// Services that the client declared in `initialize`.
    services: ClientServices,
    default: AgentRef,
    /// Agents that the client changed, by their names: the changes hold for it, also where they contradict its settings.
    changed: BTreeMap<String, AgentRef>,
    /// Variables that the client set for agents, by their names. It keeps them if another client changes the agent.
    variables: BTreeMap<String, Variables>,
}

impl Scope {
    fn new(
        agents: &mut Agents,
        settings: Box<Settings>,
        services: ClientServices,
    ) -> Result<Self, Error> {
        let mut scope = Self {
            settings,
            services,
            default: Agents::DEFAULT,
            changed: BTreeMap::new(),
            variables: BTreeMap::new(),
        };
        scope.default = scope.agent(agents, scope.default_definition())?;
        Ok(scope)
    }

    /// Returns the client's own definition of an agent.
    fn complete(&self, definition: AgentDefinition) -> AgentDefinition {
        complete(definition, &self.settings, &self.services)
    }

    fn default_definition(&self) -> AgentDefinition {
        self.complete(self.settings.default_agent.clone())
    }

    /// Returns the client's agent with this definition, and adds it if it does not exist.
    ///
    /// # Errors
    /// There are too many different agent definitions.
    fn agent(&self, agents: &mut Agents, definition: AgentDefinition) -> Result<AgentRef, Error> {
        let definition = self.with_variables(agents, definition);
        agents.scoped(definition)
    }

    /// Adds the variables that the client set to a definition, unless the agent with this definition has them still.
    fn with_variables(&self, agents: &Agents, mut definition: AgentDefinition) -> AgentDefinition {
        if let Some(own) = self.variables.get(&definition.name) {
            let shared = agents.find_scoped(&definition);
            if !shared.is_some_and(|agent| agents.next_spec(agent).env.contains_all(own)) {
                definition.spec.env.0.extend(own.clone().0);
            }
        }
        definition
    }
}

impl Scopes {
    pub(in crate::hub) fn set_caller(&mut self, client: ClientId) {
        self.caller = client;
    }

    pub(in crate::hub) fn caller(&self) -> ClientId {
        self.caller
    }

    pub(in crate::hub) fn remove(&mut self, client: ClientId) {
        self.all.remove(&client);
        self.opened.remove(client);
    }

    /// Notes that the client whose call is being handled defined an agent, with its list of allowed tools.
    pub(in crate::hub) fn set_definer(&mut self, agent: AgentRef) {
        self.definers.insert(agent, self.caller);
        self.list_givers.insert(agent, self.caller);
    }

    /// Checks that the client whose call is being handled gives an agent that another client defined no other options: those
    /// hold for all clients. A list of allowed tools counts only for the client that gives it.
    ///
    /// # Errors
    /// `invalidParams`.
    pub(in crate::hub) fn check_options_of_other(
        &self,
        agents: &Agents,
        agent: AgentRef,
        options: &SessionOptions,
    ) -> Result<(), Error> {
        let name = agents.get(agent).name();
        let shared = agents.find(name).filter(|_| name != DEFAULT_AGENT);
        let of_other = shared.filter(|shared| {
            let definer = self.definers.get(shared);
            definer.is_some_and(|definer| *definer != self.caller)
        });
        let Some(shared) = of_other else {
            return Ok(());
        };
        let own = &agents.get(shared).definition().spec.options;
        let options = SessionOptions {
            allowed_tools: own.allowed_tools.clone(),
            ..options.clone()
        };
        if options.or(own) == *own {
            return Ok(());
        }
        let why = format!(
            "contradicts those with which another client defined agent {name:?}; leave them out, or define an agent of \
             another name"
        );
        Err(invalid("options", &why))
    }

    /// Returns `true` if the list of allowed tools of an agent is that of the client whose call is being handled.
    fn gave_list(&self, agent: AgentRef) -> bool {
        self.list_givers.get(&agent) == Some(&self.caller)
    }

    /// Notes that the client whose call is being handled opened or joined a session.
    pub(in crate::hub) fn note_opened(
        &mut self,
        session: &str,
        opened: OpenedSession,
        names_agent: bool,
    ) {
        self.opened.note(self.caller, session, opened, names_agent);
    }

    /// Notes that the client whose call is being handled sets the mode or model of a session.
    pub(in crate::hub) fn note_set(&mut self, session: &str, setting: &Setting) {
        self.opened.note_set(self.caller, session, setting);
    }

    /// Notes that a session is open for the client whose call is being handled at an agent of this name.
    pub(in crate::hub) fn note_success(&mut self, session: &str, agent: &str) {
        self.opened.note_success(self.caller, session, agent);
    }

    /// Notes that the client whose call is being handled closed a session.
    pub(in crate::hub) fn note_closed(&mut self, session: &str) {
        self.opened.close(self.caller, session);
    }

    /// Forgets that the client whose call is being handled opened a session. The tools that other clients refused stay
    /// refused for them, also in a later session with this id.
    pub(in crate::hub) fn forget_opened(&mut self, session: &str) {
        self.opened.forget(self.caller, session);
    }

    /// Returns with which settings the client whose call is being handled opened or joined a session; `None` if it did not.
    pub(super) fn opened(&self, session: &str) -> Option<&OpenedSession> {
        self.opened.get(self.caller, session)
    }

    fn of_caller(&self) -> Option<&Scope> {
        self.all.get(&self.caller)
    }
}

impl Scopes {
    /// Gives a client settings of its own. Call it before the first call of the client.
    ///
    /// # Errors
    /// There are too many different agent definitions.
    pub(in crate::hub) fn join(
        &mut self,
        agents: &mut Agents,
        client: ClientId,
        settings: Box<Settings>,
    ) -> Result<(), Error> {
        let scope = Scope::new(agents, settings, ClientServices::default())?;
        self.all.insert(client, scope);
        Ok(())
    }

    /// Notes the services that a client of a daemon declares in `initialize`. Its agents are then those of clients with
    /// the same services, because an agent learns only at its start what it may use.
    ///
    /// # Errors
    /// There are too many different agent definitions.
    pub(in crate::hub) fn declare(
        &mut self,
        agents: &mut Agents,
        shared: &Shared,
        client: ClientId,
        services: ClientServices,
    ) -> Result<(), Error> {
        if !shared.is_resident {
            return Ok(());
        }
        match self.all.get_mut(&client) {
            Some(scope) if scope.services != services => {
                scope.services = services;
                scope.default = scope.agent(agents, scope.default_definition())?;
            }
            None if services != ClientServices::default() => {
                let settings = Box::new(shared.settings.clone());
                let scope = Scope::new(agents, settings, services)?;
                self.all.insert(client, scope);
            }
            Some(_) | None => {}
        }
        Ok(())
    }

    /// Notes that the client whose call is being handled changed an agent, and set these variables for good. The change
    /// holds for this client. The other clients have another agent from now on if the change contradicts their settings, or
    /// the variables that they set themselves.
    pub(in crate::hub) fn note_change(
        &mut self,
        agents: &mut Agents,
        agent: AgentRef,
        set: Variables,
    ) {
        let name = agents.get(agent).name().to_owned();
        let contradicts = !agents.holds_scope(agent);
        if let Some(scope) = self.all.get_mut(&self.caller) {
            if !set.0.is_empty() {
                let own = scope.variables.entry(name.clone()).or_default();
                own.0.extend(set.0);
            }
            if contradicts {
                scope.changed.insert(name.clone(), agent);
            }
        }
        for (client, scope) in &mut self.all {
            let may_differ = contradicts || scope.variables.contains_key(&name);
            if *client != self.caller
                && scope.default == agent
                && may_differ
                // With too many definitions, the client keeps the agent as it is now.
                && let Ok(own) = scope.agent(agents, scope.default_definition())
            {
                scope.default = own;
            }
        }
    }

    /// Returns the default agent of the client whose call is being handled.
    pub(in crate::hub) fn default_agent(&self) -> AgentRef {
        let own = self.of_caller();
        own.map_or(Agents::DEFAULT, |scope| scope.default)
    }

    pub(in crate::hub) fn caller_settings<'a>(&'a self, shared: &'a Shared) -> &'a Settings {
        let own = self.of_caller();
        own.map_or(&shared.settings, |scope| &scope.settings)
    }

    /// Returns the agent of this name by the settings of the client whose call is being handled. An agent that is not in
    /// them, since a client defined it for example, is given them as well. `None` if there is no such agent, or if the client
    /// has the settings of the hub and no other client has given the agent a list of allowed tools.
    pub(in crate::hub) fn scoped_agent(
        &self,
        agents: &mut Agents,
        shared: &Shared,
        name: &str,
    ) -> Result<Option<AgentRef>, Error> {
        let Some(scope) = self.of_caller() else {
            return self.without_list_of_others(agents, shared, name);
        };
        if name == DEFAULT_AGENT || agents.get(scope.default).name() == name {
            return Ok(Some(scope.default));
        }
        let changed = scope.changed.get(name).copied();
        if let Some(changed) = changed.filter(|agent| agents.is_present(*agent)) {
            return Ok(Some(changed));
        }
        let settings = &scope.settings;
        let configured = settings.agents.iter().find(|own| own.name == name);
        let builtin = || builtin_agents::find(name).map(|own| builtin_definition(own, settings));
        let definition = match configured.cloned().or_else(builtin) {
            Some(own) => scope.complete(own),
            None => match agents.find(name) {
                Some(shared) => self.restricted(agents, shared, settings),
                None => return Ok(None),
            },
        };
        scope.agent(agents, definition).map(Some)
    }

    /// Adds the configured agents of the client whose call is being handled, so that a list has them.
    pub(in crate::hub) fn add_scoped_agents(&self, agents: &mut Agents) {
        let Some(scope) = self.of_caller() else {
            return;
        };
        let own = scope.settings.agents.iter().cloned();
        let own: Vec<AgentDefinition> = own.map(|own| scope.complete(own)).collect();
        for definition in own {
            if scope.agent(agents, definition).is_err() {
                return;
            }
        }
    }

    /// Returns the agents that the client whose call is being handled can name, the default one first.
    pub(in crate::hub) fn listed_agents(&self, agents: &Agents) -> Vec<AgentRef> {
        let shared = |agent: &AgentRef| !agents.is_scoped(*agent);
        let Some(scope) = self.of_caller() else {
            return agents.present().filter(shared).collect();
        };
        let settings = &scope.settings;
        let configured = settings.agents.iter().filter_map(|own| {
            let changed = scope.changed.get(&own.name).copied();
            let find = || {
                let own = scope.complete(own.clone());
                agents.find_scoped(&scope.with_variables(agents, own))
            };
            changed.or_else(find)
        });
        let of_clients = agents
            .present()
            .filter(shared)
            .filter(|agent| agents.get(*agent).definition().spec.source == AgentSource::Client);
        let of_clients = of_clients.map(|agent| {
            if let Some(changed) = scope.changed.get(agents.get(agent).name()) {
                return *changed;
            }
            let own = self.restricted(agents, agent, settings);
            let own = scope.with_variables(agents, own);
            agents.find_scoped(&own).unwrap_or(agent)
        });
        let default = std::iter::once(scope.default);
        default.chain(configured).chain(of_clients).collect()
    }

    /// Returns the agent of a stored session that had an agent without a name, by its command line. `None` if the
    /// hub is not that of a daemon: there, only the default agent has no name.
    pub(in crate::hub) fn unnamed_agent_of(
        &self,
        agents: &mut Agents,
        shared: &Shared,
        identity: &Identity,
    ) -> Option<AgentRef> {
        if !shared.is_resident || identity.agent_name.is_some() {
            return None;
        }
        let stored = identity.agent_command.as_deref().cloned()?;
        let key = key(stored.protocol, &stored.command, &stored.args);
        let default = self.default_agent();
        let is_same = |agent: &AgentRef| {
            let machine = agents.get(*agent);
            machine.name() == DEFAULT_AGENT && machine.identity() == key
        };
        if is_same(&default) {
            return Some(default);
        }
        // Not one that only a read of the session has added: it has the settings of the reader.
        let is_in_use = |agent: &AgentRef| {
            let mut scopes = self.all.values();
            *agent == Agents::DEFAULT
                || agents.get(*agent).connection().is_some()
                || scopes.any(|scope| scope.default == *agent)
        };
        let mut same = agents.all().filter(is_same);
        if let Some(agent) = same.find(is_in_use) {
            return Some(agent);
        }
        let settings = self.caller_settings(shared);
        let default = &agents.get(default).definition().spec;
        let spec = AgentSpec::of_stored(stored, default, &settings.variables)?;
        let definition = AgentDefinition::unnamed(spec);
        let definition = complete(definition, settings, &self.caller_services());
        agents.scoped(definition).ok()
    }

    /// Returns the terms of the client whose call is being handled, for a session and its agent. `None` if all clients
    /// have the settings of the hub.
    ///
    /// # Errors
    /// There are too many different agent definitions.
    pub(in crate::hub) fn caller_terms(
        &self,
        agents: &mut Agents,
        shared: &Shared,
        session: &str,
        agent: AgentRef,
    ) -> Result<Option<Box<CallerTerms>>, Error> {
        if !shared.is_resident {
            return Ok(None);
        }
        let (mut terms, own) = self.terms_at(agents, shared, agent)?;
        let definition = own.map(|own| agents.get(own).definition());
        let caller = self.caller;
        let demand = self
            .opened
            .demand(caller, session, agents.get(agent).name());
        if let Some(own) = &demand.terms {
            terms = terms.with_caller(own, None);
        }
        let spec = agents.get(agent).spec();
        let asking = definition.and_then(|own| own.asking(spec));
        let asking = asking.map(Cow::into_owned);
        let options = definition.map(|own| own.spec.options.clone());
        let mut options = options.unwrap_or_default();
        options.disallowed_tools.extend(demand.refused);
        Ok(Some(Box::new(CallerTerms {
            client: caller,
            has_own_settings: self.of_caller().is_some(),
            terms,
            options,
            asking,
        })))
    }

    /// Returns the terms of the client whose call is being handled at an agent, and the agent by the client's own definition.
    pub(super) fn terms_at(
        &self,
        agents: &mut Agents,
        shared: &Shared,
        agent: AgentRef,
    ) -> Result<(Terms, Option<AgentRef>), Error> {
        let own = self.callers_definition(agents, shared, agent)?;
        let settings = self.caller_settings(shared);
        let terms = match own {
            Some(own) => Terms::of(agents.get(own).definition(), settings),
            None => Terms {
                policy: settings.policy.clone(),
                limits: settings.limits,
            },
        };
        Ok((terms, own))
    }

    /// Returns the same agent by the definition of the client whose call is being handled. `None` if its settings have
    /// no such agent.
    pub(in crate::hub) fn callers_definition(
        &self,
        agents: &mut Agents,
        shared: &Shared,
        agent: AgentRef,
    ) -> Result<Option<AgentRef>, Error> {
        let machine = agents.get(agent);
        let (name, identity) = (machine.name().to_owned(), machine.identity());
        let own = self.scoped_agent(agents, shared, &name)?;
        let own = own.or_else(|| agents.find(&name));
        Ok(own.filter(|own| agents.get(*own).identity() == identity))
    }

    /// Returns the settings of the client whose call is being handled, for the comparison with those of a session at this
    /// agent. `names_agent` is `true` if the call names the agent. `options` are those of the call; `has_other_servers` is `true` if the call has other MCP servers.
    pub(in crate::hub) fn caller_settings_for(
        &self,
        agents: &mut Agents,
        shared: &Shared,
        (session, agent): (&str, AgentRef),
        names_agent: bool,
        options: &SessionOptions,
        has_other_servers: bool,
    ) -> Result<CallerSettings, Error> {
        let terms = self.caller_terms(agents, shared, session, agent)?;
        let own = match &terms {
            Some(_) => {
                let name = agents.get(agent).name().to_owned();
                let named = self.scoped_agent(agents, shared, &name)?;
                named.or(self.callers_definition(agents, shared, agent)?)
            }
            None => None,
        };
        let is_here = |own: &AgentOfOpener| own.name == agents.get(agent).name();
        let opened = self.opened(session);
        let has_moved = !names_agent && opened.is_some_and(|own| !own.agents.iter().any(is_here));
        let is_other = has_moved || own.is_some_and(|own| has_other_program(agents, own, agent));
        let machine = agents.get(agent);
        let (held, settings) = (machine.definition(), &shared.settings);
        // A client may have changed an agent against its definition.
        let their_spec = machine.spec();
        let our_spec = own.map_or(their_spec, |own| agents.get(own).spec());
        let own = own.map(|own| agents.get(own).definition());
        let mut differing = Vec::new();
        if let Some(caller) = &terms {
            let held = Terms::of(held, settings);
            differing.push(("agent", is_other));
            differing.push(("permissions", caller.terms.policy != held.policy));
            differing.push(("limits", caller.terms.limits != held.limits));
        }
        if let Some(own) = own {
            differing.push(("environment", our_spec.env != their_spec.env));
            // A definition without a directory has that in which the client was started.
            let has_own = our_spec.cwd != self.caller_settings(shared).cwd;
            differing.push(("cwd", has_own && our_spec.cwd != their_spec.cwd));
            let has_others = our_spec.child_per_session != their_spec.child_per_session;
            differing.push(("childPerSession", has_others));
            let (ours, theirs) = (own.services.host, held.services.host);
            let lacks_files =
                ours.read_files && !theirs.read_files || ours.write_files && !theirs.write_files;
            differing.push(("files", lacks_files));
            differing.push(("terminals", ours.terminals && !theirs.terminals));
        }
        let has_others = has_other_servers
            || own.is_some_and(|own| settings.mcp_servers_of(own) != settings.mcp_servers_of(held));
        differing.push(("mcpServers", has_others));
        let differing = differing.into_iter().filter(|(_, differs)| *differs);
        let hide = |line: String| settings.secrets.hide(&line).into_owned();
        Ok(CallerSettings {
            got: None,
            instructions: own.unwrap_or(held).instructions_hash(),
            options: options.clone().or(&our_spec.options),
            held: their_spec.options.clone(),
            differing: differing.map(|(name, _)| name).collect(),
            agent_command: is_other.then(|| hide(their_spec.stored().shown_line())),
            terms,
        })
    }

    /// Gives an agent that a client has connected with another command the same command for the clients that name it later.
    /// `gives_list` is `true` if the client gave it a list of allowed tools, too.
    pub(in crate::hub) fn share_command(
        &mut self,
        agents: &mut Agents,
        shared_state: &Shared,
        agent: AgentRef,
        gives_list: bool,
    ) {
        let machine = agents.get(agent);
        let (name, mut spec) = (machine.name(), machine.definition().spec.clone());
        let Some(shared) = agents.find(name).filter(|_| name != DEFAULT_AGENT) else {
            return;
        };
        if gives_list {
            self.list_givers.insert(shared, self.caller);
        } else {
            let list = &agents.get(shared).definition().spec.options.allowed_tools;
            spec.options.allowed_tools.clone_from(list);
        }
        if agents.is_scoped(agent) {
            agents.get_mut(shared).set_configured(spec);
            let own = self.restricted(agents, shared, self.caller_settings(shared_state));
            agents.set_scope(agent, own);
        }
    }

    /// Returns the agent of this name for a client with the settings of the daemon, if another client has given it a list
    /// of allowed tools.
    fn without_list_of_others(
        &self,
        agents: &mut Agents,
        state: &Shared,
        name: &str,
    ) -> Result<Option<AgentRef>, Error> {
        let shared = agents.find(name).filter(|_| state.is_resident);
        let has_list = |agent: &AgentRef| {
            let machine = agents.get(*agent);
            let is_of_client = machine.definition().spec.source == AgentSource::Client;
            is_of_client && !machine.definition().spec.options.allowed_tools.is_empty()
        };
        let of_other = |agent: &AgentRef| !self.gave_list(*agent);
        let Some(shared) = shared.filter(has_list).filter(of_other) else {
            return Ok(None);
        };
        agents
            .scoped(self.restricted(agents, shared, &state.settings))
            .map(Some)
    }

    /// Returns the definition of an agent that is not in a client's settings, by which these hold in addition to its own.
    /// Its list of allowed tools counts only for the client that gave it.
    fn restricted(
        &self,
        agents: &Agents,
        shared: AgentRef,
        settings: &Settings,
    ) -> AgentDefinition {
        let mut definition = agents.get(shared).definition().clone();
        if !self.gave_list(shared) {
            definition.spec.options.allowed_tools.clear();
        }
        if let Some(policy) = &mut definition.policy {
            *policy = Arc::new(policy.with_caller(&settings.policy, None));
        }
        if let Some(limits) = &mut definition.limits {
            **limits = limits.stricter(&settings.limits);
        }
        complete(definition, settings, &self.caller_services())
    }

    fn caller_services(&self) -> ClientServices {
        let own = self.of_caller();
        own.map(|scope| scope.services.clone()).unwrap_or_default()
    }
}

/// Returns `true` if an agent by the definition of a client runs another command line than the agent of a session, or sends
/// an endpoint or a command other headers, keys or input. The demo agent is the default of clients that name no agent.
fn has_other_program(agents: &Agents, own: AgentRef, agent: AgentRef) -> bool {
    let definition = agents.get(own).definition();
    let (ours, theirs) = (&definition.spec, agents.get(agent).spec());
    if ours.source == AgentSource::Demo && definition.name == DEFAULT_AGENT {
        return false;
    }
    let line = |spec: &AgentSpec| (spec.protocol, spec.command.clone(), spec.args.clone());
    own != agent && (line(ours) != line(theirs) || ours.backend != theirs.backend)
}

/// Returns a definition that no longer depends on the settings of the hub.
fn complete(
    mut definition: AgentDefinition,
    settings: &Settings,
    services: &ClientServices,
) -> AgentDefinition {
    definition.mcp_servers = settings.mcp_servers_of(&definition);
    let policy = &mut definition.policy;
    policy.get_or_insert_with(|| Arc::new(settings.policy.clone()));
    let limits = &mut definition.limits;
    limits.get_or_insert_with(|| Box::new(settings.limits));
    definition.on_lost.get_or_insert(settings.on_lost);
    definition.services = services.clone();
    definition
}
