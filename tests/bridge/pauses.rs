//! acpipe is stopped for longer than a timeout (SIGSTOP, a frozen container): no timeout expires because of
//! that.

use crate::harness::server::{Framing, Server};
use crate::harness::steps::{end, say};
use crate::harness::{FAKE_AGENT, World, signal};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::time::Duration;

/// Longer than the timeouts of these tests.
const PAUSE: Duration = Duration::from_millis(1500);

/// Stops these processes for longer than the timeouts. The pause is what is tested, so it is a fixed time.
fn pause(pids: &[i32]) {
    for pid in pids {
        signal(*pid, Signal::STOP);
    }
    std::thread::sleep(PAUSE);
    for pid in pids {
        signal(*pid, Signal::CONT);
    }
}

/// Runs a turn across a pause. The agent continues to write while acpipe is stopped, or both are stopped.
fn check_turn_across_pause(args: &[&str], with_agent: bool) {
    let steps = [say("a"), json!({"sleep": 300}), say("b"), end("end_turn")];
    let mut server = Server::ready_with(args, &json!({"session/prompt": [steps]}));
    let mut pids = vec![server.pid()];
    if with_agent {
        let status = server.call("agent/status", &json!({}));
        let pid = status["processes"][0]["pid"].as_i64().unwrap();
        pids.push(i32::try_from(pid).unwrap());
    }
    let prompt = server.send_prompt("default", "go");
    server.await_chunk("default", |chunk| chunk["delta"] == "a");
    pause(&pids);
    let turn = server.turn(&prompt);
    assert_eq!(turn.summary["stopReason"], "end_turn", "{}", turn.summary);
    assert_eq!(turn.summary["text"], "ab");
    server.finish();
}

#[test]
fn system_pause_does_not_end_a_silent_turn() {
    check_turn_across_pause(&["--timeout", "prompt=1s"], false);
}

#[test]
fn system_pause_does_not_fail_a_start() {
    let initialized = json!({"reply": {"protocolVersion": 1}});
    let script = json!({"initialize": [[{"sleep": 300}, initialized]]});
    let mut server = Server::launch(
        World::new(),
        &["--timeout", "initialize=1s"],
        Framing::Lines,
        &[],
    );
    server.initialize();
    let agent = json!({"command": FAKE_AGENT, "args": [server.world.script(&script)]});
    let connect = server.send("agent/connect", &agent);
    server.await_agent_call("initialize");
    pause(&[server.pid()]);
    let status = server.result(&connect);
    assert_eq!(status["state"], "ready", "{status}");
    server.agent_states(&["starting", "ready"]);
    server.finish();
}

#[test]
fn timeout_applies_after_a_system_pause() {
    let steps = [
        say("a"),
        json!({"wait": "session/cancel"}),
        end("cancelled"),
    ];
    let mut server = Server::ready_with(
        &["--timeout", "prompt=500ms"],
        &json!({"session/prompt": [steps]}),
    );
    let prompt = server.send_prompt("default", "go");
    server.await_chunk("default", |chunk| chunk["delta"] == "a");
    pause(&[server.pid()]);
    let turn = server.turn(&prompt);
    assert_eq!(
        turn.summary["errors"][0]["kind"], "timeout",
        "{}",
        turn.summary
    );
    let waited: &Value = &turn.summary["errors"][0]["data"]["waitedMs"];
    assert_eq!(*waited, 500);
    server.finish();
}
