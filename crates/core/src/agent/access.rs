//! View of an agent for its sessions.

use super::connection::Connection;
use super::renewal::Renewal;
use crate::agent_command::public_key;
use crate::agent_definition::AgentDefinition;
use crate::agent_spec::{AgentSpec, identity};
use crate::client::Token;
use acpipe_model::event::AgentInfo;

/// View of an agent for its sessions.
pub struct AgentAccess<'a> {
    pub definition: &'a AgentDefinition,
    /// Specification by which the agent was or will be started.
    pub spec: &'a AgentSpec,
    /// Connection; present while the agent is starting, ready or stopping.
    pub connection: Option<&'a mut Connection>,
    /// Renewal; present while the agent process is being replaced by one with another environment.
    pub renewal: Option<&'a Renewal>,
}

impl AgentAccess<'_> {
    /// Name of the agent; `default` for a default agent without a name.
    pub fn name(&self) -> &str {
        &self.definition.name
    }

    /// Identity under which sessions store the agent's session ids: the agent's name, or for the default
    /// agent the key of its program.
    pub fn identity(&self) -> String {
        identity(self.name(), self.spec)
    }

    /// Name of an agent without a name, as telemetry shows it.
    pub fn public_name(&self) -> String {
        public_key(self.spec.protocol, &self.spec.command, &self.spec.args)
    }

    /// Properties that the agent reported in the handshake; `None` unless it is ready.
    pub fn ready(&self) -> Option<&AgentInfo> {
        self.connection.as_ref()?.ready()
    }

    /// Returns `true` if the agent is connected and not stopping.
    pub fn is_serving(&self) -> bool {
        self.connection.as_ref().is_some_and(|c| !c.is_stopping())
    }

    /// Returns `true` if the agent receives the stored messages of a session with each prompt.
    pub fn takes_transcript(&self) -> bool {
        self.connection
            .as_ref()
            .is_some_and(|c| c.facts().takes_transcript)
    }

    /// Number of the connection; 0 without a connection.
    pub fn number(&self) -> u64 {
        self.connection.as_ref().map_or(0, |c| c.number)
    }

    /// Returns `true` if a prompt has to wait for the agent process with the new environment.
    pub fn holds(&self, prompt: Token) -> bool {
        self.renewal.is_some_and(|renewal| renewal.holds(prompt))
    }

    /// Name of the agent's protocol; empty without a connection.
    pub fn protocol_name(&self) -> &'static str {
        self.connection.as_ref().map_or("", |c| c.facts().name)
    }
}
