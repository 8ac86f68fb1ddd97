//! The definition of one agent.

use super::AgentWorld;
use super::args::ShowAgentArgs;
use super::listed::{AgentAvailability, AgentListing};
use crate::cli::agent_definitions::named;
use crate::cli::screen::{ScreenContent, to_stdout};
use acpipe_model::{builtin_agents, shell_words};
use std::io::{self, Write};

/// Prints the definition of an agent, and where its program is.
pub fn show(world: &mut AgentWorld, args: &ShowAgentArgs) -> anyhow::Result<()> {
    let world = &*world;
    let agent = named(&args.name, &world.config, &world.settings)?;
    let found = world.find(&[&agent])?;
    let Some(found) = found.first() else {
        return Ok(());
    };
    let program = found.program.as_ref();
    let listed = AgentListing::new(world, &agent, found);
    to_stdout(ScreenContent::of(args.json), |out| {
        if args.json {
            serde_json::to_writer(&mut *out, &listed).map_err(io::Error::from)?;
            return Ok(out.write_all(b"\n")?);
        }
        let spec = &agent.spec;
        let words = std::iter::once(&*listed.command).chain(listed.args.iter().map(String::as_str));
        let line = shell_words::join(words);
        let place = world
            .config
            .agent(&agent.name)
            .map(|own| own.place.as_str());
        let file = match (listed.state, program) {
            (AgentAvailability::Http, _) => "HTTP endpoint".to_owned(),
            (AgentAvailability::NotInstalled, _) | (_, None) => "not installed".to_owned(),
            (AgentAvailability::PackageRunner, Some(p)) => {
                format!("not installed; {} downloads and runs it", p.file)
            }
            (AgentAvailability::Installed, Some(p)) => p.file.clone(),
        };
        let variables: Vec<&str> = spec.env.0.keys().map(String::as_str).collect();
        let options = serde_json::to_string(&spec.options).map_err(io::Error::from)?;
        let prompt = agent.spec.options.append_system_prompt.clone();
        let instructions = agent.instructions.clone().or(prompt);
        let layers = world.config.agent(&agent.name).map(|own| &own.permissions);
        let layers = layers.into_iter().flatten();
        let layers: Vec<String> = layers
            .map(|layer| format!("of agent {:?}", layer.agent))
            .collect();
        let permissions = Some(layers.join(", ")).filter(|layers| !layers.is_empty());
        let permissions = permissions
            .map(|layers| format!("its own, {layers}; acpipe permissions shows decisions"));
        let notes = builtin_agents::find(&agent.name).map(|agent| agent.notes.join("; "));
        let facts = [
            ("agent", Some(agent.name.clone())),
            ("description", agent.description.clone()),
            ("tags", Some(agent.tags.join(", "))),
            ("defined in", place.map(str::to_owned)),
            ("command", Some(line)),
            ("protocol", Some(spec.protocol.name().to_owned())),
            ("program", Some(file)),
            ("version", found.version.clone()),
            ("install", listed.install.map(str::to_owned)),
            ("sign in", listed.login.map(str::to_owned)),
            ("directory", place.map(|_| spec.cwd.clone())),
            ("variables", Some(variables.join(", "))),
            ("options", Some(options).filter(|options| options != "{}")),
            ("permissions", permissions),
            ("instructions", instructions),
            ("notes", notes),
        ];
        for (name, fact) in facts {
            if let Some(fact) = fact.filter(|fact| !fact.is_empty()) {
                write_fact(out, name, &fact)?;
            }
        }
        Ok(())
    })
}

/// Width of the names of facts, in columns.
const NAMES: usize = 14;

fn write_fact(out: &mut dyn Write, name: &str, fact: &str) -> io::Result<()> {
    let mut lines = fact.lines();
    let first = lines.next().unwrap_or_default();
    writeln!(out, "{name:<NAMES$}{first}")?;
    lines.try_for_each(|line| writeln!(out, "{:NAMES$}{line}", ""))
}
