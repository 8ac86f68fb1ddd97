//! Definitions of built-in agents.

use super::agent_definition::AgentDefinition;
use super::agent_spec::AgentSpec;
use super::builtin_agents::{BuiltinAgent, Launch};
use super::config::Settings;
use super::transport::Fallback;
use crate::proto::wire::{AgentSource, SessionOptions};

/// Returns the definition by which a built-in agent is started.
#[must_use]
pub fn builtin_definition(agent: &BuiltinAgent, settings: &Settings) -> AgentDefinition {
    let demo = || Launch {
        command: settings.own_program.clone(),
        args: vec!["demo-agent".to_owned()],
        ..Launch::default()
    };
    let runner = agent.package_launch();
    let launch = agent.programs.first().cloned();
    let launch = launch.or_else(|| runner.clone()).unwrap_or_else(demo);
    let fallback = runner.filter(|runner| runner.command != launch.command);
    let variables = launch.env.into_iter();
    let spec = AgentSpec {
        command: launch.command,
        args: launch.args,
        cwd: settings.cwd.clone(),
        env: variables.map(|(name, value)| (name, Some(value))).collect(),
        source: if agent.demo {
            AgentSource::Demo
        } else {
            AgentSource::BuiltIn
        },
        protocol: agent.protocol,
        child_per_session: agent.child_per_session,
        options: SessionOptions::default(),
        fallback: fallback.map(|runner| Fallback {
            command: runner.command,
            args: runner.args,
        }),
    };
    let quirks = settings.quirks.get(&agent.id).copied();
    let mut definition = AgentDefinition::new(&agent.id, spec);
    definition.description = Some(agent.description.clone());
    definition.with_quirks(quirks.unwrap_or_default(), &settings.limits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::builtin_agents;
    use crate::testing::SettingsBuilder;
    use std::time::Instant;

    #[test]
    fn every_built_in_agent_has_a_command() {
        let settings = SettingsBuilder::new(Instant::now()).build();
        for agent in builtin_agents::all() {
            let spec = builtin_definition(agent, &settings).spec;
            assert!(!spec.command.is_empty(), "{}", agent.id);
            let runs_itself = spec.fallback.is_some_and(|f| f.command == spec.command);
            assert!(!runs_itself, "{}", agent.id);
        }
        let codex = builtin_definition(builtin_agents::find("codex").unwrap(), &settings);
        assert_eq!(codex.spec.command, "codex-acp");
        assert_eq!(codex.spec.fallback.unwrap().command, "npx");
    }
}
