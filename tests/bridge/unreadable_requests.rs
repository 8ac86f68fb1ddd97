//! Permission requests with little information: the call by which they are judged, and tools that run without
//! a request.

use crate::harness::run::{Outcome, Run};
use crate::harness::server::Server;
use crate::harness::steps::{ask, end, say, tool, tool_change};
use crate::harness::{World, chosen_options};
use serde_json::{Value, json};
use std::fs;

const OPTIONS: &[(&str, &str)] = &[("y", "allow_once"), ("n", "reject_once")];

fn text(text: &str) -> Value {
    json!([{"type": "content", "content": {"type": "text", "text": text}}])
}

/// Steps of a permission request without kind and input, as Kimi sends it.
fn kimi(command: &str) -> Vec<Value> {
    let title = format!("Shell: {command}");
    let arguments = json!({ "command": command }).to_string();
    let asked = format!("Requesting approval to perform: Run command `{command}`");
    vec![
        tool(
            "t",
            &json!({"title": title, "status": "in_progress", "content": text(&arguments)}),
        ),
        ask(
            &json!({"toolCallId": "t", "title": title, "content": text(&asked)}),
            OPTIONS,
        ),
        tool_change("t", &json!({"status": "completed", "content": text("out")})),
    ]
}

/// Steps of a permission request about a call that does not exist, beside the real call, as `OpenHands` sends
/// it. The id of the false call is always the same.
fn request_for_unknown_call(id: &str, command: &str) -> Vec<Value> {
    vec![
        tool(
            id,
            &json!({"title": "run", "kind": "execute", "status": "pending", "rawInput": {"command": command}}),
        ),
        ask(
            &json!({"toolCallId": "confirmation", "title": "Confirm Agent Actions", "kind": "other", "status": "pending"}),
            OPTIONS,
        ),
        tool_change(id, &json!({"status": "completed"})),
    ]
}

fn turn(parts: &[Vec<Value>]) -> Value {
    let mut steps = parts.concat();
    steps.push(end("end_turn"));
    json!({"session/prompt": [steps]})
}

/// Runs an agent with this script; the log of its session is kept.
fn run(world: &World, args: &[&str], script: &Value) -> Outcome {
    let state = world.dir.join("state");
    let _ = fs::remove_dir_all(&state);
    let run = Run::new(args).env("ACPIPE_STATE_DIR", state.to_str().unwrap());
    run.script(script).arg("go").go().expect(0)
}

/// Returns the decisions in the log of the only session.
fn ledger(world: &World) -> Vec<Value> {
    let sessions = world.dir.join("state/sessions");
    let mut files = fs::read_dir(sessions)
        .unwrap()
        .flatten()
        .map(|file| file.path());
    let log = files.find(|path| path.extension().is_some_and(|e| e == "jsonl"));
    let log = fs::read_to_string(log.unwrap()).unwrap();
    let lines = log
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let decisions = lines.filter(|line| line["record"] == "decision");
    decisions.map(|line| line["decision"].clone()).collect()
}

#[test]
fn permission_request_shows_the_command() {
    let mut server = Server::start(&["--permissions", "ask"]);
    server.call(
        "initialize",
        &json!({"protocolVersion": 1, "capabilities": {"permissions": true}}),
    );
    server.connect(&turn(&[request_for_unknown_call("a", "echo hi")]));
    server.ensure("default");
    let prompt = server.send_prompt("default", "go");
    let (id, asked) = server.asked("permission/request");
    assert_eq!(asked["command"], "echo hi");
    assert_eq!(asked["standsFor"], json!(["a"]));
    server.reply(
        &id,
        &json!({"outcome": {"outcome": "selected", "optionId": "y"}}),
    );
    server.turn(&prompt);
    server.finish();
}

#[test]
fn unreadable_call_is_refused_if_a_tool_is_disallowed() {
    let question = ask(&json!({"toolCallId": "q", "title": "Go on?"}), OPTIONS);
    let script = turn(&[vec![question]]);
    let run = Run::new(&["run", "--disallow-tool", "WebFetch"]).script(&script);
    let outcome = run.arg("go").go().expect(0);
    assert_eq!(chosen_options(&outcome.log), ["n"]);
    let why = "disallowedTools \"WebFetch\", because the call cannot be read";
    assert!(outcome.stderr.contains(why), "{}", outcome.stderr);
    let outcome = Run::new(&["run"]).script(&script).arg("go").go().expect(0);
    assert_eq!(chosen_options(&outcome.log), ["y"]);
}

#[test]
fn facts_of_a_policy_answered_request_are_kept() {
    let world = World::new();
    let outcome = run(&world, &["run", "-o", "chunks"], &turn(&[kimi("echo hi")]));
    let said = "Requesting approval to perform: Run command `echo hi`";
    let want = json!({"title": "Shell: echo hi", "content": text(said)});
    let chunks = outcome.chunks();
    let shown: Vec<&Value> = chunks
        .iter()
        .filter(|c| c["type"] == "data-permission")
        .collect();
    assert!(!shown.is_empty());
    for chunk in shown {
        assert_eq!(chunk["data"]["toolCall"], want);
    }
    assert_eq!(ledger(&world)[0]["toolCall"], want);
}

/// Steps of a tool call without a permission request.
fn unrequested_tool(id: &str, call: &Value) -> Vec<Value> {
    vec![
        tool(id, call),
        tool_change(id, &json!({"status": "in_progress"})),
        tool_change(id, &json!({"status": "completed"})),
    ]
}

#[test]
fn unasked_tool_is_reported_if_the_policy_forbids_it() {
    let command = json!({"title": "rm x", "kind": "execute", "rawInput": {"command": "rm x"}});
    let read = json!({"title": "Read a", "kind": "read", "rawInput": {"path": "a"}});
    let todo = json!({"title": "todo", "kind": "think"});
    let script = turn(&[
        unrequested_tool("c", &command),
        unrequested_tool("r", &read),
        unrequested_tool("t", &todo),
        kimi("echo hi"),
        vec![say("done")],
    ]);
    for (args, format, told) in [
        (&["--disallow-tool", "Bash(rm:*)"][..], "text", &["c"][..]),
        (&["--disallow-tool", "Bash(rm:*)"], "json", &["c"]),
        (&["--permissions", "reads"], "text", &["c"]),
        (&["--permissions", "ask"], "text", &["c"]),
        (&["--permissions", "deny"], "text", &["c", "r"]),
        (&["--disallow-tool", "Bash(cp:*)"], "text", &[]),
        (&[], "text", &[]),
    ] {
        let world = World::new();
        let outcome = run(&world, &[&["run", "-o", format], args].concat(), &script);
        let lines = outcome.stderr.lines();
        let lines: Vec<&str> = lines
            .filter(|line| line.contains("without asking"))
            .collect();
        assert_eq!(lines.len(), told.len(), "{args:?}: {}", outcome.stderr);
        let ran: Vec<Value> = ledger(&world)
            .into_iter()
            .filter(|d| d["reason"].as_str().unwrap().contains("without asking"))
            .collect();
        let ids: Vec<&str> = ran
            .iter()
            .map(|d| d["toolCallId"].as_str().unwrap())
            .collect();
        assert_eq!(ids, told, "{args:?}");
        if let [first, ..] = ran.as_slice() {
            assert!(lines[0].contains("rm x"), "{lines:?}");
            assert_eq!(
                (&first["by"], &first["approved"]),
                (&json!("agent"), &json!(false))
            );
        }
    }
}

#[test]
fn tool_that_runs_outside_the_turn_is_reported_by_a_run() {
    let call = json!({"title": "rm x", "kind": "execute", "rawInput": {"command": "rm x"}});
    let modes = json!({"currentModeId": "code", "availableModes": [
        {"id": "code", "name": "Code"}, {"id": "plan", "name": "Plan"}]});
    let opened = [json!({"reply": {"sessionId": "s1", "modes": modes}})];
    // The prompt waits for the answer to the mode, so the tool surely runs before the turn.
    let set = [unrequested_tool("b", &call), vec![json!({"reply": {}})]].concat();
    let script = json!({"session/new": [opened], "session/set_mode": [set],
        "session/prompt": [[say("done"), end("end_turn")]]});
    for format in ["text", "json"] {
        let args = ["run", "--quiet", "-o", format, "--permissions", "deny"];
        let run = Run::new(&[&args[..], &["--mode", "plan"]].concat()).script(&script);
        let outcome = run.arg("go").go().expect(0);
        let lines = outcome.stderr.lines();
        let lines: Vec<&str> = lines
            .filter(|line| line.contains("ran a tool without asking"))
            .collect();
        assert_eq!(lines.len(), 1, "{}", outcome.stderr);
        let stdout = String::from_utf8_lossy(&outcome.stdout);
        assert!(!stdout.contains("rm x"), "{stdout}");
    }
}

/// A question to the user sent as a permission request, as Qwen Code does.
fn question_as_permission() -> Value {
    let questions = json!([{"question": "Which colour?", "header": "Colour", "multiSelect": false,
        "options": [{"label": "red", "description": "warm"}, {"label": "blue", "description": "cold"}]}]);
    let call = json!({"toolCallId": "q", "status": "pending", "title": "Ask user 1 question", "content": [],
        "locations": [], "kind": "think", "rawInput": {"questions": questions},
        "_meta": {"toolName": "ask_user_question", "qwenInteractionKind": "user_question", "qwenQuestions": questions}});
    ask(
        &call,
        &[("proceed_once", "allow_once"), ("cancel", "reject_once")],
    )
}

#[test]
fn policy_does_not_answer_a_question_sent_as_a_permission() {
    let script = turn(&[vec![question_as_permission()]]);
    for args in [
        &["run"][..],
        &["run", "--allow-tool", "*"],
        &["run", "--permissions", "reads"],
    ] {
        let outcome = Run::new(args).script(&script).arg("go").go().expect(0);
        assert_eq!(chosen_options(&outcome.log), ["cancel"], "{args:?}");
    }
}

#[test]
fn question_sent_as_a_permission_is_answered_by_the_client() {
    let mut server = Server::start(&[]);
    server.call(
        "initialize",
        &json!({"protocolVersion": 1, "capabilities": {"questions": true}}),
    );
    server.connect(&turn(&[vec![question_as_permission()]]));
    server.ensure("default");
    let prompt = server.send_prompt("default", "go");
    let (id, asked) = server.asked("question/ask");
    assert_eq!(
        (&asked["kind"], &asked["message"]),
        (&json!("form"), &json!("Which colour?"))
    );
    server.reply(
        &id,
        &json!({"action": "accept", "content": {"question_0": "blue"}}),
    );
    server.turn(&prompt);
    let log = server.finish().log;
    let results: Vec<&Value> = log.iter().filter_map(|m| m.get("result")).collect();
    let want = json!({"outcome": {"outcome": "selected", "optionId": "proceed_once"}, "answers": {"0": "blue"}});
    assert_eq!(results, [&want]);
}

#[test]
fn missing_terminal_is_reported_once() {
    let script = turn(&[kimi("echo hi"), kimi("echo ho")]);
    let run = Run::new(&["run", "--permissions", "ask"]).script(&script);
    let outcome = run.arg("go").go().expect(0);
    assert_eq!(chosen_options(&outcome.log), ["n", "n"]);
    let said = outcome
        .stderr
        .matches("cannot ask for permission without a terminal")
        .count();
    assert_eq!(said, 1, "{}", outcome.stderr);
}
