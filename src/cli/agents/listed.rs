//! Lists of agents, as a table or as JSON.

use super::args::ListAgentsArgs;
use super::{AgentWorld, FoundAgent, is_installed};
use crate::cli::aligned::{CutColumn, aligned};
use crate::cli::screen::{ScreenContent, to_stdout};
use crate::cli::styles::Styles;
use acpipe_core::agent_definition::AgentDefinition;
use acpipe_core::builtin_definition::builtin_definition;
use acpipe_model::builtin_agents;
use acpipe_model::http::shown_url;
use acpipe_model::secret::{shown_arguments, shown_words};
use acpipe_protocol::wire::{AgentSource, Program, Protocol};
use serde::Serialize;
use std::borrow::Cow;
use std::io;

/// Agent as it is listed.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentListing<'a> {
    pub agent: &'a str,
    /// Whether the agent is used where none is named.
    pub is_default: bool,
    pub state: AgentAvailability,
    /// Version that the installed program prints; `null` if it is not installed or prints none.
    pub version: Option<&'a str>,
    pub protocol: Protocol,
    pub source: AgentSource,
    pub command: Cow<'a, str>,
    pub args: Vec<String>,
    pub program: Option<&'a Program>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<&'a str>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    pub tags: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    pub install: Option<&'a str>,
    /// Command by which the user signs in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub login: Option<&'a str>,
}

/// Whether an agent can be started on this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum AgentAvailability {
    /// The program is installed.
    Installed,
    /// Only a package runner can start the agent.
    PackageRunner,
    /// Neither is installed.
    NotInstalled,
    /// The agent is an HTTP endpoint, which has no program.
    Http,
}

impl<'a> AgentListing<'a> {
    /// Describes an agent whose program was searched for.
    pub fn new(world: &'a AgentWorld, agent: &'a AgentDefinition, found: &'a FoundAgent) -> Self {
        let program = found.program.as_ref();
        let builtin = builtin_agents::find(&agent.name);
        let builtin = builtin.or_else(|| of_base(world, &agent.name));
        let default = world.config.default_agent.as_ref();
        Self {
            agent: &agent.name,
            is_default: default.is_some_and(|(name, _)| *name == agent.name),
            state: match program {
                _ if agent.spec.protocol.is_http() => AgentAvailability::Http,
                None => AgentAvailability::NotInstalled,
                Some(_) if is_installed(agent, program) => AgentAvailability::Installed,
                Some(_) => AgentAvailability::PackageRunner,
            },
            version: found.version.as_deref(),
            protocol: agent.spec.protocol,
            source: agent.spec.source,
            command: shown_command(agent),
            args: shown_arguments(&agent.spec.args),
            program,
            description: agent.description.as_deref(),
            tags: &agent.tags,
            install: builtin.and_then(|agent| agent.install.as_deref()),
            login: builtin.and_then(|agent| agent.login.as_deref()),
        }
    }

    fn row(&self) -> [String; COLUMNS] {
        let state = match self.state {
            AgentAvailability::Installed => "installed".to_owned(),
            AgentAvailability::PackageRunner => {
                let file = self.program.map(|program| program.file.as_str());
                let runner = file.and_then(|file| file.rsplit('/').next());
                format!("through {}", runner.unwrap_or("a package runner"))
            }
            AgentAvailability::NotInstalled => "not installed".to_owned(),
            AgentAvailability::Http => "HTTP".to_owned(),
        };
        let mark = if self.is_default { " (default)" } else { "" };
        [
            format!("{}{mark}", self.agent),
            state,
            self.version.unwrap_or_default().to_owned(),
            self.protocol.name().to_owned(),
            self.login.unwrap_or_default().to_owned(),
            self.description.unwrap_or_default().to_owned(),
        ]
    }
}

/// Returns the program of an agent, or the address of an endpoint, as it may be shown.
fn shown_command(agent: &AgentDefinition) -> Cow<'_, str> {
    let command = &agent.spec.command;
    if agent.spec.protocol.is_http() {
        return shown_url(command).into();
    }
    if command.contains(char::is_whitespace) {
        // A whole line in place of the program, by mistake.
        return shown_words(command).into();
    }
    Cow::Borrowed(command)
}

/// Returns the built-in agent on which an agent of the configuration is based.
fn of_base(world: &AgentWorld, name: &str) -> Option<&'static builtin_agents::BuiltinAgent> {
    match &world.config.agent(name)?.base {
        crate::cli::config::Base::Builtin(id) => builtin_agents::find(id),
        crate::cli::config::Base::Command { .. } => None,
    }
}

const COLUMNS: usize = 6;
const HEAD: [&str; COLUMNS] = [
    "AGENT",
    "STATE",
    "VERSION",
    "PROTOCOL",
    "SIGN IN WITH",
    "DESCRIPTION",
];
const CUTS: [CutColumn; 1] = [CutColumn::end(5, 20)];

/// Lists the agents of the configuration and those found on this machine.
pub fn list(world: &mut AgentWorld, args: &ListAgentsArgs) -> anyhow::Result<()> {
    let world = &*world;
    let is_own = |id: &str| world.own.iter().any(|own| own.name == id);
    let builtin = builtin_agents::all()
        .iter()
        .filter(|agent| !is_own(&agent.id));
    let builtin: Vec<AgentDefinition> = builtin
        .map(|agent| builtin_definition(agent, &world.settings))
        .collect();
    let all: Vec<&AgentDefinition> = world.own.iter().chain(&builtin).collect();
    let found = world.find(&all)?;
    let agents = all.iter().zip(&found);
    let agents = agents.map(|(agent, found)| AgentListing::new(world, agent, found));
    let is_shown = |agent: &AgentListing<'_>| {
        args.all || is_own(agent.agent) || agent.state == AgentAvailability::Installed
    };
    let (shown, hidden): (Vec<_>, Vec<_>) = agents.partition(is_shown);
    to_stdout(ScreenContent::styled_or_json(args.json), |out| {
        if !args.json {
            let rows: Vec<_> = shown.iter().map(AgentListing::row).collect();
            let text = aligned(HEAD, &rows, None, &CUTS, Styles::stdout());
            out.write_all(text.as_bytes())?;
            return Ok(());
        }
        for agent in &shown {
            serde_json::to_writer(&mut *out, agent).map_err(io::Error::from)?;
            out.write_all(b"\n")?;
        }
        Ok(())
    })?;
    if !args.json && !hidden.is_empty() {
        let downloads = |agent: &&AgentListing<'_>| agent.state == AgentAvailability::PackageRunner;
        let downloads = match hidden.iter().filter(downloads).count() {
            0 => String::new(),
            count => format!("; a package runner would download {count} of them at their start"),
        };
        crate::cli::print_note(&format!(
            "{} more agents are known but not installed{downloads}; list them with acpipe agents --all",
            hidden.len()
        ));
    }
    Ok(())
}
