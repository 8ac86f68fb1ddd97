//! Changes of the configuration file, and trust in a project's file.

use super::args::{AddArgs, DefaultArgs};
use super::{AgentWorld, is_builtin};
use crate::cli::config::edit::Edit;
use crate::cli::config::{UserFile, trust as trusted};
use crate::cli::daemon::start::is_running;
use crate::cli::screen::{ScreenContent, to_stdout};
use crate::cli::{UsageError, print_note};
use acpipe_core::agent_names::resolve;
use acpipe_protocol::wire::Protocol;
use serde_json::{Map, Value, json};

/// Adds an agent.
pub fn add(world: &AgentWorld, args: &AddArgs) -> anyhow::Result<()> {
    let mut keys = Map::new();
    let mut set = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            keys.insert(key.to_owned(), value);
        }
    };
    let text = |text: &Option<String>| text.as_ref().map(|text| json!(text));
    set("extends", text(&args.extends));
    let is_http = args
        .protocol
        .is_some_and(|kind| Protocol::from(kind).is_http());
    if let Some((command, rest)) = args.command.split_first() {
        let key = if is_http { "url" } else { "command" };
        set(key, Some(json!(command)));
        set("args", Some(json!(rest)).filter(|_| !rest.is_empty()));
    }
    let protocol = args.protocol.map(|kind| json!(Protocol::from(kind).name()));
    set("protocol", protocol);
    set("description", text(&args.description));
    set("prompt", text(&args.prompt));
    set("model", text(&args.model));
    set("mode", text(&args.mode));
    set("permissions", text(&args.permissions));
    let variables: Result<Map<String, Value>, UsageError> =
        args.env.iter().map(|pair| variable(pair)).collect();
    let variables = variables?;
    set(
        "env",
        (!variables.is_empty()).then_some(Value::Object(variables)),
    );
    let mut edit = edit(world)?;
    edit.add_agent(&args.name, &keys)?;
    edit.write()?;
    let file = user_file(world)?.path.display();
    print_note(&format!(
        "added agent {:?} to {file}; check it with acpipe doctor {}",
        args.name, args.name
    ));
    note_daemon(world);
    Ok(())
}

/// Says that a running daemon has read the configuration at its start. Clients of its socket bring their own.
pub(super) fn note_daemon(world: &AgentWorld) {
    if is_running(&world.state) {
        print_note(
            "the running daemon has the configuration of its start; clients of its HTTP server, such as browsers, get the \
             change after acpipe daemon restart",
        );
    }
}

fn variable(pair: &str) -> Result<(String, Value), UsageError> {
    match pair.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), json!(value))),
        // A pair without a name is a value.
        Some(_) => Err(UsageError(
            "--env: the name before = is missing; write NAME=VALUE".to_owned(),
        )),
        None => Err(UsageError(format!(
            "--env: the value is missing; write {pair}=VALUE"
        ))),
    }
}

/// Removes an agent.
pub fn remove(world: &AgentWorld, name: &str) -> anyhow::Result<()> {
    let mut edit = edit(world)?;
    let file = user_file(world)?.path.display();
    if !edit.remove_agent(name) {
        let why = match world.config.agent(name) {
            Some(own) => format!("it is defined in {}; edit that file", own.place),
            None if is_builtin(name) => "it is built in".to_owned(),
            None => "the file has no such agent; acpipe agents lists all agents".to_owned(),
        };
        return Err(UsageError(format!("cannot remove agent {name:?} from {file}: {why}")).into());
    }
    edit.write()?;
    print_note(&format!("removed agent {name:?} from {file}"));
    note_daemon(world);
    Ok(())
}

/// Sets or prints the default agent.
pub fn default(world: &AgentWorld, args: &DefaultArgs) -> anyhow::Result<()> {
    let mut edit = edit(world)?;
    let name = match (&args.name, args.unset) {
        (Some(name), _) => {
            let own = world.config.agents.iter().map(|agent| agent.name.as_str());
            let meant = resolve(name, own).map_err(|error| UsageError(error.to_string()))?;
            Some(meant.as_str().to_owned())
        }
        (None, true) => None,
        (None, false) => {
            match &world.config.default_agent {
                Some((name, place)) => {
                    to_stdout(ScreenContent::Text, |out| {
                        Ok(writeln!(out, "{name}\t{place}")?)
                    })?;
                }
                None => print_note("no default agent; set one with acpipe agents default NAME"),
            }
            return Ok(());
        }
    };
    edit.set_default(name.as_deref());
    edit.write()?;
    let file = user_file(world)?.path.display();
    match name {
        Some(name) => print_note(&format!("the default agent is {name:?}, set in {file}")),
        None => print_note(&format!("removed the default agent from {file}")),
    }
    note_daemon(world);
    Ok(())
}

/// Trusts the project's file as it is now, or revokes the trust.
pub fn trust(world: &AgentWorld, revoke: bool) -> anyhow::Result<()> {
    let Some((file, text)) = &world.config.project_file else {
        let message = "no .acpipe.toml in this directory or its parents";
        return Err(UsageError(message.to_owned()).into());
    };
    let shown = file.display();
    if revoke {
        let message = if trusted::untrust(&world.state, file)? {
            format!("{shown} is not trusted any more")
        } else {
            format!("{shown} was not trusted")
        };
        print_note(&message);
        return Ok(());
    }
    trusted::trust(&world.state, file, text)?;
    print_note(&format!(
        "{shown} is trusted as it is now: its agents may start programs; a change of the file ends that"
    ));
    Ok(())
}

pub(super) fn edit(world: &AgentWorld) -> anyhow::Result<Edit<'_>> {
    Ok(Edit::open(user_file(world)?, &is_builtin)?)
}

pub(super) fn user_file(world: &AgentWorld) -> Result<&UserFile, UsageError> {
    world.config.user_file.as_ref().ok_or_else(|| {
        let message = "the platform has no configuration directory; name a file with --config FILE";
        UsageError(message.to_owned())
    })
}
