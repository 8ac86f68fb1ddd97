//! Agents written with the library: as a program, and inside a program that speaks the neutral protocol.

use crate::docs::moving_from::has;
use crate::harness::World;
use crate::harness::server::{Framing, Server};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Builds an example and returns its path.
fn example(name: &str) -> PathBuf {
    let mut build = Command::new(env!("CARGO"));
    build
        .args(["build", "--locked", "--quiet", "--example", name])
        .current_dir(env!("CARGO_MANIFEST_DIR"));
    // The variables of the running test would have ring built again, and all crates that need it.
    let of_test = |name: &String| {
        let begins = ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_CFG_", "OUT_DIR"];
        begins.iter().any(|begin| name.starts_with(begin))
    };
    for name in std::env::vars().map(|(name, _)| name).filter(of_test) {
        build.env_remove(name);
    }
    assert!(build.status().unwrap().success(), "{name} does not build");
    // Beside the program under test, which cargo has built with the same settings.
    let program = Path::new(crate::harness::ACPIPE);
    program.with_file_name("examples").join(name)
}

#[test]
fn example_agent_runs_as_a_program() {
    let agent = example("agent");
    check_example(&[agent.to_str().unwrap()]);
}

#[test]
fn example_agent_in_javascript_runs_as_a_program() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/agent.mjs");
    if has("node", "examples/agent.mjs") {
        check_example(&["node", file.to_str().unwrap()]);
    }
}

/// Checks the answers of an example agent.
#[track_caller]
fn check_example(agent: &[&str]) {
    let world = World::new();
    for (mode, answer) in [
        ("approve", "Your prompt has 3 words.\n"),
        ("deny", "I may not count your words.\n"),
    ] {
        let args = [
            "run",
            "--permissions",
            mode,
            "--persist",
            "never",
            "one two three",
            "--",
        ];
        let args = [&args[..], agent].concat();
        let output = world.acpipe(&args).stdin(Stdio::null()).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(String::from_utf8_lossy(&output.stdout), answer, "{stderr}");
        assert!(output.status.success(), "{stderr}");
    }
    assert_eq!(world.leak(), None);
}

#[test]
fn example_agent_stands_in_the_readme() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let example = fs::read_to_string(root.join("examples/agent.rs")).unwrap();
    let (_, code) = example.split_once("\n\n").unwrap();
    let readme = fs::read_to_string(root.join("README.md")).unwrap();
    let block = format!("```rust\n{code}```\n");
    assert!(
        readme.contains(&block),
        "README.md does not show examples/agent.rs"
    );
}

/// Starts a program with an agent of its own, which speaks the neutral protocol.
fn app(world: World, args: &[&str]) -> Server {
    let mut command = world.command(example("scripted_agent").to_str().unwrap());
    command.args(args).current_dir(&world.dir);
    let mut app = Server::of(world, command, Framing::Lines);
    app.waive("agent/state");
    app.allow_gaps("default");
    app.initialize();
    app
}

#[test]
fn agent_inside_a_program_plays_a_thousand_turns() {
    let mut app = app(World::new(), &["--persist", "never"]);
    let agents = app.call("agent/list", &json!({}));
    let own = &agents["agents"][0];
    let source = (&own["agent"], &own["source"]);
    assert_eq!(source, (&json!("scripted"), &json!("inProcess")));
    let program = (&own["installed"], &own["program"]);
    assert_eq!(program, (&json!(true), &Value::Null));
    app.ensure("default");
    for number in 0..1000 {
        let summary = app.prompt("hello").summary;
        assert_eq!(summary["text"], "Hello!", "{number}: {summary}");
    }
    // The only process is the program itself.
    assert_eq!(app.world.alive().len(), 1, "{:?}", app.world.alive());
    app.finish();
}

#[test]
fn failures_of_an_agent_inside_a_program_reach_its_client() {
    let mut first = app(World::new(), &[]);
    first.ensure("default");
    let failed = first.prompt("fail").summary;
    let outcome = (&failed["text"], &failed["isError"]);
    assert_eq!(outcome, (&json!("Half an answer"), &json!(true)));
    let message = failed["errors"][0]["message"].as_str().unwrap();
    assert!(message.contains("out of cheese"), "{failed}");
    let crashed = first.prompt("crash").summary;
    let error = &crashed["errors"][0];
    assert_eq!(error["kind"], "agentExited", "{crashed}");
    assert!(error.to_string().contains("disk on fire"), "{crashed}");
    assert_eq!(crashed["text"], "Half an answer");
    // The next prompt makes a new agent, which resumes the session.
    assert_eq!(first.prompt("hello").summary["text"], "Hello!");
    let id = first.send_prompt("default", "wait");
    first.await_chunk("default", |chunk| chunk["type"] == "text-delta");
    first.call("session/cancel", &json!({}));
    assert_eq!(first.turn(&id).summary["stopReason"], "cancelled");
    // The panic of the agent is on stderr.
    first.close_stdin();
    assert!(first.ended().success());
    // A second program continues the stored session with its own agent.
    let world = std::mem::replace(&mut first.world, World::new());
    let mut second = app(world, &["--permissions", "deny"]);
    assert_eq!(second.ensure("default")["recovery"]["memory"], "kept");
    let refused = second.prompt("list the files").summary;
    assert_eq!(refused["text"], "One file: a.txt", "{refused}");
    second.finish();
}
