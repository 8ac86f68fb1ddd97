//! `acpipe agents`: lists agents and changes those of the configuration. Programs are asked for their version
//! only.

pub mod args;
mod change;
mod import;
mod listed;
mod show;
mod version;

use super::args::shared::PlaceArgs;
use super::config::{self, Config, LoadArgs};
use super::print_note;
use acpipe_core::agent_definition::AgentDefinition;
use acpipe_core::builtin_definition::builtin_definition;
use acpipe_core::config::Settings;
use acpipe_host as shell;
use acpipe_host::{AgentStarter, Launch, LoginShell};
use acpipe_json::frame::DEFAULT_MAX_LINE;
use acpipe_model::builtin_agents;
use acpipe_model::limits::Timeout;
use acpipe_protocol::wire::{AgentSource, FoundBy, Program};
use args::{AgentsArgs, AgentsVerb};
use std::path::{Path, PathBuf};
use std::sync::Arc;

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

/// Returns the names that `--agent` accepts: the agents of the configuration, and the built-in ones with their full names.
///
/// # Errors
/// The configuration is not valid.
pub fn names(place: &PlaceArgs) -> anyhow::Result<Vec<(String, Option<&'static str>)>> {
    let world = AgentWorld::load(None, place)?;
    let own = world.own.iter().map(|agent| (agent.name.clone(), None));
    let builtin = builtin_agents::all().iter();
    let builtin = builtin.map(|agent| (agent.id.clone(), Some(agent.name.as_str())));
    Ok(own.chain(builtin).collect())
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
        let cwd = super::working_directory()?;
        let state = super::state_dir(place)?;
        let config = config::load(&LoadArgs {
            texts: None,
            config: file,
            ignores_variable: false,
            mode: None,
            default_mode: None,
            cwd: Some(&cwd),
            state_dir: Some(&state),
            is_builtin: &is_builtin,
        })?;
        let settings =
            super::plain_settings(cwd.to_string_lossy().into_owned(), config.policy.clone())?;
        let (mut own, notes) = super::agent_definitions::configured(&config, &settings)?;
        // Their programs must not even be asked for a version.
        own.retain(|agent| agent.locked.is_none());
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

    /// Searches for the programs of these agents, also in the `PATH` of the login shell, and asks those that
    /// are installed for their versions.
    fn find(&self, agents: &[&AgentDefinition]) -> anyhow::Result<Vec<FoundAgent>> {
        let grace = self.settings.limits.of(Timeout::Terminate);
        let grace = grace.unwrap_or_default();
        let home = self.settings.home();
        super::on_runtime(async {
            let launch = Launch::begin(Some(&self.state), grace);
            let login = LoginShell::new(true);
            let starter = AgentStarter::new(login, launch, DEFAULT_MAX_LINE, grace);
            let starter = Arc::new(starter);
            let mut programs = Vec::new();
            for agent in agents {
                // An HTTP endpoint has no program.
                let program = if agent.spec.protocol.is_http() {
                    None
                } else {
                    starter.find(&agent.spec.process(&home)).await.ok()
                };
                programs.push(program);
            }
            let asked = agents.iter().zip(&programs).map(|(agent, program)| {
                let is_demo = agent.spec.source == AgentSource::Demo;
                let is_asked = is_installed(agent, program.as_ref()) && !is_demo;
                is_asked.then(|| agent.spec.process(&home))
            });
            let versions = version::versions(asked.collect(), &starter).await;
            let found = programs.into_iter().zip(versions);
            let found = found.map(|(program, version)| FoundAgent { program, version });
            Ok(found.collect())
        })
    }
}

/// Program of an agent on this machine.
struct FoundAgent {
    program: Option<Program>,
    version: Option<String>,
}

/// Returns `true` if the program of an agent is installed, and not only a package runner that can run it.
fn is_installed(agent: &AgentDefinition, program: Option<&Program>) -> bool {
    let is_runner = agent.spec.is_package_runner();
    program.is_some_and(|program| program.found_by != FoundBy::PackageRunner && !is_runner)
}

fn is_builtin(name: &str) -> bool {
    builtin_agents::find(name).is_some()
}

/// Returns the ids of the built-in agents whose program is in `PATH`, except the demo agent.
pub fn installed_agents(settings: &Settings) -> impl Iterator<Item = &'static str> + use<'_> {
    let others = builtin_agents::all().iter();
    let others = others.filter(|agent| !agent.programs.is_empty());
    let installed = others.filter(|agent| {
        let definition = builtin_definition(agent, settings);
        shell::find_on_path(&definition.spec.process(&settings.home())).is_some()
    });
    installed.map(|agent| agent.id.as_str())
}
