//! Agents by name on the command line: the configuration, the default agent, the project's file, and
//! `acpipe agents`.

use crate::daemon::Daemon;
use crate::harness::steps::{ask, end, say};
use crate::harness::{FAKE_AGENT, FAKE_CLAUDE, World, calls, chosen_options};
use serde_json::{Value, json};
use std::fs;
use std::process::{Output, Stdio};

/// Creates a world with this text as the user's configuration; `AGENT` in it is the fake agent's command
/// line, which runs the script.
fn configured(script: &Value, config: &str) -> World {
    let world = World::new();
    let script = world.script(script);
    let agent = format!("command = {FAKE_AGENT:?}\nargs = [{script:?}]");
    world.configure(&config.replace("AGENT", &agent));
    world
}

/// Runs acpipe in the world's directory, and checks the exit code.
#[track_caller]
fn acpipe(world: &World, code: i32, args: &[&str]) -> Output {
    acpipe_with(world, code, args, &[])
}

#[track_caller]
fn acpipe_with(world: &World, code: i32, args: &[&str], env: &[(&str, &str)]) -> Output {
    let mut command = world.acpipe(args);
    command.current_dir(&world.dir).stdin(Stdio::null());
    let output = command.envs(env.iter().copied()).output().unwrap();
    assert_eq!(output.status.code(), Some(code), "{args:?}: {output:?}");
    assert_eq!(world.leak(), None);
    output
}

fn stdout(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).unwrap()
}

fn stderr(output: &Output) -> &str {
    std::str::from_utf8(&output.stderr).unwrap()
}

/// Returns the script of an agent that ends each turn with a greeting.
fn greeting() -> Value {
    json!({"session/prompt": [[say("hi"), end("end_turn")]]})
}

#[test]
fn variant_runs_by_its_name_with_its_instructions_and_permissions() {
    let options = [("yes", "allow_once"), ("no", "reject_once")];
    let tool =
        json!({"toolCallId": "t", "title": "edit", "kind": "edit", "rawInput": {"path": "a"}});
    let script = json!({"session/prompt": [[ask(&tool, &options), say("done"), end("end_turn")]]});
    let config = "[agents.mine]\nAGENT\n[agents.reviewer]\nextends = \"mine\"\n\
                  prompt = \"Only review.\"\npermissions = \"deny\"\n";
    for (name, chosen, blocks) in [("mine", "yes", 1), ("reviewer", "no", 2)] {
        let world = configured(&script, config);
        let output = acpipe(&world, 0, &["run", "--agent", name, "go"]);
        assert_eq!(stdout(&output), "done\n");
        let log = world.log();
        assert_eq!(chosen_options(&log), [chosen], "{name}");
        let prompt = &calls(&log, "session/prompt")[0]["params"]["prompt"];
        assert_eq!(prompt.as_array().unwrap().len(), blocks, "{prompt}");
        assert_eq!(prompt.to_string().contains("Only review."), blocks == 2);
    }
}

#[test]
fn agent_of_only_a_name_and_a_prompt_runs_and_reports_a_structured_result() {
    let config = "[agents.reviewer]\nuse = \"claude\"\nprompt = \"Only review.\"\n";
    let world = configured(&json!({}), config);
    let args = ["run", "--agent", "reviewer", "-o", "json", "go"];
    let output = acpipe_with(&world, 0, &args, &[("CLAUDE_CLI_PATH", FAKE_CLAUDE)]);
    let summary: Value = serde_json::from_str(stdout(&output)).unwrap();
    assert_eq!(
        (&summary["isError"], &summary["errors"]),
        (&json!(false), &json!([])),
        "{summary}"
    );
    assert!(summary["usage"].is_object(), "{summary}");
    let log = world.log();
    let has_prompt = |line: &Value| line.to_string().contains("Only review.");
    assert!(log.iter().any(has_prompt), "{log:?}");
}

#[test]
fn agent_that_is_defined_twice_starts_nothing() {
    let world = configured(&greeting(), "[agents.mine]\nAGENT\n[agents.mine]\nAGENT\n");
    let output = acpipe(&world, 2, &["run", "--agent", "mine", "go"]);
    assert!(stderr(&output).contains("defined twice"), "{output:?}");

    let other = configured(&greeting(), "[agents.mine]\nAGENT\n");
    other.file(".acpipe.toml", "[agents.mine]\nuse = \"claude\"\n");
    let output = acpipe(&other, 2, &["run", "--agent", "mine", "go"]);
    assert!(stderr(&output).contains("also defined at"), "{output:?}");
    assert!(world.log().is_empty() && other.log().is_empty());
}

#[test]
fn default_agent_of_the_configuration_is_used_where_none_is_named() {
    let world = configured(&greeting(), "[agents.mine]\nAGENT\n");
    acpipe(&world, 0, &["agents", "default", "mine"]);
    let output = acpipe(&world, 0, &["run", "go"]);
    assert_eq!(stdout(&output), "hi\n");
    let output = acpipe(&world, 0, &["agents", "--json"]);
    let first = stdout(&output).lines().next().unwrap();
    let first: Value = serde_json::from_str(first).unwrap();
    assert_eq!(
        (&first["agent"], &first["isDefault"], &first["state"]),
        (&json!("mine"), &json!(true), &json!("installed"))
    );
}

#[test]
fn added_agents_are_started_by_their_names() {
    let world = World::new();
    for name in ["one", "two"] {
        let turn = json!({"session/prompt": [[say(name), end("end_turn")]]});
        let script = world.script(&turn);
        acpipe(
            &world,
            0,
            &["agents", "add", name, "--", FAKE_AGENT, &script],
        );
    }
    for name in ["two", "one"] {
        let output = acpipe(&world, 0, &["run", "--agent", name, "go"]);
        assert_eq!(stdout(&output), format!("{name}\n"));
    }
    acpipe(&world, 2, &["agents", "add", "one", "--", "other"]);
    acpipe(&world, 0, &["agents", "remove", "one"]);
    acpipe(&world, 2, &["run", "--agent", "one", "go"]);
}

#[test]
fn unknown_name_is_an_error_with_similar_names() {
    let world = configured(&greeting(), "[agents.reviewer]\nAGENT\n");
    let output = acpipe(&world, 2, &["run", "--agent", "reviwer", "go"]);
    let hint = "did you mean reviewer?";
    assert!(stderr(&output).contains(hint), "{output:?}");
    let output = acpipe(&world, 0, &["run", "--agent", "rev", "go"]);
    assert_eq!(stdout(&output), "hi\n");
}

#[test]
fn run_without_an_agent_names_the_installed_ones() {
    let world = World::new();
    fs::create_dir(world.dir.join("bin")).unwrap();
    world.executable("bin/opencode", "#!/bin/sh\nexit 1\n");
    let path = world.dir.join("bin").to_str().unwrap().to_owned();
    let env = [("PATH", path.as_str()), ("ACPIPE_NO_PATH_PROBE", "1")];
    let output = acpipe_with(&world, 2, &["run", "go"], &env);
    let hint = "found on this machine: opencode";
    assert!(stderr(&output).contains(hint), "{output:?}");
}

#[test]
fn project_agent_with_a_command_runs_only_while_its_file_is_trusted() {
    let world = World::new();
    let script = world.script(&greeting());
    let config = format!("[agents.server]\ncommand = {FAKE_AGENT:?}\nargs = [{script:?}]\n");
    world.file(".acpipe.toml", &config);
    let run = ["run", "--agent", "server", "go"];
    let refused = || {
        let output = acpipe(&world, 2, &run);
        let hint = "acpipe agents trust";
        assert!(stderr(&output).contains(hint), "{output:?}");
    };
    refused();
    acpipe(&world, 0, &["agents", "trust"]);
    assert_eq!(stdout(&acpipe(&world, 0, &run)), "hi\n");
    world.file(".acpipe.toml", &format!("{config}# changed\n"));
    refused();
    acpipe(&world, 0, &["agents", "trust"]);
    acpipe(&world, 0, &["agents", "trust", "--revoke"]);
    refused();
    assert_eq!(calls(&world.log(), "session/prompt").len(), 1);
}

#[test]
fn changed_configuration_names_the_daemon_that_has_read_the_old_one() {
    let daemon = Daemon::start(&[]);
    let added = daemon.run(&["agents", "add", "mine", "--", FAKE_AGENT], 0);
    let note = "get the change after acpipe daemon restart";
    assert!(stderr(&added).contains(note), "{}", stderr(&added));
    daemon.run(&["daemon", "stop"], 0);
    let removed = daemon.run(&["agents", "remove", "mine"], 0);
    assert!(!stderr(&removed).contains(note), "{}", stderr(&removed));
}
