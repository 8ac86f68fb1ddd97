//! How an agent is started.

use crate::core::agent_command::{self, AgentCommand};
use crate::core::dialects::traits;
use crate::proto::wire::{AgentSource, Protocol, SessionOptions, Variables};

/// A command line and its surroundings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentSpec {
    pub command: String,
    pub args: Vec<String>,
    /// Absolute.
    pub cwd: String,
    /// Set, or with `None` unset, on top of acpipe's own environment.
    pub env: Variables,
    pub source: AgentSource,
    pub protocol: Protocol,
    /// Whether each session gets a process of its own; the protocol `claude` implies it.
    pub child_per_session: bool,
    /// Options of sessions that set none of their own.
    pub options: SessionOptions,
}

impl AgentSpec {
    /// The identity of an agent without a name: its program, whatever its arguments. See [`agent_command::key`].
    #[must_use]
    pub fn key(&self) -> String {
        agent_command::key(self.protocol, &self.command, &self.args)
    }

    /// The part that is stored with a session; the environment is not, since it may hold secrets.
    #[must_use]
    pub fn stored(&self) -> AgentCommand {
        AgentCommand {
            command: self.command.clone(),
            args: self.args.clone(),
            cwd: self.cwd.clone(),
            protocol: self.protocol,
            child_per_session: self.child_per_session,
            demo: self.source == AgentSource::Demo,
        }
    }

    /// The agent that a session was stored with, with the environment and options of `default`. `None` where that is
    /// the demo agent and `default` is another one.
    #[must_use]
    pub fn of_stored(stored: AgentCommand, default: &Self) -> Option<Self> {
        if stored.demo {
            return Some(default.clone()).filter(|spec| spec.source == AgentSource::Demo);
        }
        Some(Self {
            command: stored.command,
            args: stored.args,
            cwd: stored.cwd,
            env: default.env.clone(),
            source: AgentSource::Session,
            protocol: stored.protocol,
            child_per_session: stored.child_per_session,
            options: default.options.clone(),
        })
    }

    /// Whether each session has a process of its own.
    #[must_use]
    pub fn is_process_per_session(&self) -> bool {
        self.child_per_session || traits(self.protocol).process_per_session
    }
}

/// The name of the agent that calls without `agent` mean.
pub const DEFAULT_AGENT: &str = "default";

/// The identity under which sessions keep an agent's ids: the agent's name, or without one that of its program.
#[must_use]
pub fn identity(name: &str, spec: &AgentSpec) -> String {
    if name == DEFAULT_AGENT {
        spec.key()
    } else {
        name.to_owned()
    }
}
