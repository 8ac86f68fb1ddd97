//! Configuration of the core, fixed when the program starts.

use super::agent_definition::AgentDefinition;
pub use super::on_lost::OnLost;
use super::profile::Profile;
use super::quirks::Quirks;
use acpipe_model::limits::Limits;
use acpipe_model::secret::Secrets;
use acpipe_policy::Policy;
use acpipe_protocol::wire::{McpServer, Variables};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Configuration of a [`Hub`](super::hub::Hub).
#[derive(Debug, Clone)]
pub struct Settings {
    /// Agent that is started when the client names no agent.
    pub default_agent: AgentDefinition,
    /// Other agents that the user has configured.
    pub agents: Vec<AgentDefinition>,
    /// Path of acpipe's program file, which is also the demo agent.
    pub own_program: String,
    /// Known faults of agents, by the agent's name.
    pub quirks: BTreeMap<String, Quirks>,
    pub policy: Policy,
    /// Chunk profile of clients that do not choose one.
    pub profile: Profile,
    /// acpipe's own working directory, an absolute path.
    pub cwd: String,
    /// Prefix that makes the ids of messages and turns unique across runs of acpipe.
    pub id_prefix: String,
    /// Random number from which the ids of requests to agents begin, so that an agent's model cannot guess them. They
    /// begin at 1 if it is 0, for tests.
    pub request_seed: u64,
    /// An instant, with the wall clock at that instant in milliseconds since 1970.
    pub clock: (Instant, i64),
    /// Treatment of the stored history when an agent has lost its memory of it.
    pub on_lost: OnLost,
    /// Time after which idle sessions and agents are released; `None` keeps them until acpipe ends.
    pub idle_after: Option<Duration>,
    /// Maximum number of live sessions; `None` for the default, which depends on the agent.
    pub max_sessions: Option<usize>,
    /// acpipe's own environment, which agents inherit.
    pub inherited: Variables,
    /// Variables of the command line, for the agents that clients define. The default agent has them in its definition.
    pub variables: Variables,
    /// Secrets that logs and tapes hide; what users type as answers is added.
    pub secrets: Secrets,
    pub limits: Limits,
    /// MCP servers that every session gets in addition to its own.
    pub mcp_servers: Vec<McpServer>,
}

impl Settings {
    /// Returns the home directory of the user, or the root directory if it is unknown.
    pub fn home(&self) -> String {
        let home = self.inherited.0.get("HOME").cloned().flatten();
        home.filter(|home| home.starts_with('/'))
            .unwrap_or_else(|| "/".to_owned())
    }

    pub fn policy_of<'a>(&'a self, agent: &'a AgentDefinition) -> &'a Policy {
        agent.policy.as_deref().unwrap_or(&self.policy)
    }

    pub fn limits_of<'a>(&'a self, agent: &'a AgentDefinition) -> &'a Limits {
        agent.limits.as_deref().unwrap_or(&self.limits)
    }

    pub fn on_lost_of(&self, agent: &AgentDefinition) -> OnLost {
        agent.on_lost.unwrap_or(self.on_lost)
    }

    /// Returns the MCP servers that every session of an agent gets: those of its definition, and those of the
    /// settings whose name the definition does not use.
    pub fn mcp_servers_of(&self, agent: &AgentDefinition) -> Vec<McpServer> {
        acpipe_model::mcp::joined(&agent.mcp_servers, &self.mcp_servers)
    }
}
