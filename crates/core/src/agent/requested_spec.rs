//! The specification of an agent that `agent/connect` or `agent/register` requests. A function of the agent's definition and
//! the parameters: it owns nothing.

use crate::agent_definition::AgentDefinition;
use crate::agent_spec::{AgentSpec, DEFAULT_AGENT};
use crate::config::Settings;
use crate::options;
use acpipe_dialects as dialects;
use acpipe_model::backend_options::BackendOptions;
use acpipe_model::error::{Error, invalid};
use acpipe_model::http::url_fault;
use acpipe_protocol::wire::{AgentSource, ConnectParams, Protocol};
use std::path::Path;

/// Returns the specification of the agent that `agent/connect` requests.
///
/// # Errors
/// `invalidParams`.
pub fn requested_spec(
    definition: &AgentDefinition,
    p: ConnectParams,
    settings: &Settings,
) -> Result<AgentSpec, Error> {
    let default = &definition.spec;
    let base = Path::new(&settings.cwd);
    let cwd = match &p.cwd {
        Some(cwd) => base.join(cwd).to_string_lossy().into_owned(),
        None => default.cwd.clone(),
    };
    let mut env = default.env.clone();
    env.0.extend(p.env.0);
    if let Some(why) = env.fault() {
        return Err(invalid("env", &why));
    }
    let other = |own: &Protocol| *own != default.protocol;
    let command = match (p.command, p.protocol.filter(other)) {
        (Some(command), _) if command.is_empty() => {
            return Err(invalid("command", "must not be empty"));
        }
        (None, Some(protocol)) => {
            let Some(command) = dialects::traits(protocol).default_command else {
                let why = "is required, unless the protocol is `claude`";
                return Err(invalid("command", why));
            };
            Some(command.to_owned())
        }
        (command, _) => command,
    };
    let spec = match command {
        Some(command) => AgentSpec {
            protocol: p.protocol.unwrap_or(Protocol::of_command(&command)),
            command,
            args: p.args,
            cwd,
            env,
            source: AgentSource::Client,
            child_per_session: p.child_per_session.unwrap_or_default(),
            options: match default.source {
                // Another command leaves an agent of the clients its other settings.
                AgentSource::Client if definition.name != DEFAULT_AGENT => {
                    (*p.options).or(&default.options)
                }
                _ => *p.options,
            },
            fallback: None,
            backend: BackendOptions::default(),
        },
        None if !p.args.is_empty() => {
            return Err(invalid("args", "cannot be given without command"));
        }
        None => AgentSpec {
            cwd,
            env,
            child_per_session: p.child_per_session.unwrap_or(default.child_per_session),
            options: (*p.options).or(&default.options),
            ..default.clone()
        },
    };
    check_address(&spec)?;
    let policy = settings.policy_of(definition);
    options::check(spec.protocol, &spec.options, &[], policy)?;
    Ok(spec)
}

/// Checks the address of an HTTP endpoint, which stands in the place of the command.
///
/// # Errors
/// `invalidParams`.
fn check_address(spec: &AgentSpec) -> Result<(), Error> {
    if !spec.protocol.is_http() {
        return Ok(());
    }
    if let Some(why) = url_fault(&spec.command) {
        return Err(invalid("command", why));
    }
    if !spec.args.is_empty() {
        return Err(invalid(
            "args",
            "must be empty: an HTTP endpoint has no arguments",
        ));
    }
    Ok(())
}
