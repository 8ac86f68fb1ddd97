//! What a session sees of its agent.

use super::connection::Connection;
use super::renewal::Renewal;
use crate::core::agent_spec::{AgentSpec, identity};
use crate::core::client::Token;
use crate::core::event::AgentInfo;

/// What a session sees of its agent.
pub struct AgentAccess<'a> {
    /// The name of the agent; `default` for the agent that was connected without a name.
    pub name: &'a str,
    /// How the agent was or will be started.
    pub spec: &'a AgentSpec,
    /// Present while the agent is starting, ready or stopping.
    pub connection: Option<&'a mut Connection>,
    /// Present while the agent is being replaced by one with another environment.
    pub renewal: Option<&'a Renewal>,
}

impl AgentAccess<'_> {
    /// The identity under which sessions keep the agent's ids: the agent's name, or without one that of its program.
    #[must_use]
    pub fn identity(&self) -> String {
        identity(self.name, self.spec)
    }

    /// What the agent said in the handshake; `None` unless it is ready.
    #[must_use]
    pub fn ready(&self) -> Option<&AgentInfo> {
        self.connection.as_ref()?.ready()
    }

    /// Whether the agent may act: it is connected and not stopping.
    #[must_use]
    pub fn is_serving(&self) -> bool {
        self.connection.as_ref().is_some_and(|c| !c.is_stopping())
    }

    /// Number of the connection; 0 without one.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.connection.as_ref().map_or(0, |c| c.number)
    }

    /// Whether a prompt has to wait for the agent's new environment.
    #[must_use]
    pub fn holds(&self, prompt: Token) -> bool {
        self.renewal.is_some_and(|renewal| renewal.holds(prompt))
    }

    /// Name of the agent's protocol; empty without a connection.
    #[must_use]
    pub fn protocol_name(&self) -> &'static str {
        self.connection.as_ref().map_or("", |c| c.dialect.name())
    }
}
