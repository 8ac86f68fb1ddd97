//! Agents by name: built-in agents, their package runners, and agents that a client registers.

use crate::harness::server::{Framing, Server};
use crate::harness::steps::{end, say};
use crate::harness::{FAKE_AGENT, World, calls};
use serde_json::{Value, json};

/// Returns a world in whose `bin` directory these programs start the fake agent, and the `PATH` of that
/// directory alone with the shell.
fn with_programs(programs: &[&str]) -> (World, String) {
    let world = World::new();
    let script = world.script(&json!({"session/prompt": [[say("hi"), end("end_turn")]]}));
    std::fs::create_dir(world.dir.join("bin")).unwrap();
    for program in programs {
        let text = format!(
            "#!/bin/sh\necho \"$0 $* in $PWD\" >> '{}/started'\nexec '{FAKE_AGENT}' '{script}'\n",
            world.dir.display()
        );
        world.executable(&format!("bin/{program}"), &text);
    }
    let path = world.dir.join("bin").to_str().unwrap().to_owned();
    (world, path)
}

/// Starts acpipe with this `PATH`, and claims the notifications of agents' states.
fn serve(world: World, path: &str) -> Server {
    let home = world.dir.to_str().unwrap().to_owned();
    let env = [
        ("PATH", path),
        ("HOME", &home),
        ("ACPIPE_NO_PATH_PROBE", "1"),
    ];
    let mut server = Server::launch(world, &[], Framing::Lines, &env);
    server.waive("agent/state");
    server.initialize();
    server
}

fn started(server: &Server) -> String {
    std::fs::read_to_string(server.world.dir.join("started")).unwrap_or_default()
}

fn ensure(server: &mut Server, session: &str, agent: &str) -> Value {
    server.call(
        "session/ensure",
        &json!({"sessionId": session, "agent": agent}),
    )
}

/// Returns the entry of an agent in a list.
fn entry<'a>(list: &'a Value, name: &str) -> &'a Value {
    let agents = list["agents"].as_array().unwrap();
    let found = agents.iter().find(|agent| agent["agent"] == name);
    found.unwrap_or_else(|| panic!("{name} is not listed: {list}"))
}

#[test]
fn built_in_agent_is_started_by_its_name() {
    let (world, path) = with_programs(&["opencode"]);
    let mut server = serve(world, &path);
    let list = server.call("agent/list", &json!({"builtIn": true}));
    let found = entry(&list, "opencode");
    assert_eq!(
        (&found["installed"], &found["source"], &found["state"]),
        (&json!(true), &json!("builtIn"), &json!("disconnected"))
    );
    assert_eq!(found["program"]["foundBy"], "path");
    let missing = entry(&list, "gemini");
    assert_eq!(
        (&missing["installed"], &missing["program"]),
        (&json!(false), &Value::Null)
    );

    let session = ensure(&mut server, "s", "opencode");
    assert_eq!(session["agentName"], "opencode");
    let id = server.send_prompt("s", "hello");
    assert_eq!(server.turn(&id).summary["text"], "hi");
    assert!(
        started(&server).contains("opencode acp in "),
        "{}",
        started(&server)
    );
    // Only agents that were named are listed by default.
    let list = server.call("agent/list", &json!({}));
    assert_eq!(list["agents"].as_array().unwrap().len(), 2);
    let found = entry(&list, "opencode");
    assert_eq!(
        (&found["sessions"], &found["state"]),
        (&json!(1), &json!("ready"))
    );
    assert!(found["capabilities"].is_object(), "{found}");
    server.finish();
}

#[test]
fn package_runner_starts_an_agent_that_is_not_installed() {
    let (world, path) = with_programs(&["npx"]);
    let mut server = serve(world, &path);
    let details = server.call("agent/get", &json!({"agent": "codex"}));
    assert_eq!(
        (&details["installed"], &details["program"]["foundBy"]),
        (&json!(false), &json!("packageRunner"))
    );
    assert!(details["install"].as_str().unwrap().contains("codex-acp"));
    ensure(&mut server, "s", "codex");
    let status = server.call("agent/status", &json!({"agent": "codex"}));
    assert_eq!(status["program"]["foundBy"], "packageRunner");
    let line = started(&server);
    assert!(
        line.contains("npx -y @agentclientprotocol/codex-acp"),
        "{line}"
    );
    // In a project, npx would prefer the project's own packages.
    let home = format!("in {}\n", server.world.dir.display());
    assert!(line.ends_with(&home), "{line}");
    server.finish();
}

#[test]
fn details_have_the_options_with_which_a_client_connected_the_agent() {
    let (world, path) = with_programs(&["opencode"]);
    let mut server = serve(world, &path);
    let connect = json!({
        "agent": "opencode", "env": {"A": "1"}, "options": {"mode": "plan"}, "childPerSession": true,
    });
    server.call("agent/connect", &connect);
    let details = server.call("agent/get", &json!({"agent": "opencode"}));
    assert_eq!(details["options"], json!({"mode": "plan"}));
    assert_eq!(details["variables"], json!(["A"]));
    assert_eq!(details["childPerSession"], true);
    server.finish();
}

#[test]
fn alias_is_the_agent_that_it_stands_for() {
    let (world, path) = with_programs(&["codex-acp"]);
    let mut server = serve(world, &path);
    for name in ["codex-acp", "codex"] {
        assert_eq!(ensure(&mut server, name, name)["agentName"], "codex");
    }
    assert_eq!(started(&server).lines().count(), 1);
    let error = server.call_error("agent/status", &json!({"agent": "opencod"}));
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("\"opencode\""), "{message}");
    server.finish();
}

#[test]
fn registered_agent_is_started_by_its_name_with_its_instructions() {
    let mut server = Server::initialized(&[]);
    server.waive("agent/state");
    let turn = json!([say("hi"), end("end_turn")]);
    let script = server
        .world
        .script(&json!({"session/prompt": [turn, turn]}));
    let log = server.world.dir.join("agent.log");
    let definition = json!({
        "agent": "reviewer", "command": FAKE_AGENT, "args": [script], "env": {"FAKE_AGENT_LOG": log},
        "description": "Reviews changes", "tags": ["review"], "instructions": "Only review."});
    let details = server.call("agent/register", &definition);
    assert_eq!(
        (
            &details["agent"],
            &details["description"],
            &details["tags"],
            &details["instructions"]
        ),
        (
            &json!("reviewer"),
            &json!("Reviews changes"),
            &json!(["review"]),
            &json!("Only review.")
        )
    );
    assert_eq!(details["variables"], json!(["FAKE_AGENT_LOG"]));
    assert_eq!(details["installed"], true);
    assert!(
        !details.to_string().contains("agent.log"),
        "values are not shown"
    );
    for name in ["reviewer", "codex-acp", "default", "", "a b"] {
        let mut other = definition.clone();
        other["agent"] = json!(name);
        let error = server.call_error("agent/register", &other);
        let kind = if ["reviewer", "codex-acp"].contains(&name) {
            "duplicateAgent"
        } else {
            "invalidParams"
        };
        assert_eq!(error["data"]["kind"], kind, "{name}: {error}");
    }

    let session = ensure(&mut server, "s", "reviewer");
    assert_eq!(session["recovery"]["instructionsInPrompt"], true);
    for text in ["one", "two"] {
        let id = server.send_prompt("s", text);
        server.turn(&id);
    }
    let log = server.world.log();
    let prompts = calls(&log, "session/prompt");
    let texts: Vec<usize> = prompts
        .iter()
        .map(|call| call["params"]["prompt"].as_array().unwrap().len())
        .collect();
    assert_eq!(texts, [2, 1], "the instructions are sent once");
    let first = prompts[0]["params"]["prompt"][0]["text"].as_str().unwrap();
    assert!(first.contains("Only review."), "{first}");
    server.finish();
}

#[test]
fn client_cannot_change_the_command_of_a_defined_agent() {
    let (world, path) = with_programs(&["opencode"]);
    let mut server = serve(world, &path);
    server.call("agent/get", &json!({"agent": "opencode"}));
    let error = server.call_error(
        "agent/connect",
        &json!({"agent": "opencode", "command": FAKE_AGENT}),
    );
    assert_eq!(error["data"]["kind"], "duplicateAgent");
    server.finish();
}

#[test]
fn run_reports_that_a_package_runner_started_the_agent() {
    let (world, path) = with_programs(&["npx"]);
    let home = world.dir.to_str().unwrap();
    let mut run = world.acpipe(&["run", "--agent", "codex", "hello"]);
    let run = run
        .env("PATH", &path)
        .env("HOME", home)
        .stdin(std::process::Stdio::null());
    let output = run.output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(
        (output.stdout, output.status.code()),
        (b"hi\n".to_vec(), Some(0)),
        "{stderr}"
    );
    assert!(stderr.contains("codex-acp is not installed"), "{stderr}");
}
