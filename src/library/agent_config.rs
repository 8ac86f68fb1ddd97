//! Agents of a program.

use super::error::{Error, Result};
use acpipe_agent::AgentFactory;
use acpipe_core::agent_definition::AgentDefinition;
use acpipe_core::agent_names::{check_name, resolve};
use acpipe_core::agent_spec::AgentSpec;
use acpipe_core::builtin_definition::builtin_definition;
use acpipe_core::config::Settings;
use acpipe_host::InProcessAgent;
use acpipe_model::backend_options::BackendOptions;
use acpipe_model::builtin_agents;
use acpipe_model::error::ErrorKind;
use acpipe_protocol::wire::{AgentSource, Protocol, SessionOptions, Variables};
use std::path::Path;

/// An agent: a built-in one by its name, or a program.
///
/// A string without spaces and slashes is the name of a built-in agent, such as `claude` or `gemini`; any
/// other string is a command line.
///
/// ```
/// use acpipe::AgentConfig;
///
/// let built_in: AgentConfig = "claude".into();
/// let own = AgentConfig::command("/opt/reviewer")
///     .args(["--acp"])
///     .env("REVIEWER_KEY", "…")
///     .name("reviewer")
///     .instructions("Review only; change nothing.");
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct AgentConfig {
    name: Option<String>,
    start: AgentStart,
    cwd: Option<String>,
    env: Variables,
    options: SessionOptions,
    instructions: Option<String>,
    description: Option<String>,
}

/// How an agent is started.
#[derive(Debug, Clone)]
enum AgentStart {
    BuiltIn(String),
    CommandLine(String),
    InProcess(AgentFactory),
    Program {
        command: String,
        args: Vec<String>,
        protocol: Option<Protocol>,
        child_per_session: bool,
    },
}

impl AgentConfig {
    fn new(start: AgentStart) -> Self {
        Self {
            name: None,
            start,
            cwd: None,
            env: Variables::default(),
            options: SessionOptions::default(),
            instructions: None,
            description: None,
        }
    }

    /// Names a built-in agent.
    pub fn built_in(name: impl Into<String>) -> Self {
        Self::new(AgentStart::BuiltIn(name.into()))
    }

    /// Names a program: a path, or a name to be found in `PATH`. It speaks ACP, or the protocol of the Claude
    /// Code CLI if it is called `claude`.
    pub fn command(program: impl AsRef<Path>) -> Self {
        Self::new(AgentStart::Program {
            command: program.as_ref().to_string_lossy().into_owned(),
            args: Vec::new(),
            protocol: None,
            child_per_session: false,
        })
    }

    /// Makes an agent inside this program. Sessions choose it by its own name, or by that of
    /// [`AgentConfig::name`].
    ///
    /// ```
    /// use acpipe::{Acpipe, AgentConfig};
    /// use acpipe::agent::AgentFactory;
    /// use acpipe::testing::{Reply, ScriptedAgent};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> acpipe::Result<()> {
    /// let agent = AgentFactory::new(|| ScriptedAgent::new().on_any(Reply::text("Hello!")));
    /// let acpipe = Acpipe::builder().agent(AgentConfig::in_process(&agent)).start()?;
    /// let session = acpipe.session("chat").ensure().await?;
    /// let summary = session.prompt("hi").await?.summary().await?;
    /// assert_eq!(summary.text, "Hello!");
    /// acpipe.shutdown().await;
    /// # Ok(()) }
    /// ```
    pub fn in_process(factory: &AgentFactory) -> Self {
        Self::new(AgentStart::InProcess(factory.clone())).name(factory.name())
    }

    /// Adds arguments of the program. A built-in agent has its own.
    pub fn args<T: Into<String>>(mut self, new: impl IntoIterator<Item = T>) -> Self {
        if let AgentStart::Program { args, .. } = &mut self.start {
            args.extend(new.into_iter().map(Into::into));
        }
        self
    }

    /// Sets the protocol of the program.
    pub fn protocol(mut self, new: Protocol) -> Self {
        if let AgentStart::Program { protocol, .. } = &mut self.start {
            *protocol = Some(new);
        }
        self
    }

    /// Starts a process of the program for each session, for agents that cannot run two sessions in one.
    pub fn process_per_session(mut self) -> Self {
        if let AgentStart::Program {
            child_per_session, ..
        } = &mut self.start
        {
            *child_per_session = true;
        }
        self
    }

    /// Sets the name by which sessions choose the agent, and under which they are stored. Default: the name of
    /// a built-in agent; the default agent needs none.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Sets an environment variable of the agent. It inherits all others from this program.
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.0.insert(name.into(), Some(value.into()));
        self
    }

    /// Removes an environment variable that the agent would inherit.
    pub fn env_remove(mut self, name: impl Into<String>) -> Self {
        self.env.0.insert(name.into(), None);
        self
    }

    /// Sets the working directory of the agent, and of its sessions that set none.
    pub fn cwd(mut self, dir: impl AsRef<Path>) -> Self {
        self.cwd = Some(super::absolute(dir.as_ref()));
        self
    }

    /// Sets options of the agent's sessions, such as the model.
    pub fn options(mut self, options: SessionOptions) -> Self {
        self.options = options;
        self
    }

    /// Adds instructions: to the agent's system prompt, or before the first prompt of each session.
    pub fn instructions(mut self, text: impl Into<String>) -> Self {
        self.instructions = Some(text.into());
        self
    }

    /// Sets a description for people.
    pub fn description(mut self, text: impl Into<String>) -> Self {
        self.description = Some(text.into());
        self
    }

    /// Returns the name and the function of an agent inside this program.
    pub(super) fn runner(&self) -> Option<(String, InProcessAgent)> {
        match &self.start {
            AgentStart::InProcess(factory) => Some((self.name.clone()?, factory.runner())),
            _ => None,
        }
    }

    /// Converts the agent to a definition.
    ///
    /// # Errors
    /// There is no built-in agent of this name, or the command line or the name is not valid.
    pub(super) fn definition(self, settings: &Settings) -> Result<AgentDefinition> {
        let mut definition = match self.start {
            AgentStart::BuiltIn(name) => {
                let agent = builtin_agents::find(&name).ok_or_else(|| unknown(&name))?;
                if agent.demo {
                    let message = format!(
                        "agent {name:?} is part of the acpipe program; name its command line: \"acpipe demo-agent\""
                    );
                    return Err(Error::new(ErrorKind::InvalidParams, message));
                }
                builtin_definition(agent, settings)
            }
            AgentStart::CommandLine(line) => {
                let words = shlex::split(&line).unwrap_or_default();
                let Some((command, args)) = words.split_first() else {
                    let message =
                        "the command line of the agent is empty or has an open quote; correct it";
                    return Err(Error::new(ErrorKind::InvalidParams, message));
                };
                program(command.clone(), args.to_vec(), None, settings)
            }
            AgentStart::InProcess(_) => {
                let name = self.name.as_deref().unwrap_or_default();
                AgentDefinition::unnamed(AgentSpec::in_process(name, &settings.cwd))
            }
            AgentStart::Program {
                command,
                args,
                protocol,
                child_per_session,
            } => {
                let mut definition = program(command, args, protocol, settings);
                definition.spec.child_per_session = child_per_session;
                definition
            }
        };
        if let Some(name) = self.name {
            check_name(&name).map_err(|why| {
                Error::new(
                    ErrorKind::InvalidParams,
                    format!("agent {name:?}: the name {why}"),
                )
            })?;
            if !definition.spec.is_in_process() {
                definition.spec.source = AgentSource::Configuration;
            }
            definition.name = name;
        }
        let spec = &mut definition.spec;
        spec.env.0.extend(self.env.0);
        spec.options = self.options.or(&spec.options);
        if let Some(cwd) = self.cwd {
            spec.cwd = cwd;
        }
        definition.description = self.description.or(definition.description);
        Ok(definition.with_instructions(self.instructions))
    }
}

/// Returns the definition of an agent without a name.
fn program(
    command: String,
    args: Vec<String>,
    protocol: Option<Protocol>,
    settings: &Settings,
) -> AgentDefinition {
    AgentDefinition::unnamed(AgentSpec {
        protocol: protocol.unwrap_or(Protocol::of_command(&command)),
        command,
        args,
        cwd: settings.cwd.clone(),
        env: Variables::default(),
        source: AgentSource::Client,
        child_per_session: false,
        options: SessionOptions::default(),
        fallback: None,
        backend: BackendOptions::default(),
    })
}

fn unknown(name: &str) -> Error {
    let why = match resolve(name, std::iter::empty()) {
        Ok(agent) => format!("agent {name:?} not found; did you mean {}?", agent.as_str()),
        Err(error) => error.to_string(),
    };
    let message = format!("{why}; a program needs its path, or AgentConfig::command");
    Error::new(ErrorKind::InvalidParams, message)
}

impl From<&str> for AgentConfig {
    fn from(text: &str) -> Self {
        let is_name = !text.is_empty() && !text.contains(['/', ' ', '\t', '\n']);
        Self::new(if is_name {
            AgentStart::BuiltIn(text.to_owned())
        } else {
            AgentStart::CommandLine(text.to_owned())
        })
    }
}

impl From<String> for AgentConfig {
    fn from(text: String) -> Self {
        Self::from(&*text)
    }
}

impl From<&String> for AgentConfig {
    fn from(text: &String) -> Self {
        Self::from(&**text)
    }
}
