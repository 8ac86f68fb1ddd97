//! ACP agents with one process for each session.

use crate::harness::server::Server;
use crate::harness::steps::{say, until_cancelled};
use crate::harness::{FAKE_AGENT, LIMIT, calls, signal};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Instant;

/// Connects such an agent. Its processes name their sessions `one`, `two`, … in order of creation.
fn connected(script: &Value) -> Server {
    connected_with(&[], script)
}

fn connected_with(args: &[&str], script: &Value) -> Server {
    let mut s = Server::initialized(args);
    let names = ["one", "two", "three", "four"].map(|name| {
        let mark = s.world.dir.join(name);
        json!({"once": {"mark": mark, "steps": [{"reply": {"sessionId": name}}, {"hang": true}]}})
    });
    let mut all = json!({
        "initialize": [[{"reply": {"protocolVersion": 1, "agentCapabilities":
            {"sessionCapabilities": {"resume": {}, "list": {}}}}}]],
        "session/new": [names],
        "session/resume": [[{"reply": {}}]],
    });
    for (method, runs) in script.as_object().unwrap() {
        all[method] = runs.clone();
    }
    let script = s.world.script(&all);
    let agent = json!({"command": FAKE_AGENT, "args": [script], "childPerSession": true});
    assert_eq!(s.call("agent/connect", &agent)["state"], "ready");
    s.agent_states(&["starting", "ready"]);
    s
}

fn agents(s: &Server) -> Vec<i32> {
    let alive = s.world.alive();
    let agents = alive
        .iter()
        .filter(|(_, line)| line.starts_with(FAKE_AGENT));
    agents.map(|(pid, _)| *pid).collect()
}

/// Waits until exactly this many processes of the agent live.
fn await_agents(s: &Server, count: usize) -> BTreeSet<i32> {
    let since = Instant::now();
    loop {
        let agents = agents(s);
        if agents.len() == count {
            return agents.into_iter().collect();
        }
        assert!(since.elapsed() < LIMIT, "{agents:?}");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

#[test]
fn sessions_have_processes_of_their_own_that_are_opened_after_their_handshake() {
    let [wait, stop] = until_cancelled();
    let mut s = connected(&json!({"session/prompt": [[say("{session}"), wait, stop]]}));
    // The process of the handshake serves the first session.
    s.ensure("a");
    assert_eq!(agents(&s).len(), 1);
    s.ensure("b");
    assert_eq!(agents(&s).len(), 2);
    let [a, b] = ["a", "b"].map(|id| s.send_prompt(id, "go"));
    s.await_chunk("a", |c| c["delta"] == "one");
    s.await_chunk("b", |c| c["delta"] == "two");
    s.call("session/cancel", &json!({"sessionId": "b"}));
    assert_eq!(s.turn(&b).summary["text"], "two");
    s.call("session/cancel", &json!({"sessionId": "a"}));
    assert_eq!(s.turn(&a).summary["text"], "one");
    assert_eq!(
        s.call("session/list", &json!({"agent": true}))["agentError"],
        Value::Null
    );
    let log = s.finish().log;
    let methods: Vec<&str> = log.iter().filter_map(|m| m["method"].as_str()).collect();
    let opening = ["initialize", "session/new", "initialize", "session/new"];
    assert_eq!(methods[..4], opening);
}

#[test]
fn a_crash_concerns_its_session_alone() {
    let script = json!({"session/prompt": [[{"wait": "session/cancel"}, {"exit": 3}]]});
    let mut s = connected(&script);
    s.ensure("a");
    s.ensure("b");
    let before = await_agents(&s, 2);
    let prompt = s.send_prompt("a", "go");
    s.await_chunk("a", |c| c["type"] == "start");
    let other = s.send_prompt("b", "go");
    s.await_chunk("b", |c| c["type"] == "start");
    // A prompt queued behind the crashed turn goes to the next process.
    let next = s.send_prompt("a", "next");
    s.call("session/cancel", &json!({"sessionId": "a"}));
    assert_eq!(s.turn(&prompt).summary["stopReason"], "cancelled");
    s.await_chunk("a", |c| c["data"]["rung"] == "resume");
    let after = await_agents(&s, 2);
    assert_eq!(before.intersection(&after).count(), 1);
    for (session, id) in [("a", next), ("b", other)] {
        s.call("session/cancel", &json!({"sessionId": session}));
        s.turn(&id);
    }
    assert_eq!(s.call("agent/status", &json!({}))["state"], "ready");
}

#[test]
fn per_session_agent_survives_the_exit_of_all_processes() {
    let mut s = connected(&json!({}));
    s.ensure("a");
    s.ensure("b");
    s.call("session/close", &json!({"sessionId": "a"}));
    let left = await_agents(&s, 1);
    for pid in left {
        signal(pid, Signal::KILL);
    }
    await_agents(&s, 0);
    // acpipe notices the exits a little later.
    let since = Instant::now();
    while s.call("session/get", &json!({"sessionId": "b"}))["state"] != "resting" {
        assert!(since.elapsed() < LIMIT);
    }
    let id = s.send_prompt("b", "back");
    let turn = s.turn(&id);
    assert_eq!(turn.summary["text"], "back");
    assert_eq!(turn.one("data-recovery")["data"]["rung"], "resume");
    assert_eq!(agents(&s).len(), 1);
    // A listing may be the first call that needs a process.
    s.call("session/close", &json!({"sessionId": "b"}));
    await_agents(&s, 0);
    s.call("session/list", &json!({"agent": true}));
    assert_eq!(calls(&s.finish().log, "session/list").len(), 1);
}

#[test]
fn unready_process_fails_only_its_session() {
    let mut s = Server::initialized(&[]);
    let mark = s.world.dir.join("mark");
    let ready = json!({"once": {"mark": mark, "steps": [{"reply": {"protocolVersion": 1}}, {"hang": true}]}});
    for (then, kind) in [
        (json!({"reply": {"protocolVersion": 2}}), "initialize"),
        (
            json!({"error": {"code": -32603, "message": "no"}}),
            "initialize",
        ),
        (json!({"exit": 4}), "agentExited"),
    ] {
        let _ = std::fs::remove_file(&mark);
        let script = s.world.script(&json!({"initialize": [[ready, then]]}));
        let agent = json!({"command": FAKE_AGENT, "args": [script], "childPerSession": true});
        s.call("agent/connect", &agent);
        s.agent_states(&["starting", "ready"]);
        s.ensure("a");
        let error = s.call_error("session/ensure", &json!({"sessionId": "b"}));
        assert_eq!(error["data"]["kind"], kind, "{error}");
        let id = s.send_prompt("a", "alive");
        assert_eq!(s.turn(&id).summary["text"], "alive");
        s.call("session/clear", &json!({"sessionId": "a"}));
        s.rewind("a");
        s.call("agent/disconnect", &json!({}));
        s.agent_states(&["stopping", "disconnected"]);
    }
}

#[test]
fn stuck_turn_restarts_only_its_process() {
    let hangs = json!([say("x"), {"wait": "never"}]);
    let args = ["--timeout", "cancel=300ms", "--timeout", "close=100ms"];
    let mut s = connected_with(&args, &json!({"session/prompt": [hangs]}));
    s.ensure("a");
    s.ensure("b");
    let before = await_agents(&s, 2);
    let id = s.send_prompt("a", "go");
    s.await_chunk("a", |c| c["delta"] == "x");
    s.call("session/cancel", &json!({"sessionId": "a"}));
    assert_eq!(s.turn(&id).summary["errors"][0]["kind"], "timeout");
    let back = s.call("session/ensure", &json!({"sessionId": "a"}));
    assert_eq!(back["recovery"]["rung"], "resume");
    let after = await_agents(&s, 2);
    assert_eq!(before.intersection(&after).count(), 1);
    assert_eq!(s.ensure("b")["recovery"]["rung"], "live");
}
