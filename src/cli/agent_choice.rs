//! Choice of the default agent: which agent a command line, an environment and a configuration name.

use super::agent_definitions::forbid_download;
use super::args::AgentArgs;
use super::config::Config;
use super::{UsageError, agent_definitions};
use acpipe_core::agent_command::AgentCommand;
use acpipe_core::agent_definition::AgentDefinition;
use acpipe_core::agent_spec::{AgentSpec, DEFAULT_AGENT};
use acpipe_core::builtin_definition::profile_name;
use acpipe_core::config::Settings;
use acpipe_dialects::claude::CLAUDE;
use acpipe_model::backend_options::BackendOptions;
use acpipe_model::builtin_agents;
use acpipe_model::error::{Error, ErrorKind};
use acpipe_model::http::url_fault;
use acpipe_protocol::wire::{AgentSource, Protocol, SessionOptions};
use serde::{Deserialize, Serialize};

/// Agent of the stored session that a run continues.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct StoredAgent {
    /// Name of the agent; `None` if it had none.
    pub name: Option<String>,
    /// Command line of the agent.
    pub command: AgentCommand,
}

/// Default agent of a command.
pub struct ChosenAgent {
    pub definition: AgentDefinition,
    /// Note for the user, if a file that they do not trust chose the agent.
    pub note: Option<String>,
}

impl From<AgentDefinition> for ChosenAgent {
    fn from(definition: AgentDefinition) -> Self {
        Self {
            definition,
            note: None,
        }
    }
}

/// Returns the default agent. Precedence: the command after `--`, `--agent`, the stored session,
/// `ACPIPE_AGENT`, the configuration, the default agent of the settings: the demo agent.
///
/// # Errors
/// A name means no agent, or a variable cannot be read.
pub fn choose(
    args: &AgentArgs,
    stored: Option<&StoredAgent>,
    config: &Config,
    settings: &Settings,
) -> anyhow::Result<ChosenAgent> {
    let named = |name: &str| agent_definitions::named(name, config, settings);
    if let Some(name) = args.agent_name() {
        let definition = named(name)?;
        return Ok(with_command(definition, &args.command, args.protocol()).into());
    }
    if !args.command.is_empty() {
        let source = AgentSource::CommandLine;
        let definition = of_command(&args.command, args.protocol(), source, settings)?;
        return Ok(definition.into());
    }
    if let Some(stored) = stored.filter(|stored| !stored.command.demo && !stored.command.in_process)
    {
        return Ok(of_stored(stored, args, config, settings)?.into());
    }
    if !args.is_of_client
        && let Ok(line) = std::env::var("ACPIPE_AGENT")
        && !line.trim().is_empty()
        && stored.is_none()
    {
        let line = line.trim();
        let is_name = config.agent(line).is_some() || builtin_agents::find(line).is_some();
        if is_name {
            return Ok(named(line)?.into());
        }
        let words = shlex::split(line).ok_or_else(unclosed_quote)?;
        let definition = of_command(&words, args.protocol(), AgentSource::Environment, settings)?;
        return Ok(definition.into());
    }
    if let Some((name, place)) = &config.default_agent
        && stored.is_none()
    {
        let wrong = |error| UsageError(format!("{place}: {error:#}"));
        let definition = named(name).map_err(wrong)?;
        if !config.is_default_untrusted {
            return Ok(definition.into());
        }
        let configured = config.agent(name);
        return untrusted_default(
            definition,
            configured.is_some_and(|a| a.prompt.is_some()),
            place,
        );
    }
    Ok(settings.default_agent.clone().into())
}

/// Returns the default agent of a file that the user does not trust, with a note of the choice.
fn untrusted_default(
    mut definition: AgentDefinition,
    has_prompt: bool,
    place: &str,
) -> anyhow::Result<ChosenAgent> {
    if let Some(why) = forbid_download(&mut definition.spec, place) {
        return Err(UsageError(why).into());
    }
    let (name, command) = (&definition.name, &definition.spec.command);
    let prompt = if has_prompt {
        " with instructions of its own"
    } else {
        ""
    };
    let note = format!(
        "{place}, which you do not trust, chooses the agent {name:?} (program {command:?}){prompt}; choose one yourself \
         with --agent NAME or acpipe agents default NAME"
    );
    Ok(ChosenAgent {
        definition,
        note: Some(note),
    })
}

/// Returns the error of a command that names no agent and has no terminal: the demo agent answers only where it was
/// asked for, or at a terminal.
pub fn no_agent() -> Error {
    let message = "no agent is named, and no default is set; name one with --agent NAME or its command line after --, set \
                   ACPIPE_AGENT, or set a default with acpipe agents default NAME. acpipe agents --all lists the names; \
                   the demo agent, which has no model, is --agent demo";
    Error::new(ErrorKind::AgentNotFound, message)
}

/// Returns `true` if the default agent is the demo agent because neither the command line nor the environment or the
/// configuration names one.
pub fn is_unnamed_demo(settings: &Settings, args: &AgentArgs) -> bool {
    let default = &settings.default_agent;
    let is_demo = default.spec.source == AgentSource::Demo && default.name == DEFAULT_AGENT;
    is_demo && !args.names_agent()
}

/// Returns a named agent with the command line after `--`: a whole command line, or options that are appended
/// to the agent's own.
fn with_command(
    mut definition: AgentDefinition,
    words: &[String],
    protocol: Option<Protocol>,
) -> AgentDefinition {
    let spec = &mut definition.spec;
    spec.protocol = protocol.unwrap_or(spec.protocol);
    match words.split_first() {
        None => {}
        Some((first, _)) if first.starts_with('-') => spec.args.extend(words.iter().cloned()),
        Some((command, args)) => {
            spec.command.clone_from(command);
            spec.args = args.to_vec();
            spec.fallback = None;
        }
    }
    definition
}

/// Returns the agent of a command line.
fn of_command(
    words: &[String],
    protocol: Option<Protocol>,
    source: AgentSource,
    settings: &Settings,
) -> anyhow::Result<AgentDefinition> {
    let (command, args) = match words.split_first() {
        // Only options: the protocol names the program.
        Some((first, _)) if first.starts_with('-') && protocol == Some(Protocol::Claude) => {
            (CLAUDE.to_owned(), words.to_vec())
        }
        Some((command, args)) => (command.clone(), args.to_vec()),
        None => {
            let message = "the agent's command is empty; give a command line after --";
            return Err(UsageError(message.to_owned()).into());
        }
    };
    let protocol = protocol.unwrap_or(Protocol::of_command(&command));
    check_address(protocol, &command, &args)?;
    let spec = AgentSpec {
        command,
        args,
        cwd: settings.cwd.clone(),
        env: acpipe_protocol::wire::Variables::default(),
        source,
        protocol,
        child_per_session: false,
        options: SessionOptions::default(),
        fallback: None,
        backend: BackendOptions::default(),
    };
    let quirks = settings.quirks.get(&profile_name(&spec)).cloned();
    let definition = AgentDefinition::unnamed(spec);
    Ok(definition.with_quirks(quirks.unwrap_or_default(), &settings.limits))
}

/// Checks the address of an HTTP endpoint, which stands in the place of the command.
fn check_address(protocol: Protocol, command: &str, args: &[String]) -> Result<(), UsageError> {
    if !protocol.is_http() {
        return Ok(());
    }
    let why = match url_fault(command) {
        Some(why) => why,
        None if args.is_empty() => return Ok(()),
        None => "must be the only word after --: an HTTP endpoint has no arguments",
    };
    let name = protocol.name();
    Err(UsageError(format!(
        "the address of the agent {why}; give it after --, for example: --protocol {name} -- https://HOST/PATH"
    )))
}

/// Returns the error about an `ACPIPE_AGENT` that cannot be split. The variable may have a secret.
pub fn unclosed_quote() -> UsageError {
    UsageError("ACPIPE_AGENT has an unclosed quote; close it".to_owned())
}

/// Returns the agent of a stored session: by its name, or if no agent has that name any more by its command.
fn of_stored(
    stored: &StoredAgent,
    args: &AgentArgs,
    config: &Config,
    settings: &Settings,
) -> anyhow::Result<AgentDefinition> {
    let command = &stored.command;
    if args.protocol().is_some_and(|own| own != command.protocol) {
        let message = format!(
            "--protocol: does not match the protocol of the session's agent {:?}; omit --protocol, or give another \
             agent after --",
            command.shown_line()
        );
        return Err(UsageError(message).into());
    }
    if let Some(name) = &stored.name {
        let is_known = config.agent(name).is_some() || builtin_agents::find(name).is_some();
        if is_known {
            return agent_definitions::named(name, config, settings);
        }
        if command.configured {
            let message = format!(
                "agent {name:?} of the session is not defined any more; define it in the configuration, or give another agent \
                 with --agent"
            );
            return Err(UsageError(message).into());
        }
    }
    let words: Vec<String> = std::iter::once(&command.command)
        .chain(&command.args)
        .cloned()
        .collect();
    let source = AgentSource::Session;
    let mut definition = of_command(&words, Some(command.protocol), source, settings)?;
    definition.spec.child_per_session |= command.child_per_session;
    if !command.cwd.is_empty() {
        definition.spec.cwd.clone_from(&command.cwd);
    }
    if let Some(name) = &stored.name {
        definition.name.clone_from(name);
    }
    Ok(definition)
}
