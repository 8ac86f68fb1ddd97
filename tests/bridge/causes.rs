//! Causes in errors: the agent's stderr at its exit, suggestions for a wrong command line, and what a run
//! learns during its turn.

use crate::harness::run::{Outcome, Run};
use crate::harness::steps::{end, say};
use crate::harness::{FAKE_AGENT, World, calls};
use serde_json::{Value, json};
use std::fs::File;
use std::path::Path;
use std::process::Stdio;

/// Runs acpipe with an agent that performs these steps at its start.
fn starting(steps: &Value) -> Outcome {
    Run::new(&["run", "hi"])
        .script(&json!({"start": steps}))
        .go()
}

#[test]
fn start_error_shows_the_cause_and_the_end_of_stderr() {
    let lines = [
        "node:internal/modules/cjs/loader:1386",
        "  throw err;",
        "  ^",
        "",
        "Error: Cannot find module '/srv/agent.js'",
        "    at Function._resolveFilename (node:internal/modules/cjs/loader:1383:15)",
        "",
        "Node.js v22.18.0",
    ];
    let mut steps: Vec<Value> = lines.iter().map(|line| json!({"stderr": line})).collect();
    steps.push(json!({"exit": 1}));
    let outcome = starting(&json!(steps)).expect(126);
    let mut shown = outcome.stderr.lines();
    let message = shown.next().unwrap();
    assert!(
        message.contains("Error: Cannot find module '/srv/agent.js'"),
        "{message}"
    );
    let flag = shown.next().unwrap();
    assert!(
        flag.contains("--log-level warn,acpipe::agent_stderr=debug"),
        "{flag}"
    );
    let rest: Vec<&str> = shown.collect();
    assert_eq!(rest.len(), 6, "{rest:?}");
    assert!(rest[5].ends_with("| Node.js v22.18.0"), "{rest:?}");
    // With the agent's stderr in the log, the error does not repeat it.
    let steps = json!([{"stderr": "one"}, {"stderr": "error: two"}, {"exit": 1}]);
    let run = Run::new(&[
        "run",
        "--log-level",
        "warn,acpipe::agent_stderr=debug",
        "hi",
    ]);
    let all = run.script(&json!({"start": steps})).go().expect(126);
    for line in ["one", "error: two"] {
        let logged = all.stderr.lines().any(|logged| logged.contains(line));
        assert!(logged, "{}", all.stderr);
    }
    assert!(!all.stderr.contains("last lines"), "{}", all.stderr);
    // A single line is already part of the message.
    let one = starting(&json!([{"stderr": "fatal: no config"}, {"exit": 3}])).expect(126);
    assert_eq!(one.stderr.lines().count(), 1, "{}", one.stderr);
}

#[test]
fn start_error_shows_text_on_stdout() {
    let steps = json!([{"line": "no longer maintained"}, {"line": "install another"}, {"exit": 0}]);
    let outcome = starting(&steps).expect(126);
    let error = "acpipe: the agent exited before it was ready: exit code 0; end of stdout: no longer maintained | install another\n";
    let lines = "that are no messages:\n  | no longer maintained\n  | install another\n";
    for shown in [error, lines] {
        assert!(outcome.stderr.contains(shown), "{}", outcome.stderr);
    }
}

#[test]
fn control_characters_of_an_agent_do_not_reach_the_terminal() {
    let evil = "\u{1b}[31merror: red\u{1b}[0m\u{1b}]0;title\u{7}\u{8}";
    let steps =
        json!([{"stderr": evil}, {"stderr": evil}, {"line": format!("stray {evil}")}, {"exit": 1}]);
    let outcome = starting(&steps).expect(126);
    assert!(outcome.stderr.contains("error: red"), "{}", outcome.stderr);
    let turn = json!([
        {"line": format!("another stray {evil}")},
        {"error": {"code": -32603, "message": format!("no {evil}"), "data": {"details": evil}}},
    ]);
    let run = Run::new(&["run", "hi"])
        .script(&json!({"session/prompt": [turn]}))
        .go()
        .expect(1);
    assert!(run.stderr.contains("no error: red"), "{}", run.stderr);
    for stderr in [outcome.stderr, run.stderr] {
        let steers = stderr.contains(['\u{1b}', '\u{7}', '\u{8}']);
        assert!(!steers, "{stderr:?}");
    }
}

#[test]
fn start_error_names_a_program_that_echoes_its_input() {
    let outcome = Run::new(&["run", "hi"]).agent(&["cat"]).go().expect(76);
    let said = "`cat` echoes its input: it is not an ACP agent";
    assert!(outcome.stderr.contains(said), "{}", outcome.stderr);
    assert!(
        !outcome.stderr.contains("does not support"),
        "{}",
        outcome.stderr
    );
}

#[test]
fn start_error_suggests_a_fix_for_silent_or_quoted_commands() {
    let outcome = Run::new(&["run", "hi"]).agent(&["true"]).go().expect(126);
    assert!(outcome.stderr.contains("--acp"), "{}", outcome.stderr);
    let quoted = Run::new(&["run", "hi"]).agent(&["no-such-agent acp"]);
    let outcome = quoted.go().expect(127);
    assert!(
        outcome
            .stderr
            .contains("remove the quotes (-- no-such-agent acp)"),
        "{}",
        outcome.stderr
    );
}

#[test]
fn error_after_a_partial_line_starts_on_a_new_line() {
    let world = World::new();
    let script = world.script(&json!({"session/prompt": [[say("half a li"), {"exit": 3}]]}));
    let path = world.dir.join("output");
    let file = File::create(&path).unwrap();
    let mut command = world.acpipe(&["run", "hi", "--", FAKE_AGENT, &script]);
    command
        .stdin(Stdio::null())
        .stderr(file.try_clone().unwrap())
        .stdout(file);
    assert_eq!(command.status().unwrap().code(), Some(1));
    let text = std::fs::read_to_string(path).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "half a li", "{text}");
    assert!(
        lines[1].starts_with("acpipe: the agent exited unexpectedly"),
        "{text}"
    );
    assert_eq!(lines.len(), 2, "{text}");
}

#[test]
fn run_reports_that_the_agent_lost_the_session() {
    let world = World::new();
    let state = world.dir.join("state");
    // The first process answers. A later one has lost its sessions, which its first prompt reveals.
    let answers = json!([say("answer"), end("end_turn"), {"hang": true}]);
    let gone = json!({"error": {"code": -32002, "message": "no such session"}});
    let path = world.script(&json!({
        "initialize": [[{"reply": {"protocolVersion": 1, "agentCapabilities": {
            "sessionCapabilities": {"resume": {}}}}}]],
        "session/resume": [[{"reply": {}}]],
        "session/prompt": [
            [{"once": {"mark": world.dir.join("answered"), "steps": answers}}, gone],
            [say("again"), end("end_turn")],
        ],
    }));
    let go = |text: &str| run_in_session(&state, &path, text);
    go("one");
    let second = go("two");
    assert!(second.stderr.contains("continuing"), "{}", second.stderr);
    assert!(
        second
            .stderr
            .contains("restarted without the agent's memory (resume:"),
        "{}",
        second.stderr
    );
    assert_eq!(calls(&second.log, "session/new").len(), 1);
}

/// Runs a prompt in the session "mine" of a state directory, with the fake agent.
fn run_in_session(state: &Path, script: &str, text: &str) -> Outcome {
    Run::new(&["run", "--session", "mine", text])
        .env("ACPIPE_STATE_DIR", state.to_str().unwrap())
        .agent(&[FAKE_AGENT, script])
        .go()
        .expect(0)
}

#[test]
fn receipt_names_strategies_the_agent_does_not_offer() {
    let world = World::new();
    let path = world.script(&json!({"session/prompt": [[say("answer"), end("end_turn")]]}));
    let state = world.dir.join("state");
    let go = |text: &str| run_in_session(&state, &path, text);
    go("one");
    let second = go("two").stderr;
    let named = "(resume: the agent does not support it; load: the agent does not support it)";
    assert!(second.contains(named), "{second}");
}
