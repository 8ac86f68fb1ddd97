//! Tests of the data file: it is complete, consistent, and agrees with the hints.

use super::hints::{acp_command, login};
use super::{all, file, find};
use serde_json::Value;
use std::collections::BTreeSet;

#[test]
fn ids_aliases_and_programs_are_unique() {
    assert_eq!(file().format, 1);
    let mut names = BTreeSet::new();
    let mut programs = BTreeSet::new();
    for agent in all() {
        for name in agent.names() {
            assert!(names.insert(name), "{name} names two agents");
            assert_eq!(find(name), Some(agent), "{name}");
        }
        let own: BTreeSet<&String> = agent.programs.iter().map(|own| &own.command).collect();
        for program in own.into_iter().chain(&agent.non_acp.programs) {
            assert!(programs.insert(program), "{program} is of two agents");
        }
    }
    assert_eq!(find("none"), None);
}

#[test]
fn agents_are_described_and_can_be_started() {
    for agent in all() {
        let id = &agent.id;
        assert!(
            !agent.name.is_empty() && !agent.description.is_empty(),
            "{id}"
        );
        let has_install = agent.install.as_ref().is_some_and(|text| !text.is_empty());
        let has_launch = !agent.programs.is_empty() || agent.package_launch().is_some();
        assert_ne!(has_install, agent.demo, "{id}");
        assert_ne!(has_launch, agent.demo, "{id}");
    }
}

#[test]
fn command_lines_of_agents_are_recognised_as_speaking_acp() {
    for agent in all() {
        let package = agent.package_launch();
        for launch in agent.programs.iter().chain(&package) {
            let hint = acp_command(&launch.command, &launch.args);
            assert_eq!(hint, None, "{}", launch.line());
            let found = login(&launch.command, &launch.args);
            assert_eq!(found, agent.login.as_deref(), "{}", launch.line());
        }
        for program in &agent.non_acp.programs {
            let other = &agent.programs[0].command;
            assert_eq!(acp_command(program, &[]).as_ref(), Some(other));
        }
    }
}

#[test]
fn ids_of_the_acp_registry_are_known() {
    let ids = "agoragentic-acp amp-acp auggie claude-acp cline codebuddy-code codex-acp cortex-code corust-agent cursor \
        deepagents devin dimcode dirac factory-droid fast-agent gemini github-copilot github-copilot-cli glm-acp-agent \
        goose grok-build harn junie kilo kimi minion-code mistral-vibe nova opencode pi-acp poolside qoder qwen-code \
        sigit stakpak vtcode";
    for id in ids.split_whitespace() {
        assert!(find(id).is_some(), "{id}");
    }
}

/// Packages are read like those of the registry, which may get other members.
#[test]
fn packages_of_the_data_file_have_no_unknown_members() {
    let text = include_str!("agents.json");
    let file: Value = serde_json::from_str(text).unwrap();
    let known = ["package", "cmd", "args", "env"];
    for agent in file["agents"].as_array().unwrap() {
        let Some(distribution) = agent["distribution"].as_object() else {
            continue;
        };
        for (runner, package) in distribution {
            assert!(["npx", "uvx"].contains(&runner.as_str()), "{agent}");
            let members = package.as_object().unwrap().keys();
            for member in members {
                assert!(known.contains(&member.as_str()), "{member} in {agent}");
            }
        }
    }
}
