//! What the core is configured with when the program starts.

use super::agent_spec::AgentSpec;
use super::limits::Limits;
use super::policy::Policy;
use super::profile::Profile;
use crate::proto::wire::{McpServer, Variables};
use std::time::{Duration, Instant};

/// The configuration of a [`Hub`](super::hub::Hub).
#[derive(Debug, Clone)]
pub struct Settings {
    /// The agent that is started when the client names none.
    pub default_agent: AgentSpec,
    /// What agents may do.
    pub policy: Policy,
    /// The chunk profile of clients that do not ask for one.
    pub profile: Profile,
    /// acpipe's own working directory, absolute.
    pub cwd: String,
    /// Makes the ids of messages and turns unique over runs.
    pub id_prefix: String,
    /// An instant, and the wall clock at that instant in milliseconds since 1970.
    pub clock: (Instant, i64),
    /// What happens to the stored history when an agent has lost its memory of it.
    pub on_lost: OnLost,
    /// Idle sessions and agents are released after this time; `None` keeps them for ever.
    pub idle_after: Option<Duration>,
    /// The most live sessions; `None` for the default, which depends on the agent.
    pub max_sessions: Option<usize>,
    /// acpipe's own environment, which agents inherit.
    pub inherited: Variables,
    /// Time limits.
    pub limits: Limits,
    /// MCP servers that every session gets beside its own.
    pub mcp_servers: Vec<McpServer>,
}

/// What happens to the stored history of a session whose agent has lost its memory of it.
#[derive(Debug, Clone, Copy, Default)]
pub struct OnLost {
    /// Archive the history and start with an empty one; otherwise the history stays.
    pub clear: bool,
    /// Characters of the history that the agent gets with its next prompt.
    pub reinject: usize,
}
