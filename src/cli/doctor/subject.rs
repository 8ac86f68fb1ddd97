//! The agent that `acpipe doctor` checks, and how it is started.

use super::args::DoctorArgs;
use super::report::Check;
use crate::cli::{UsageError, plain_settings};
use acpipe_core::agent_definition::AgentDefinition;
use acpipe_core::agent_names::{AgentName, resolve};
use acpipe_core::agent_spec::AgentSpec;
use acpipe_core::builtin_definition::{builtin_definition, profile_name};
use acpipe_core::config::Settings;
use acpipe_model::backend_options::BackendOptions;
use acpipe_model::builtin_agents::BuiltinAgent;
use acpipe_model::http::shown_url;
use acpipe_model::secret::shown_arguments;
use acpipe_model::transport::ProcessSpec;
use acpipe_model::{builtin_agents, nested};
use acpipe_policy::Policy;
use acpipe_protocol::wire::{AgentSource, Protocol, SessionOptions, Variables};
use std::collections::BTreeMap;

/// Agent to check.
#[derive(Debug)]
pub struct CheckedAgent {
    pub definition: AgentDefinition,
    /// The built-in agent with the same program, which has hints for the user.
    pub builtin: Option<&'static BuiltinAgent>,
    /// Name under which the agent's profile is stored.
    pub profile: String,
    /// Home directory of the user.
    home: String,
}

impl CheckedAgent {
    /// Returns the agent that the command line names; `None` if it names none.
    ///
    /// # Errors
    /// The name means no agent, or several agents.
    pub fn find(
        args: &DoctorArgs,
        own: &[AgentDefinition],
        settings: &Settings,
    ) -> anyhow::Result<Option<Self>> {
        if let Some((command, rest)) = args.command.split_first() {
            let spec = spec_of(command, rest, AgentSource::CommandLine, settings);
            return Ok(Some(Self::of(AgentDefinition::unnamed(spec), settings)));
        }
        let Some(name) = &args.name else {
            return Ok(None);
        };
        let names = own.iter().map(|agent| agent.name.as_str());
        let found = resolve(name, names)
            .map_err(|error| UsageError(format!("cannot check an agent: {error}")))?;
        Ok(match found {
            AgentName::Builtin(agent) => Some(Self::builtin(agent, settings)),
            AgentName::Own(name) => {
                let own = own.iter().find(|agent| agent.name == name);
                if let Some(reason) = own.and_then(|own| own.locked.as_ref()) {
                    return Err(UsageError(reason.clone()).into());
                }
                own.cloned().map(|own| Self::own(own, settings))
            }
        })
    }

    /// Returns an agent of the configuration.
    pub fn own(definition: AgentDefinition, settings: &Settings) -> Self {
        let profile = definition.name.clone();
        Self {
            profile,
            ..Self::of(definition, settings)
        }
    }

    /// Returns a built-in agent.
    pub fn builtin(agent: &'static BuiltinAgent, settings: &Settings) -> Self {
        Self {
            definition: builtin_definition(agent, settings),
            builtin: Some(agent),
            profile: agent.id.clone(),
            home: settings.home(),
        }
    }

    /// Returns an agent without a name.
    pub fn of(definition: AgentDefinition, settings: &Settings) -> Self {
        let profile = profile_name(&definition.spec);
        Self {
            definition,
            builtin: builtin_agents::find(&profile),
            profile,
            home: settings.home(),
        }
    }

    /// Returns the process that runs the agent.
    pub fn process(&self) -> ProcessSpec {
        let process = self.definition.spec.process(&self.home);
        let mut env = nested::environment();
        env.0.extend(process.env.0);
        ProcessSpec { env, ..process }
    }

    /// Returns the command line of the agent as it may be shown.
    pub fn line(&self) -> String {
        let spec = &self.definition.spec;
        let words: Vec<&String> = std::iter::once(&spec.command).chain(&spec.args).collect();
        let words = shown_arguments(&words);
        acpipe_model::shell_words::join(words.iter().map(String::as_str))
    }

    /// Describes an HTTP endpoint, which has no program. Nothing is sent to it.
    pub fn endpoint_check(&self, name: &str) -> Check {
        let url = shown_url(&self.definition.spec.command);
        let found = format!("HTTP endpoint {url}; send a prompt to check it");
        Check::ok(name, found)
            .fact("agent", name.to_owned())
            .fact("url", url)
    }

    /// Returns advice on how the user signs in.
    pub fn login_advice(&self) -> String {
        match self.builtin.and_then(|agent| agent.login.as_ref()) {
            Some(login) => format!("sign in with: {login}"),
            None => {
                "sign in with the agent's own program, or set its key in the environment".to_owned()
            }
        }
    }

    /// Returns advice on how the user installs the agent.
    pub fn install_advice(&self) -> String {
        match self.builtin.and_then(|agent| agent.install.as_ref()) {
            Some(install) => format!("install it: {install}"),
            None => "install it, or give the path of its program after --".to_owned(),
        }
    }
}

/// `ACPIPE_AGENT` has no words, or an open quote.
#[derive(Debug)]
pub struct NoCommandLine;

/// Returns the default agent that the environment names; `None` if it names none.
///
/// # Errors
/// The variable is not a command line.
pub fn of_environment(settings: &Settings) -> Option<Result<CheckedAgent, NoCommandLine>> {
    let line = std::env::var("ACPIPE_AGENT").ok()?;
    if line.trim().is_empty() {
        return None;
    }
    let words = shlex::split(&line);
    let Some((command, args)) = words.as_deref().and_then(<[String]>::split_first) else {
        return Some(Err(NoCommandLine));
    };
    let spec = spec_of(command, args, AgentSource::Environment, settings);
    Some(Ok(CheckedAgent::of(
        AgentDefinition::unnamed(spec),
        settings,
    )))
}

fn spec_of(command: &str, args: &[String], source: AgentSource, settings: &Settings) -> AgentSpec {
    AgentSpec {
        command: command.to_owned(),
        args: args.to_vec(),
        cwd: settings.cwd.clone(),
        env: Variables::default(),
        source,
        protocol: Protocol::of_command(command),
        child_per_session: false,
        options: SessionOptions::default(),
        fallback: None,
        backend: BackendOptions::default(),
    }
}

/// Builds the settings from which definitions of built-in agents are derived.
///
/// # Errors
/// The working directory or acpipe's program file is unknown.
pub fn settings(args: &DoctorArgs) -> anyhow::Result<Settings> {
    let here = crate::cli::working_directory()?;
    let cwd = args.cwd.as_ref().map_or(here.clone(), |cwd| here.join(cwd));
    let cwd = cwd.to_string_lossy().into_owned();
    Ok(Settings {
        // The faults are measured anew, so the known ones must not change how the agent is started.
        quirks: BTreeMap::new(),
        limits: args.timeouts.limits(),
        ..plain_settings(cwd, Policy::at_home(None))?
    })
}
