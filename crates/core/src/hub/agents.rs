//! The agents, by name.

use crate::agent::{AgentMachine, Call, Connection, DEFAULT_AGENT};
use crate::agent_definition::AgentDefinition;
use crate::agent_spec::AgentSpec;
use crate::client::ClientId;
use crate::effect::AgentId;
use crate::ids::AgentRef;
use acpipe_model::error::{Error, ErrorKind};
use acpipe_model::event::CallId;
use acpipe_protocol::wire::AgentSource;
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of different agent definitions of clients. Agents are never removed.
const MOST_DEFINITIONS: usize = 1024;

/// All agents. The first is the default agent. Agents are never removed.
#[derive(Default)]
pub(super) struct Agents {
    all: Vec<AgentMachine>,
    /// Definitions by which clients with settings of their own name the agents that are theirs alone.
    scopes: BTreeMap<AgentRef, AgentDefinition>,
    /// Clients that registered agents which are retired when the client leaves.
    owners: BTreeMap<AgentRef, ClientId>,
    /// Agents that can no longer be named.
    retired: BTreeSet<AgentRef>,
}

impl Agents {
    pub(super) const DEFAULT: AgentRef = AgentRef(0);

    /// Adds an agent. The name must not exist yet.
    pub(super) fn add(&mut self, definition: AgentDefinition) -> AgentRef {
        let reference = AgentRef(self.all.len());
        self.all.push(AgentMachine::new(reference, definition));
        reference
    }

    /// Adds an agent that only clients with settings of their own can name.
    pub(super) fn add_scoped(&mut self, definition: AgentDefinition) -> AgentRef {
        let agent = self.add(definition.clone());
        self.set_scope(agent, definition);
        agent
    }

    /// Returns the agent with this definition that only clients with settings of their own can name, and adds it if it
    /// does not exist.
    ///
    /// # Errors
    /// There are too many different agent definitions.
    pub(super) fn scoped(&mut self, definition: AgentDefinition) -> Result<AgentRef, Error> {
        if let Some(agent) = self.find_scoped(&definition) {
            return Ok(agent);
        }
        let all = self.present();
        let all = all.filter(|agent| self.is_scoped(*agent));
        if all.count() >= MOST_DEFINITIONS {
            let message = format!(
                "the daemon has {MOST_DEFINITIONS} different agent definitions; restart it with `acpipe daemon restart`"
            );
            return Err(Error::new(ErrorKind::Overloaded, message));
        }
        Ok(self.add_scoped(definition))
    }

    /// Restricts an agent to clients whose settings give it this definition. It stays the same agent for them if its
    /// environment or command is changed later.
    pub(super) fn set_scope(&mut self, agent: AgentRef, definition: AgentDefinition) {
        self.scopes.insert(agent, definition);
    }

    /// Returns `true` if only clients with settings of their own can name the agent.
    pub(super) fn is_scoped(&self, agent: AgentRef) -> bool {
        self.scopes.contains_key(&agent)
    }

    /// Finds the agent with this definition that only clients with settings of their own can name. An agent that a client
    /// has changed against its definition is not found.
    pub(super) fn find_scoped(&self, definition: &AgentDefinition) -> Option<AgentRef> {
        let mut agents = self.present();
        agents.find(|agent| self.scopes.get(agent) == Some(definition) && self.holds_scope(*agent))
    }

    /// Returns `true` unless a client has changed an agent so that it contradicts the definition of other clients: another
    /// value of a variable, other options, or another program if they name one.
    pub(super) fn holds_scope(&self, agent: AgentRef) -> bool {
        let Some(definition) = self.scopes.get(&agent) else {
            return true;
        };
        let (spec, own) = (self.next_spec(agent), &definition.spec);
        // The demo agent stands for no agent: the first command of a client counts for all.
        let has_program = own.source == AgentSource::Demo || spec.is_same_program(own);
        has_program && spec.env.contains_all(&own.env) && spec.options == own.options
    }

    /// Returns the specification of the process that is to be started next, else that of the agent.
    pub(super) fn next_spec(&self, agent: AgentRef) -> &AgentSpec {
        let machine = self.get(agent);
        let next = machine.connection().and_then(Connection::next_spec);
        next.unwrap_or_else(|| machine.spec())
    }

    /// Finds an agent by its name. `default` is always the default agent, whatever its name.
    pub(super) fn find(&self, name: &str) -> Option<AgentRef> {
        if name == DEFAULT_AGENT {
            return Some(Self::DEFAULT);
        }
        let mut shared = self.present().filter(|agent| !self.is_scoped(*agent));
        shared.find(|agent| self.get(*agent).name() == name)
    }

    /// Returns an agent that a client defined, and its variants by the settings of other clients.
    pub(super) fn with_variants(&self, agent: AgentRef) -> Vec<AgentRef> {
        let name = self.get(agent).name();
        let is_variant = |other: &AgentRef| {
            let scope = self.scopes.get(other);
            scope.is_some_and(|own| own.name == name && own.spec.source == AgentSource::Client)
        };
        let all = self.present();
        all.filter(|other| *other == agent || is_variant(other))
            .collect()
    }

    pub(super) fn with_process(&self, id: AgentId) -> Option<AgentRef> {
        let at = self
            .all
            .iter()
            .position(|agent| agent.connection().is_some_and(|c| c.child(id).is_some()))?;
        Some(AgentRef(at))
    }

    /// Sets the client with which the agent is retired.
    pub(super) fn set_owner(&mut self, agent: AgentRef, owner: Option<ClientId>) {
        match owner {
            Some(client) => self.owners.insert(agent, client),
            None => self.owners.remove(&agent),
        };
    }

    pub(super) fn owner(&self, agent: AgentRef) -> Option<ClientId> {
        self.owners.get(&agent).copied()
    }

    /// Makes an agent unavailable under its name.
    pub(super) fn retire(&mut self, agent: AgentRef) {
        self.retired.insert(agent);
        self.get_mut(agent).forbid_restart();
    }

    pub(super) fn call(&self, agent: AgentRef, call: CallId) -> Option<&Call> {
        self.get(agent).connection()?.calls.get(&call)
    }

    pub(super) fn take_call(&mut self, agent: AgentRef, call: CallId) -> Option<Call> {
        self.get_mut(agent).connection_mut()?.take_call(call)
    }

    pub(super) fn get(&self, agent: AgentRef) -> &AgentMachine {
        &self.all[agent.0]
    }

    pub(super) fn get_mut(&mut self, agent: AgentRef) -> &mut AgentMachine {
        &mut self.all[agent.0]
    }

    /// Returns `true` if the agent can be named.
    pub(super) fn is_present(&self, agent: AgentRef) -> bool {
        !self.retired.contains(&agent)
    }

    pub(super) fn present(&self) -> impl Iterator<Item = AgentRef> {
        let agents = self.all.iter().enumerate();
        agents
            .map(|(at, _)| AgentRef(at))
            .filter(|agent| self.is_present(*agent))
    }

    pub(super) fn all(&self) -> impl Iterator<Item = AgentRef> + use<> {
        (0..self.all.len()).map(AgentRef)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &AgentMachine> {
        self.all.iter()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut AgentMachine> {
        self.all.iter_mut()
    }
}
