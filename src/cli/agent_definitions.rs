//! Definitions of the user's agents: from the configuration and the built-in agents to what the core starts.

use super::UsageError;
use super::config::{Base, Config, ConfiguredAgent, policy_of_agent, review};
use acpipe_core::agent_definition::AgentDefinition;
use acpipe_core::agent_names::{AgentName, resolve};
use acpipe_core::agent_spec::AgentSpec;
use acpipe_core::builtin_definition::builtin_definition;
use acpipe_core::config::Settings;
use acpipe_model::backend_options::BackendOptions;
use acpipe_model::builtin_agents;
use acpipe_policy::Effect;
use acpipe_protocol::wire::{AgentSource, Protocol, SessionOptions};
use std::sync::Arc;

/// Returns the definitions of all agents of the configuration, and notes about those that must not be started.
///
/// # Errors
/// The definition of an agent is not valid.
pub fn configured(
    config: &Config,
    settings: &Settings,
) -> anyhow::Result<(Vec<AgentDefinition>, Vec<String>)> {
    let (mut definitions, mut notes) = (Vec::new(), config.notes.clone());
    for agent in &config.agents {
        match &agent.locked {
            Some(reason) => {
                notes.push(format!("agent {:?} cannot be used: {reason}", agent.name));
                // A mistake in a file that is not trusted must not stop other agents.
                if let Ok(mut locked) = definition(agent, config, settings) {
                    locked.locked = Some(reason.clone());
                    definitions.push(locked);
                }
            }
            None => definitions.push(definition(agent, config, settings)?),
        }
    }
    Ok((definitions, notes))
}

/// Returns the definition of the agent that a name means: one of the configuration, or a built-in one.
///
/// # Errors
/// No agent or several agents have that name, or the user does not trust the file that defines it.
pub fn named(name: &str, config: &Config, settings: &Settings) -> anyhow::Result<AgentDefinition> {
    let own = config.agents.iter().map(|agent| agent.name.as_str());
    let meant = resolve(name, own).map_err(|error| UsageError(error.to_string()))?;
    match meant {
        AgentName::Builtin(agent) => Ok(builtin_definition(agent, settings)),
        AgentName::Own(name) => {
            let agent = config.agent(name);
            let agent = agent.ok_or_else(|| UsageError(format!("agent {name:?} not found")))?;
            if let Some(reason) = &agent.locked {
                return Err(UsageError(reason.clone()).into());
            }
            definition(agent, config, settings)
        }
    }
}

/// Prevents that the agent of a file that is not trusted, at this place, is downloaded. Returns the reason why it must
/// not be started if it can only be downloaded.
pub fn forbid_download(spec: &mut AgentSpec, place: &str) -> Option<String> {
    spec.fallback = None;
    spec.is_package_runner().then(|| {
        let runner = &spec.command;
        review(&format!(
            "{place} chooses an agent that {runner} would download"
        ))
    })
}

/// Returns the definition of an agent of the configuration.
fn definition(
    agent: &ConfiguredAgent,
    config: &Config,
    settings: &Settings,
) -> anyhow::Result<AgentDefinition> {
    let wrong = |why: &str| UsageError(format!("{}: agents.{}: {why}", agent.place, agent.name));
    let base = match &agent.base {
        Base::Builtin(id) => {
            let builtin = builtin_agents::find(id);
            let missing = || wrong(&format!("{id:?} is not the name of a built-in agent"));
            builtin_definition(builtin.ok_or_else(missing)?, settings)
        }
        Base::Command { command, args } => AgentDefinition::new(
            &agent.name,
            AgentSpec {
                command: command.clone(),
                args: args.clone(),
                cwd: settings.cwd.clone(),
                env: acpipe_protocol::wire::Variables::default(),
                source: AgentSource::Configuration,
                protocol: agent.protocol.unwrap_or(Protocol::of_command(command)),
                child_per_session: false,
                options: SessionOptions::default(),
                fallback: None,
                backend: BackendOptions::default(),
            },
        ),
    };
    let mut spec = base.spec;
    let locked = (agent.is_untrusted).then(|| forbid_download(&mut spec, &agent.place));
    spec.source = AgentSource::Configuration;
    spec.protocol = agent.protocol.unwrap_or(spec.protocol);
    spec.backend.clone_from(&agent.backend);
    spec.env.0.extend(agent.env.0.clone());
    spec.options = agent.options.clone().or(&spec.options);
    spec.child_per_session = agent.child_per_session.unwrap_or(spec.child_per_session);
    if let Some(cwd) = &agent.cwd {
        spec.cwd.clone_from(cwd);
    }
    let mut policy = policy_of_agent(&config.policy, agent)?;
    let label = format!("agent {:?}: ", agent.name);
    for (list, entries, effect) in [
        ("tools", &agent.options.allowed_tools, Effect::Allow),
        (
            "disallowed_tools",
            &agent.options.disallowed_tools,
            Effect::Deny,
        ),
    ] {
        for entry in entries {
            let listed = policy.add_listed(entry, &format!("{label}{list}"), effect);
            listed.map_err(|why| wrong(&format!("{list}: {why}")))?;
        }
    }
    let mut limits = settings.limits;
    for (timeout, limit) in &agent.limits {
        limits.set(*timeout, *limit);
    }
    let mut definition = AgentDefinition::new(&agent.name, spec);
    definition.description = agent.description.clone().or(base.description);
    definition.tags.clone_from(&agent.tags);
    definition.policy = Some(Arc::new(policy));
    definition.limits = (limits != settings.limits).then(|| Box::new(limits));
    definition.mcp_servers.clone_from(&agent.mcp_servers);
    definition.asks.clone_from(&agent.asks);
    definition.locked = locked.flatten();
    let quirks = settings
        .quirks
        .get(&agent.name)
        .cloned()
        .unwrap_or(base.quirks);
    Ok(definition
        .with_instructions(agent.prompt.clone())
        .with_quirks(quirks, &settings.limits))
}
