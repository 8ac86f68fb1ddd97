//! Settings of a connection to an editor, and of the hub behind it.

use super::client::FaceSettings;
use crate::cli::args::AcpArgs;
use crate::cli::{ContinuedSession, UsageError, agent_definitions, load_config};
use acpipe_core::hub::Settings;
use acpipe_policy::Mode;

/// Number of characters of a session that are repeated to an agent which no longer remembers it, unless `--reinject`
/// gives another number.
pub const REINJECTED: usize = 32_000;

/// Returns the settings that differ from those of other commands.
pub fn origin() -> ContinuedSession {
    ContinuedSession {
        // The editor has a dialog for permission requests.
        default_mode: Some(Mode::Ask),
        ..ContinuedSession::default()
    }
}

/// Returns the settings of the connection to the editor. Adds the agents that the command line names to the settings
/// of the hub.
pub fn face_settings(args: &AcpArgs, settings: &mut Settings) -> anyhow::Result<FaceSettings> {
    Ok(FaceSettings {
        agents: offered_agents(args, settings)?,
        id_prefix: settings.id_prefix.clone(),
        when_busy: args.when_busy.into(),
    })
}

/// Returns the names of the agents that the client may choose, the default one first: those of the command line if
/// it names several, otherwise the default agent and the configured ones. Adds the named agents to the settings.
fn offered_agents(args: &AcpArgs, settings: &mut Settings) -> anyhow::Result<Vec<String>> {
    let default = settings.default_agent.name.clone();
    let named = args.agent.agent.get(1..).unwrap_or_default();
    if named.is_empty() {
        let configured = settings.agents.iter().map(|agent| agent.name.clone());
        return Ok(std::iter::once(default).chain(configured).collect());
    }
    let config = load_config(&args.agent, &settings.cwd, Some(Mode::Ask))?;
    let mut offered = vec![default];
    for name in named {
        let definition = agent_definitions::named(name, &config, settings)?;
        if offered.contains(&definition.name) {
            let why = format!("--agent {name} is given twice; name each agent once");
            return Err(UsageError(why).into());
        }
        offered.push(definition.name.clone());
        settings.agents.retain(|own| own.name != definition.name);
        settings.agents.push(definition);
    }
    Ok(offered)
}
