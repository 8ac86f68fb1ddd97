//! acpipe is stopped for longer than a timeout (SIGSTOP, a frozen container): no timeout expires because of
//! that.

use crate::harness::server::Server;
use crate::harness::signal;
use crate::harness::steps::{end, say};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::time::Duration;

/// Longer than the timeouts of these tests.
const PAUSE: Duration = Duration::from_millis(1500);

/// Stops acpipe for longer than the timeouts. The pause is what is tested, so it is a fixed time.
fn pause(server: &Server) {
    signal(server.pid(), Signal::STOP);
    std::thread::sleep(PAUSE);
    signal(server.pid(), Signal::CONT);
}

#[test]
fn system_pause_does_not_end_a_silent_turn() {
    let steps = [say("a"), json!({"sleep": 300}), say("b"), end("end_turn")];
    let script = json!({"session/prompt": [steps]});
    let mut server = Server::ready_with(&["--timeout", "prompt=1s"], &script);
    let prompt = server.send_prompt("default", "go");
    server.await_chunk("default", |chunk| chunk["delta"] == "a");
    pause(&server);
    let turn = server.turn(&prompt);
    assert_eq!(turn.summary["stopReason"], "end_turn", "{}", turn.summary);
    assert_eq!(turn.summary["text"], "ab");
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
    pause(&server);
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
