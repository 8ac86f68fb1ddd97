//! How to start an agent: command line, environment, protocol and default options.

use crate::agent_command;
use crate::agent_command::AgentCommand;
use acpipe_dialects::{mode_arguments, traits};
use acpipe_model::backend_options::BackendOptions;
use acpipe_model::package_runner::package_runner;
use acpipe_model::transport::{Fallback, ProcessSpec};
use acpipe_protocol::wire::{AgentSource, Protocol, SessionOptions, Variables};

/// Command line of an agent with its working directory, environment, protocol and default session options.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentSpec {
    /// Program: a path, or a name that is searched for in `PATH`. The agent's name if it runs inside the
    /// program that contains acpipe.
    pub command: String,
    pub args: Vec<String>,
    /// Working directory of the agent process, an absolute path.
    pub cwd: String,
    /// Variables set on top of acpipe's own environment; a variable with the value `None` is unset.
    pub env: Variables,
    pub source: AgentSource,
    pub protocol: Protocol,
    /// Whether each session gets its own agent process. Always so for the protocol `claude`, whatever this
    /// field holds.
    pub child_per_session: bool,
    /// Options of sessions that set no options.
    pub options: SessionOptions,
    /// Command line to start if the program is not found.
    pub fallback: Option<Fallback>,
    /// Options of an agent that is not a process with a conversation.
    pub backend: BackendOptions,
}

impl AgentSpec {
    /// Creates the specification of an agent that runs inside the program that contains acpipe, where it is
    /// registered under `name`.
    #[must_use]
    pub fn in_process(name: impl Into<String>, cwd: impl Into<String>) -> Self {
        Self {
            command: name.into(),
            args: Vec::new(),
            cwd: cwd.into(),
            env: Variables::default(),
            source: AgentSource::InProcess,
            protocol: Protocol::Acp,
            child_per_session: false,
            options: SessionOptions::default(),
            fallback: None,
            backend: BackendOptions::default(),
        }
    }

    /// Returns `true` if the agent runs inside the program that contains acpipe; `command` is its name then.
    pub fn is_in_process(&self) -> bool {
        self.source == AgentSource::InProcess
    }

    /// Returns `true` if both start the same command line in the same directory.
    pub fn is_same_program(&self, other: &Self) -> bool {
        self.protocol == other.protocol
            && (&self.command, &self.args, &self.cwd) == (&other.command, &other.args, &other.cwd)
    }

    /// Returns `true` if an argument of the agent's program sets its mode.
    pub fn names_mode(&self) -> bool {
        let flags = mode_arguments(self.protocol);
        let is_mode = |arg: &String| {
            let name = arg.split('=').next();
            flags.iter().any(|flag| name == Some(flag))
        };
        self.args.iter().any(is_mode)
    }

    /// Returns the identity of an agent without a name: the key of its program. See [`agent_command::key`].
    pub fn key(&self) -> String {
        agent_command::key(self.protocol, &self.command, &self.args)
    }

    /// Returns the process that runs the agent, with the agent's own variables alone. A package runner of a
    /// defined agent does not run in a project, since it prefers the packages and the settings that it finds
    /// there, but in `home`.
    pub fn process(&self, home: &str) -> ProcessSpec {
        let is_defined = matches!(
            self.source,
            AgentSource::BuiltIn | AgentSource::Configuration
        );
        let cwd = if is_defined && self.is_package_runner() {
            home
        } else {
            &self.cwd
        };
        ProcessSpec {
            command: self.command.clone(),
            args: self.args.clone(),
            cwd: cwd.to_owned(),
            env: self.env.clone(),
            protocol: self.protocol,
            fallback: self.fallback.clone(),
        }
    }

    /// Returns `true` if the command is a package runner, which downloads and runs the agent.
    pub fn is_package_runner(&self) -> bool {
        package_runner(&self.command, &self.args).is_some()
    }

    /// Returns the part that is stored with a session. The environment is left out, since it may hold
    /// secrets.
    pub fn stored(&self) -> AgentCommand {
        AgentCommand {
            command: self.command.clone(),
            args: self.args.clone(),
            cwd: self.cwd.clone(),
            protocol: self.protocol,
            child_per_session: self.child_per_session,
            configured: self.source == AgentSource::Configuration,
            demo: self.source == AgentSource::Demo,
            in_process: self.is_in_process(),
        }
    }

    /// Returns the agent of a stored session, with the options of `default`, and with these variables if it is another
    /// program. `None` if the session had the demo agent or one inside a program, and `default` is another agent.
    #[must_use]
    pub fn of_stored(stored: AgentCommand, default: &Self, variables: &Variables) -> Option<Self> {
        if stored.demo {
            return Some(default.clone()).filter(|spec| spec.source == AgentSource::Demo);
        }
        if stored.in_process {
            let is_same = |spec: &Self| spec.is_in_process() && spec.command == stored.command;
            return Some(default.clone()).filter(is_same);
        }
        Some(Self {
            command: stored.command,
            args: stored.args,
            cwd: stored.cwd,
            env: variables.clone(),
            source: AgentSource::Session,
            protocol: stored.protocol,
            child_per_session: stored.child_per_session,
            options: default.options.clone(),
            fallback: None,
            backend: BackendOptions::default(),
        })
    }

    /// Returns `true` if each session gets its own agent process, by this specification or by the protocol.
    pub fn is_process_per_session(&self) -> bool {
        self.child_per_session || traits(self.protocol).process_per_session
    }
}

/// Name of the agent that a call without `agent` refers to.
pub const DEFAULT_AGENT: &str = "default";

/// Returns the identity under which sessions store an agent's session ids: the agent's name, or for the
/// default agent and built-in agents the key of the program.
pub fn identity(name: &str, spec: &AgentSpec) -> String {
    if name == DEFAULT_AGENT || spec.source == AgentSource::BuiltIn {
        spec.key()
    } else {
        name.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_agent_inside_a_program_is_never_started_as_a_program() {
        let (own, other) = (
            AgentSpec::in_process("own", "/"),
            AgentSpec::in_process("other", "/"),
        );
        let (stored, none) = (own.stored(), &Variables::default());
        assert_eq!(AgentSpec::of_stored(stored.clone(), &own, none), Some(own));
        assert_eq!(AgentSpec::of_stored(stored.clone(), &other, none), None);
        let program = AgentSpec {
            source: AgentSource::CommandLine,
            ..AgentSpec::in_process("own", "/")
        };
        assert_eq!(AgentSpec::of_stored(stored, &program, none), None);
        assert!(AgentSpec::of_stored(program.stored(), &other, none).is_some());
    }
}
