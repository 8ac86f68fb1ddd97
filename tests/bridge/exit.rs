//! Exits of agents, regular or not: no output is lost and no process is left behind.

use crate::harness::calls;
use crate::harness::server::Server;
use crate::harness::steps::{end, say, tool, until_cancelled};
use serde_json::json;
use std::time::{Duration, Instant};

#[test]
fn crash_in_a_turn_delivers_the_text_then_the_error() {
    let mut s = Server::ready(&json!({"session/prompt": [[
        {"stderr": "warming up"},
        say("partial "),
        tool("t", &json!({"name": "bash", "rawInput": 1})),
        say("text"),
        {"stderr": "panic: out of luck"},
        {"exit": 7},
    ]]}));
    s.ensure("idle");
    let turn = s.prompt("go");
    let error = &turn.summary["errors"][0];
    assert_eq!(error["kind"], "agentExited");
    assert_eq!(error["data"]["exitCode"], 7);
    assert_eq!(error["data"]["stderr"], "warming up\npanic: out of luck\n");
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("panic: out of luck"), "{message}");
    assert_eq!(turn.summary["text"], "partial text");
    assert_eq!(
        turn.summary["errorReason"],
        "subprocess terminated unexpectedly"
    );
    assert_eq!(turn.last(), &json!({"type": "error", "errorText": message}));
    assert_eq!(turn.one("tool-output-error")["toolCallId"], "t");
    let state = s.notification("agent/state");
    assert_eq!(state["state"], "disconnected");
    assert_eq!(state["reason"], message);
    // The next prompt restarts the agent. The session had no turn yet, so there is no receipt.
    let id = s.send_prompt("idle", "x");
    let again = s.turn(&id);
    assert_eq!(again.summary["errors"][0]["kind"], "agentExited");
    assert!(
        again.of("data-recovery").is_empty(),
        "nothing was said in it yet"
    );
    s.agent_states(&["starting", "ready", "disconnected"]);
    // Sessions continue with the next connected agent.
    s.connect(&json!({}));
    let again = s.prompt("again");
    assert_eq!(again.summary["text"], "again");
    let receipt = &again.one("data-recovery")["data"];
    assert_eq!(
        (&receipt["rung"], &receipt["memory"]),
        (&json!("new"), &json!("lost"))
    );
}

#[test]
fn a_crash_with_a_flood_before_it_loses_nothing() {
    let mut s = Server::ready(&json!({"session/prompt": [[
        {"repeat": {"times": 3000, "steps": [say("{i},")]}},
        {"exit": 1},
    ]]}));
    let turn = s.prompt("go");
    assert_eq!(turn.summary["text"], crate::harness::counted(3000));
    assert_eq!(turn.summary["errors"][0]["kind"], "agentExited");
    assert_eq!(s.notification("agent/state")["state"], "disconnected");
}

#[test]
fn agent_that_ignores_closed_stdin_gets_sigterm() {
    // SIGKILL would come too late for this test.
    let limits = ["--timeout", "close=100ms", "--timeout", "terminate=1h"];
    let mut s = Server::ready_with(&limits, &json!({"eof": [{"hang": true}]}));
    s.prompt("x");
    s.call("agent/disconnect", &json!({}));
    s.agent_states(&["stopping", "disconnected"]);
}

/// Neither the end of stdin nor SIGTERM ends the agent and its grandchild.
#[test]
fn agent_that_ignores_sigterm_is_killed_with_its_group() {
    let limits = ["--timeout", "close=100ms", "--timeout", "terminate=100ms"];
    let script = json!({
        "start": [{"ignoreTerm": true}, {"spawn": {"command": ["sleep", "1000"]}}],
        "eof": [{"hang": true}],
    });
    let mut s = Server::ready_with(&limits, &script);
    s.prompt("x");
    let shutdown = s.send("shutdown", &json!({}));
    assert_eq!(s.result(&shutdown), json!({}));
    s.await_end();
}

#[test]
fn grandchildren_are_killed_with_the_agent() {
    let grandchild = json!({"spawn": {"command": ["sleep", "1000"]}});
    let end_of = [
        json!({"session/prompt": [[grandchild, {"exit": 0}]]}),
        json!({"session/prompt": [[grandchild, {"exit": 1}]]}),
        json!({"session/prompt": [[grandchild, end("end_turn")]]}),
    ];
    for script in end_of {
        let mut s = Server::ready(&script);
        let since = Instant::now();
        s.prompt("go");
        let log = s.world.log();
        assert!(log.iter().any(|m| m["spawned"].is_u64()), "{log:?}");
        s.call("agent/disconnect", &json!({}));
        // The pipes that the grandchild holds open delay nothing.
        assert!(since.elapsed() < Duration::from_secs(10), "{script}");
        assert!(
            s.world.alive().len() <= 1,
            "{script}: {:?}",
            s.world.alive()
        );
        while s.call("agent/status", &json!({}))["state"] != "disconnected" {}
        s.waive("agent/state");
        s.finish();
    }
}

#[test]
fn process_outside_the_group_does_not_delay_the_exit() {
    let mut s = Server::ready(&json!({"session/prompt": [[
        {"spawn": {"command": ["sleep", "1000"], "setsid": true}}, say("x"), {"exit": 4},
    ]]}));
    let since = Instant::now();
    let turn = s.prompt("go");
    assert_eq!(turn.summary["errors"][0]["data"]["exitCode"], 4);
    assert_eq!(turn.summary["text"], "x");
    assert!(since.elapsed() < Duration::from_secs(5));
    assert_eq!(s.notification("agent/state")["state"], "disconnected");
    s.finish();
}

#[test]
fn closed_stdin_cancels_the_turn_and_answers() {
    let [wait, stop] = until_cancelled();
    // The agent takes 500 ms to exit and ends its turn in that time.
    let mut s = Server::ready(
        &json!({"session/prompt": [[say("x"), wait, say("y"), stop]], "eof": [{"sleep": 500}]}),
    );
    let id = s.send_prompt("default", "go");
    s.await_chunk("default", |c| c["delta"] == "x");
    s.close_stdin();
    let turn = s.turn(&id);
    assert_eq!(turn.summary["stopReason"], "cancelled");
    assert_eq!(turn.summary["text"], "xy");
    let log = s.finish().log;
    assert_eq!(calls(&log, "session/cancel").len(), 1);
    assert_eq!(log.last(), Some(&json!({"eof": true})));
}

#[test]
fn closed_stdin_answers_all_open_calls() {
    let mut s = Server::initialized(&[]);
    let script = s.world.script(&json!({"initialize": [[{"hang": true}]]}));
    let agent = json!({"command": crate::harness::FAKE_AGENT, "args": [script]});
    let connect = s.send("agent/connect", &agent);
    let ensure = s.send("session/ensure", &json!({}));
    s.agent_states(&["starting"]);
    s.close_stdin();
    for id in [connect, ensure] {
        let error = s.error(&id);
        assert_eq!(error["data"]["kind"], "cancelled", "{error}");
    }
}

#[test]
fn shutdown_in_a_turn_answers_both_and_ends() {
    let [wait, stop] = until_cancelled();
    let mut s = Server::ready(
        &json!({"session/prompt": [[say("x"), wait, stop]], "eof": [{"sleep": 500}]}),
    );
    let id = s.send_prompt("default", "go");
    s.await_chunk("default", |c| c["delta"] == "x");
    let shutdown = s.send("shutdown", &json!({}));
    let late = s.send("agent/status", &json!({}));
    assert_eq!(s.turn(&id).summary["stopReason"], "cancelled");
    assert_eq!(s.error(&late)["data"]["stage"], "shutdown");
    assert_eq!(s.result(&shutdown), json!({}));
    // acpipe exits although its stdin is open.
    s.await_end();
}

#[test]
fn shutdown_works_without_agent_and_handshake() {
    let mut s = Server::start(&[]);
    assert_eq!(s.call("shutdown", &json!({})), json!({}));
    s.await_end();
}

#[test]
fn agent_exit_during_shutdown_is_not_an_error() {
    let mut s = Server::ready(
        &json!({"session/prompt": [[say("x"), {"wait": "session/cancel"}, {"exit": 9}]]}),
    );
    let id = s.send_prompt("default", "go");
    s.await_chunk("default", |c| c["delta"] == "x");
    let shutdown = s.send("shutdown", &json!({}));
    let turn = s.turn(&id);
    assert_eq!(turn.summary["stopReason"], "cancelled");
    assert_eq!(turn.summary["isError"], false);
    assert_eq!(s.result(&shutdown), json!({}));
    s.await_end();
}
