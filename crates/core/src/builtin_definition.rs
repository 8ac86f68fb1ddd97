//! Definitions of built-in agents.

use super::agent_command;
use super::agent_definition::AgentDefinition;
use super::agent_spec::AgentSpec;
use super::config::Settings;
use acpipe_model::backend_options::BackendOptions;
use acpipe_model::builtin_agents::{BuiltinAgent, LaunchTemplate, all};
use acpipe_model::transport::Fallback;
use acpipe_protocol::wire::{AgentSource, SessionOptions};

pub fn builtin_definition(agent: &BuiltinAgent, settings: &Settings) -> AgentDefinition {
    let demo = || LaunchTemplate {
        command: settings.own_program.clone(),
        args: vec!["demo-agent".to_owned()],
        ..LaunchTemplate::default()
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
            cwd: settings.home(),
        }),
        backend: BackendOptions::default(),
    };
    let quirks = settings.quirks.get(&agent.id).cloned();
    let mut definition = AgentDefinition::new(&agent.id, spec);
    definition.description = Some(agent.description.clone());
    definition.with_quirks(quirks.unwrap_or_default(), &settings.limits)
}

/// Returns the name under which the profile of an agent without a name is stored: the id of the built-in
/// agent that has the same program, else the key of the program.
pub fn profile_name(spec: &AgentSpec) -> String {
    let key = spec.key();
    let is_same = |agent: &&BuiltinAgent| {
        let runner = agent.package_launch();
        let mut launches = agent.programs.iter().chain(&runner);
        agent.protocol == spec.protocol
            && launches
                .any(|form| agent_command::key(spec.protocol, &form.command, &form.args) == key)
            || agent.demo && spec.source == AgentSource::Demo
    };
    let builtin = all().iter().find(is_same);
    builtin.map_or(key, |agent| agent.id.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::SettingsBuilder;
    use acpipe_model::builtin_agents;
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

    #[test]
    fn profile_of_a_command_line_is_that_of_the_built_in_agent() {
        let settings = SettingsBuilder::new(Instant::now()).build();
        for agent in builtin_agents::all() {
            let spec = builtin_definition(agent, &settings).spec;
            assert_eq!(profile_name(&spec), agent.id);
        }
        let cases = [
            ("/opt/bin/codex-acp", "codex"),
            ("npx -y @agentclientprotocol/codex-acp@2.6.0", "codex"),
            ("node /a/agent.js --acp", "node /a/agent.js"),
        ];
        for (line, want) in cases {
            let mut words = line.split(' ').map(str::to_owned);
            let codex = builtin_agents::find("codex").unwrap();
            let mut spec = builtin_definition(codex, &settings).spec;
            spec.command = words.next().unwrap();
            spec.args = words.collect();
            assert_eq!(profile_name(&spec), want, "{line}");
        }
    }
}
