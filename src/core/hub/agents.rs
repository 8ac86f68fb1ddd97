//! The agents, by name.

use crate::core::agent::{AgentMachine, DEFAULT_AGENT};
use crate::core::agent_definition::AgentDefinition;
use crate::core::effect::AgentId;
use crate::core::ids::AgentRef;
use crate::proto::wire::AgentSource;

/// All agents. The first is the default agent. Agents are never removed.
#[derive(Default)]
pub(super) struct Agents(Vec<AgentMachine>);

impl Agents {
    pub(super) const DEFAULT: AgentRef = AgentRef(0);

    /// Adds an agent. The name must not exist yet.
    pub(super) fn add(&mut self, definition: AgentDefinition) -> AgentRef {
        let reference = AgentRef(self.0.len());
        self.0.push(AgentMachine::new(reference, definition));
        reference
    }

    /// Adds an agent that only clients with settings of their own can name.
    pub(super) fn add_scoped(&mut self, definition: AgentDefinition) -> AgentRef {
        let agent = self.add(definition.clone());
        self.get_mut(agent).set_scope(definition);
        agent
    }

    /// Finds the agent with this definition that only clients with settings of their own can name.
    pub(super) fn find_scoped(&self, definition: &AgentDefinition) -> Option<AgentRef> {
        let mut agents = self.present();
        agents.find(|agent| self.get(*agent).scope() == Some(definition))
    }

    /// Finds an agent by its name. `default` is always the default agent, whatever its name.
    pub(super) fn find(&self, name: &str) -> Option<AgentRef> {
        if name == DEFAULT_AGENT {
            return Some(Self::DEFAULT);
        }
        let mut shared = self
            .present()
            .filter(|agent| self.get(*agent).scope().is_none());
        shared.find(|agent| self.get(*agent).name() == name)
    }

    /// Returns an agent that a client defined, and its variants by the settings of other clients.
    pub(super) fn with_variants(&self, agent: AgentRef) -> Vec<AgentRef> {
        let name = self.get(agent).name();
        let is_variant = |machine: &AgentMachine| {
            let scope = machine.scope();
            let is_of_client = |own: &AgentDefinition| own.spec.source == AgentSource::Client;
            machine.name() == name && scope.is_some_and(is_of_client)
        };
        let all = self.present();
        all.filter(|other| *other == agent || is_variant(self.get(*other)))
            .collect()
    }

    /// Returns the agent to which this process belongs.
    pub(super) fn with_process(&self, id: AgentId) -> Option<AgentRef> {
        let at = self.0.iter().position(|agent| agent.child(id).is_some())?;
        Some(AgentRef(at))
    }

    pub(super) fn get(&self, agent: AgentRef) -> &AgentMachine {
        &self.0[agent.0]
    }

    pub(super) fn get_mut(&mut self, agent: AgentRef) -> &mut AgentMachine {
        &mut self.0[agent.0]
    }

    /// Returns the agents that can be named.
    pub(super) fn present(&self) -> impl Iterator<Item = AgentRef> {
        let agents = self.0.iter().enumerate();
        agents
            .filter(|(_, agent)| !agent.is_retired())
            .map(|(at, _)| AgentRef(at))
    }

    pub(super) fn all(&self) -> impl Iterator<Item = AgentRef> + use<> {
        (0..self.0.len()).map(AgentRef)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &AgentMachine> {
        self.0.iter()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut AgentMachine> {
        self.0.iter_mut()
    }
}
