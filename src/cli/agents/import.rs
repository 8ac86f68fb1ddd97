//! Import of agents from a file of the ACP registry.

use super::AgentWorld;
use super::args::ImportArgs;
use super::change::note_daemon;
use super::change::{edit, user_file};
use crate::cli::config::text_of;
use crate::cli::{UsageError, print_note};
use acpipe_model::builtin_agents::registry;
use acpipe_model::builtin_agents::registry::ImportedAgent;
use serde_json::{Map, Value, json};
use std::io::Read as _;
use std::path::Path;

/// Maximum size of a registry file from stdin, in bytes.
const MOST_BYTES: u64 = 16 << 20;

/// Adds the agents of a registry file that the configuration does not have.
pub fn import(world: &AgentWorld, args: &ImportArgs) -> anyhow::Result<()> {
    let name = args.file.display().to_string();
    let wrong = |why: &str| UsageError(format!("cannot import {name}: {why}"));
    let text = if name.contains("://") {
        return Err(wrong(&format!(
            "it is a URL; download it: curl -fsSL {name} | acpipe agents import -"
        ))
        .into());
    } else if args.file == Path::new("-") {
        let mut text = String::new();
        let read = std::io::stdin().take(MOST_BYTES).read_to_string(&mut text);
        read.map_err(|error| wrong(&error.to_string()))?;
        text
    } else {
        text_of(&args.file).map_err(|error| wrong(&error.to_string()))?
    };
    let all = registry::parse(&text).map_err(|why| wrong(&why))?;
    for id in &args.names {
        if !all.iter().any(|agent| agent.id == *id) {
            return Err(wrong(&format!("it has no agent {id:?}")).into());
        }
    }
    let mut edit = edit(world)?;
    let mut added = 0;
    for agent in &all {
        let is_wanted = args.names.is_empty() || args.names.contains(&agent.id);
        if !is_wanted {
            continue;
        }
        if world.config.agent(&agent.id).is_some() {
            print_note(&format!(
                "skipped {:?}: the configuration has it already",
                agent.id
            ));
            continue;
        }
        match keys(agent) {
            Ok(keys) => {
                edit.add_agent(&agent.id, &keys)?;
                added += 1;
            }
            Err(why) => print_note(&format!("skipped {why}")),
        }
    }
    if added > 0 {
        edit.write()?;
    }
    let file = user_file(world)?.path.display();
    print_note(&format!("added {added} of {} agents to {file}", all.len()));
    note_daemon(world);
    Ok(())
}

/// Returns the keys of an agent's table in the configuration.
fn keys(agent: &ImportedAgent) -> Result<Map<String, Value>, String> {
    let platform = registry::platform(std::env::consts::OS, std::env::consts::ARCH);
    let imported = agent.launch(&platform)?;
    if let Some(url) = &imported.download {
        print_note(&format!(
            "{:?} needs a download: unpack {url:?} into a directory of PATH",
            agent.id
        ));
    }
    let launch = imported.launch;
    let mut keys = Map::new();
    keys.insert("description".to_owned(), json!(agent.description));
    keys.insert("command".to_owned(), json!(launch.command));
    if !launch.args.is_empty() {
        keys.insert("args".to_owned(), json!(launch.args));
    }
    if !launch.env.is_empty() {
        keys.insert("env".to_owned(), json!(launch.env));
    }
    Ok(keys)
}
