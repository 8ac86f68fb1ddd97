//! Restored sessions of the real program; `tests/recovery` has every reaction of an agent to every strategy.

use crate::harness::server::Server;
use crate::harness::steps::{end, resumable, say};
use crate::harness::{FAKE_AGENT, World};
use serde_json::json;
use std::process::Stdio;

#[test]
fn prompt_after_a_crash_restores_agent_and_session() {
    let mut s = Server::initialized(&[]);
    let mark = s.world.dir.join("crashed");
    let agent = s.connect(&resumable(json!({
        "session/prompt": [[say("x"), {"once": {"mark": mark, "steps": [{"exit": 9}]}}, end("end_turn")]],
    })));
    s.ensure("default");
    let crashed = s.prompt("one");
    assert_eq!(crashed.summary["errors"][0]["kind"], "agentExited");
    assert_eq!(s.notification("agent/state")["state"], "disconnected");
    let turn = s.prompt("two");
    assert_eq!(turn.summary["text"], "x");
    assert_eq!(turn.one("data-recovery")["data"]["rung"], "resume");
    s.agent_states(&["starting", "ready"]);
    assert_ne!(s.call("agent/status", &json!({}))["pid"], agent["pid"]);
}

#[test]
fn prompt_that_restores_its_session_reports_the_state() {
    let mut s = Server::initialized(&[]);
    let mark = s.world.dir.join("crashed");
    let new = |mode: &str| json!({"reply": {"sessionId": "x", "modes": {"currentModeId": mode, "availableModes": []}}});
    s.connect(&json!({
        "session/new": [[{"once": {"mark": mark, "steps": [new("a")]}}, new("b")]],
        "session/prompt": [[{"exit": 9}]],
    }));
    s.ensure("default");
    s.prompt("one");
    s.prompt("two");
    let state = s.notification("session/state")["state"].clone();
    assert_eq!(state["modes"]["currentModeId"], "b");
    s.agent_states(&["disconnected", "starting", "ready", "disconnected"]);
}

/// The fake agent gives each process's first session the same id.
#[test]
fn id_that_an_unstored_or_deleted_session_got_later_leads_to_no_other_memory() {
    for second in [&["--ephemeral"][..], &["--session", "b"]] {
        let world = World::new();
        let script = world.script(&json!({
            "initialize": [[{"reply": {"protocolVersion": 1, "agentCapabilities": {"loadSession": true}}}]],
            "session/prompt": [[say("x"), end("end_turn")]],
        }));
        let acpipe = |args: &[&str]| {
            let output = world.acpipe(args).stdin(Stdio::null()).output().unwrap();
            let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(output.status.success(), "{args:?}: {stderr}");
            stderr
        };
        let run = |options: &[&str]| {
            acpipe(&[&["run"], options, &["hi", "--", FAKE_AGENT, &script]].concat())
        };
        run(&["--session", "a"]);
        run(second);
        if second == ["--session", "b"] {
            acpipe(&["sessions", "delete", "b"]);
        }
        let told = run(&["--session", "a"]);
        assert!(
            told.contains("the agent has given the id to session"),
            "{second:?}: {told}"
        );
    }
}
