//! The total limit of a call with the real clock: each face, with an agent that never answers one of its calls.

use crate::harness::run::Run;
use crate::harness::server::Server;
use crate::harness::steps::{end, say};
use crate::harness::{FAKE_AGENT, World};
use serde_json::{Value, json};

/// Short timeouts for stopping agents that do not exit by themselves.
const SHORT: [&str; 6] = [
    "--timeout",
    "close=100ms",
    "--timeout",
    "terminate=100ms",
    "--timeout",
    "cancel=100ms",
];

/// Script of an agent that never answers this method.
fn hangs_at(method: &str) -> Value {
    let mut script = json!({
        "initialize": [[{"reply": {"protocolVersion": 1, "agentCapabilities": {"loadSession": true}}}]],
        "session/prompt": [[say("answer"), end("end_turn")]],
    });
    script[method] = json!([[{"hang": true}]]);
    script
}

/// Methods with the stage that the error names.
const STAGES: [(&str, &str); 3] = [
    ("initialize", "initialize"),
    ("session/new", "open"),
    ("session/prompt", "turn"),
];

#[test]
fn run_ends_at_its_limit_whatever_the_agent_does_not_answer() {
    for (method, stage) in STAGES {
        let args = [
            &["run", "-q", "-o", "json", "--max-time", "500ms", "hello"],
            &SHORT[..],
        ]
        .concat();
        let ended = Run::new(&args).script(&hangs_at(method)).go().expect(124);
        let error = ended.json()["errors"][0].clone();
        assert_eq!(error["kind"], "timeout", "{method}: {error}");
        assert_eq!(error["data"]["stage"], stage, "{method}: {error}");
        assert!(!ended.stderr.is_empty(), "{method}: silent");
    }
}

#[test]
fn run_ends_at_its_limit_while_its_stdin_stays_open() {
    for prompt in ["hello", "-"] {
        let args = ["run", "-q", "-o", "json", "--max-time", "300ms", prompt];
        let mut run = Run::new(&args).script(&json!({})).keep_stdin().start();
        run.write("part");
        run.await_exit();
        let ended = run.end().expect(124);
        let error = ended.json()["errors"][0].clone();
        assert_eq!(error["kind"], "timeout", "{error}");
        let data = &error["data"];
        assert_eq!(
            (&data["stage"], &data["waitedMs"]),
            (&json!("readPrompt"), &json!(300))
        );
        let words = "used up its time of 300 ms while reading the prompt from stdin";
        assert!(ended.stderr.contains(words), "{}", ended.stderr);
        assert!(ended.log.is_empty(), "the agent was started");
    }
}

#[test]
fn run_ends_at_its_limit_while_its_stdout_is_not_read() {
    // The first answer leaves acpipe's queue, but not the pipe; the agent waits with the second.
    for pieces in [2, 40] {
        let piece = say(&"x".repeat(50_000));
        let steps = [&vec![piece; pieces][..], &[end("end_turn")]].concat();
        let args = [&["run", "--max-time", "1s", "hello"], &SHORT[..]].concat();
        let script = json!({ "session/prompt": [steps] });
        let mut run = Run::new(&args).script(&script).start();
        run.await_exit();
        let ended = run.end().expect(124);
        let words = "used up its time of 1 s while writing the answer to stdout";
        assert!(ended.stderr.contains(words), "{pieces}: {}", ended.stderr);
    }
}

#[test]
fn run_ends_at_its_limit_while_a_session_loads() {
    let world = World::new();
    let script = world.script(&hangs_at("none"));
    let agent = json!({"command": FAKE_AGENT, "args": [script]});
    let mut s = Server::launch(world, &SHORT, crate::harness::server::Framing::Lines, &[]);
    s.initialize();
    s.call("agent/connect", &agent);
    s.agent_states(&["starting", "ready"]);
    s.ensure("default");
    s.prompt("one");
    s.call("agent/disconnect", &json!({}));
    std::fs::write(&script, hangs_at("session/load").to_string()).unwrap();
    s.call("agent/connect", &agent);
    s.agent_states(&["stopping", "disconnected", "starting", "ready"]);
    let error = s.call_error(
        "session/ensure",
        &json!({"sessionId": "default", "timeoutMs": 300}),
    );
    assert_eq!(error["data"]["stage"], "open", "{error}");
    let message = json!({"message": "two", "timeoutMs": 300});
    let error = s.call_error("session/prompt", &message);
    assert_eq!(error["data"]["stage"], "open", "{error}");
}

#[test]
fn execute_ends_at_its_limit_whatever_the_agent_does_not_answer() {
    for (method, stage) in STAGES {
        let world = World::new();
        let script = world.script(&hangs_at(method));
        let args = [&SHORT[..], &["--", FAKE_AGENT, &script]].concat();
        let mut s = Server::launch(world, &args, crate::harness::server::Framing::Lines, &[]);
        s.initialize();
        let call = json!({"message": "hello", "timeoutMs": 500});
        if stage == "turn" {
            let id = s.send("execute", &call);
            let summary = s.turn(&id).summary;
            assert_eq!(summary["errors"][0]["data"]["stage"], stage, "{summary}");
        } else {
            let error = s.call_error("execute", &call);
            assert_eq!(error["data"]["stage"], stage, "{error}");
        }
        let started = ["starting", "ready"];
        s.agent_states(&started[..if stage == "initialize" { 1 } else { 2 }]);
    }
}
