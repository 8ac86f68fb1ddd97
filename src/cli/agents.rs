//! `acpipe agents`: lists agents and changes those of the configuration. Starts no agent.

pub mod args;
mod change;
mod import;
mod listed;
mod show;

use super::args::shared::PlaceArgs;
use super::config::{self, Config, LoadArgs};
use super::print_note;
use crate::core::agent_definition::AgentDefinition;
use crate::core::builtin_agents;
use crate::core::builtin_definition::builtin_definition;
use crate::core::config::Settings;
use crate::core::transport::ProcessSpec;
use crate::shell::{self, LoginShell};
use anyhow::Context as _;
use args::{AgentsArgs, AgentsVerb};
use std::path::{Path, PathBuf};

/// Runs the subcommand and returns the exit code.
pub fn agents(args: &AgentsArgs) -> anyhow::Result<u8> {
    let mut world = AgentWorld::load(args.config.as_deref(), &args.place)?;
    match &args.verb {
        None => listed::list(&mut world, &args.list)?,
        Some(AgentsVerb::List(args)) => listed::list(&mut world, args)?,
        Some(AgentsVerb::Show(args)) => show::show(&mut world, args)?,
        Some(AgentsVerb::Add(args)) => change::add(&world, args)?,
        Some(AgentsVerb::Remove(args)) => change::remove(&world, &args.name)?,
        Some(AgentsVerb::Default(args)) => change::default(&world, args)?,
        Some(AgentsVerb::Import(args)) => import::import(&world, args)?,
        Some(AgentsVerb::Trust(args)) => change::trust(&world, args.revoke)?,
    }
    Ok(0)
}

/// Configuration and definitions of all agents.
struct AgentWorld {
    config: Config,
    settings: Settings,
    /// Definitions of the configured agents that may be used.
    own: Vec<AgentDefinition>,
    state: PathBuf,
}

impl AgentWorld {
    fn load(file: Option<&Path>, place: &PlaceArgs) -> anyhow::Result<Self> {
        let cwd = std::env::current_dir().context("cannot read the working directory")?;
        let state = super::state_dir(place)?;
        let config = config::load(&LoadArgs {
            config: file,
            mode: None,
            cwd: Some(&cwd),
            state_dir: Some(&state),
            is_builtin: &is_builtin,
        })?;
        let settings = super::plain_settings(cwd.to_string_lossy().into_owned(), &config)?;
        let (own, notes) = super::agent_definitions::configured(&config, &settings)?;
        for note in notes {
            print_note(&note);
        }
        Ok(Self {
            config,
            settings,
            own,
            state,
        })
    }

    /// Searches for the programs of these agents, also in the `PATH` of the login shell.
    fn find(
        &self,
        agents: &[&AgentDefinition],
    ) -> anyhow::Result<Vec<Option<crate::proto::wire::Program>>> {
        let specs = agents.iter().map(|agent| program_of(agent)).collect();
        let state = self.state.clone();
        super::on_runtime(async move {
            Ok(shell::find_programs(specs, LoginShell::new(true), &state).await?)
        })
    }
}

fn is_builtin(name: &str) -> bool {
    builtin_agents::find(name).is_some()
}

/// Returns the program of an agent.
fn program_of(agent: &AgentDefinition) -> ProcessSpec {
    let spec = agent.spec.clone();
    ProcessSpec {
        command: spec.command,
        args: spec.args,
        cwd: spec.cwd,
        env: spec.env,
        protocol: spec.protocol,
        fallback: spec.fallback,
    }
}

/// Returns the ids of the built-in agents whose program is in `PATH`, except the demo agent.
pub fn installed_agents(settings: &Settings) -> impl Iterator<Item = &'static str> + use<'_> {
    let others = builtin_agents::all().iter();
    let others = others.filter(|agent| !agent.programs.is_empty());
    let installed = others.filter(|agent| {
        let definition = builtin_definition(agent, settings);
        shell::find_on_path(&program_of(&definition)).is_some()
    });
    installed.map(|agent| agent.id.as_str())
}
