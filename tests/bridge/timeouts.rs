//! Timeouts with the real clock: their errors, and the wait notices before them.

use crate::harness::run::Run;
use crate::harness::server::Server;
use crate::harness::steps::{end, say};
use crate::harness::{FAKE_AGENT, claude, signal};
use rustix::process::Signal;
use serde_json::{Value, json};

/// Short timeouts for stopping agents that do not exit by themselves.
const SHORT: [&str; 4] = ["--timeout", "close=100ms", "--timeout", "terminate=100ms"];

fn with(timeout: &'static str) -> Vec<&'static str> {
    [&SHORT[..], &["--timeout", timeout]].concat()
}

#[test]
fn unanswered_initialize_times_out() {
    let mut s = Server::initialized(&with("initialize=300ms"));
    let script = json!({"start": [{"stderr": "loading"}, {"stderr": "no key"}],
        "initialize": [[{"hang": true}]]});
    let script = s.world.script(&script);
    let agent = json!({"command": FAKE_AGENT, "args": [script]});
    let error = s.call_error("agent/connect", &agent);
    assert_eq!(error["code"], -32014);
    let data = &error["data"];
    assert_eq!(data["kind"], "timeout");
    assert_eq!(data["stage"], "initialize");
    assert_eq!(data["waitedMs"], 300);
    assert_eq!(data["lastHeard"], Value::Null);
    assert_eq!(data["stderr"], "loading\nno key\n");
    let message = error["message"].as_str().unwrap();
    for words in ["initialize within 300 ms", "no activity", "no key"] {
        assert!(message.contains(words), "{message}");
    }
    s.agent_states(&["starting", "stopping", "disconnected"]);
}

#[test]
fn unanswered_opening_times_out() {
    let script =
        json!({"session/new": [[{"stderr": "no disk"}, {"wait": "nothing"}], [{"default": true}]]});
    let mut s = Server::initialized(&with("open=300ms"));
    s.connect(&script);
    let error = s.call_error("session/ensure", &json!({}));
    assert_eq!(error["data"]["stage"], "open");
    assert_eq!(error["data"]["waitedMs"], 300);
    assert_eq!(error["data"]["stderr"], "no disk\n");
    // Another session can be opened.
    s.ensure("b");
}

#[test]
fn idle_timeout_cancels_the_turn_and_keeps_the_session() {
    let run = [
        say("so far"),
        json!({"stderr": "stuck"}),
        json!({"wait": "session/cancel"}),
        end("end_turn"),
    ];
    let script = json!({"session/prompt": [run, [{"default": true}]]});
    let mut s = Server::ready_with(&with("prompt=300ms"), &script);
    let turn = s.prompt("go");
    let summary = &turn.summary;
    assert_eq!(summary["text"], "so far");
    assert_eq!(summary["isError"], true);
    assert_eq!(summary["errorReason"], "timeout exceeded");
    let error = &summary["errors"][0];
    assert_eq!(error["kind"], "timeout");
    assert_eq!(error["data"]["stage"], "prompt");
    assert_eq!(error["data"]["lastHeard"]["what"], "message");
    assert_eq!(error["data"]["stderr"], "stuck\n");
    assert_eq!(turn.last()["type"], "error");
    assert_eq!(s.prompt("again").summary["text"], "again");
}

#[test]
fn wait_notice_names_an_agent_that_does_not_read() {
    let mut s = Server::ready(&json!({}));
    let pid = s.call("agent/status", &json!({}))["pid"].as_i64().unwrap();
    let pid = i32::try_from(pid).unwrap();
    signal(pid, Signal::STOP);
    // More than a pipe holds.
    let servers = json!([{"name": "x".repeat(300_000), "command": "x"}]);
    let action = json!({"sessionId": "b", "mcpServers": servers});
    let id = s.send("session/create", &action);
    assert_eq!(s.next_wait_notice()["party"], "agentInput");
    signal(pid, Signal::CONT);
    assert_eq!(s.result(&id)["sessionId"], "b");
    assert_eq!(
        s.call("session/get", &json!({"sessionId": "b"}))["waitingFor"],
        Value::Null
    );
}

#[test]
fn opening_timeout_includes_the_stderr_of_the_claude_process() {
    let script = json!({"start": [{"stderr": "no trust"}, {"hang": true}]});
    let mut s = claude::server(&with("open=500ms"), &script);
    s.connect_claude(&json!({}));
    let error = s.call_error("session/ensure", &json!({}));
    assert_eq!(error["data"]["stage"], "open", "{error}");
    assert_eq!(error["data"]["stderr"], "no trust\n");
}

#[test]
fn run_reports_a_slow_start_and_its_end() {
    let script = json!({"initialize": [[{"stderr": "downloading"}, {"hang": true}]]});
    let run = |args: &[&str]| {
        let args = [&["run", "-o", "json", "hello"], args, &SHORT[..]].concat();
        Run::new(&args).script(&script).go()
    };
    let told = run(&["--timeout", "initialize=2300ms"]).expect(124);
    for words in [
        "waiting for the agent's response to initialize, 2 s",
        "downloading",
        "did not answer initialize within 2 s",
    ] {
        assert!(told.stderr.contains(words), "{}", told.stderr);
    }
    assert_eq!(told.json()["errors"][0]["data"]["stage"], "initialize");
    let quiet = run(&["--quiet", "--timeout", "initialize=2300ms"]).expect(124);
    assert!(!quiet.stderr.contains("waiting for"), "{}", quiet.stderr);
}
