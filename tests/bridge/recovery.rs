//! Restored sessions: the strategy that succeeded, the strategies that failed before, and the agent's memory.

use crate::harness::server::Server;
use crate::harness::steps::{end, say};
use crate::harness::{FAKE_AGENT, World};
use serde_json::{Value, json};
use std::process::Stdio;

/// Reaction of the agent to `session/resume` or `session/load` with an id that it issued.
#[derive(Clone, Copy)]
enum Reaction {
    /// The agent does not offer the method.
    NotOffered,
    Resumes,
    Refuses,
    /// The agent creates a new session, which it mentions only in `_meta`.
    Replaces,
    /// The agent answers before the history is complete.
    Late,
    /// The agent accepts, but replays nothing.
    Empty,
    /// The agent replays the history, requested or not.
    Repeats,
}

fn history() -> [Value; 2] {
    let piece = |kind: &str, text: &str| {
        json!({"notify": {"method": "session/update", "params": {"sessionId": "fake-1", "update":
            {"sessionUpdate": kind, "content": {"type": "text", "text": text}}}}})
    };
    [
        piece("user_message_chunk", "one"),
        piece("agent_message_chunk", "first answer"),
    ]
}

fn run(does: Reaction) -> Value {
    let [user, agent] = history();
    match does {
        Reaction::NotOffered | Reaction::Refuses => {
            json!([[{"error": {"code": -32002, "message": "no such session"}}]])
        }
        Reaction::Resumes | Reaction::Empty => json!([[{"reply": {}}]]),
        Reaction::Replaces => json!([[{"reply": {"_meta": {"fake": {"sessionId": "another"}}}}]]),
        Reaction::Late => json!([[user, {"reply": {}}, agent]]),
        Reaction::Repeats => json!([[user, agent, {"reply": null}]]),
    }
}

fn offers(does: Reaction) -> Value {
    if matches!(does, Reaction::NotOffered) {
        Value::Null
    } else {
        json!({})
    }
}

/// Starts an agent with one session, and reconnects it by the client.
fn restarted(resume: Reaction, load: Reaction, list: Option<Value>) -> Server {
    let script = json!({
        "initialize": [[{"reply": {"protocolVersion": 1, "agentCapabilities": {
            "loadSession": !matches!(load, Reaction::NotOffered),
            "sessionCapabilities": {"resume": offers(resume), "list": list.as_ref().map(|_| json!({}))},
        }}}]],
        "session/resume": run(resume),
        "session/load": run(load),
        "session/list": [[{"reply": {"sessions": list.unwrap_or(json!([]))}}]],
        "session/prompt": [[say("answer"), end("end_turn")]],
    });
    Server::reconnected(&[], &script, &script)
}

fn kinds(recovery: &Value) -> Vec<String> {
    let failed = recovery["failed"].as_array().unwrap();
    let kind = |f: &Value| {
        format!(
            "{} {}",
            f["rung"].as_str().unwrap(),
            f["kind"].as_str().unwrap()
        )
    };
    failed.iter().map(kind).collect()
}

#[test]
fn restore_tries_the_strategies_the_agent_offers() {
    use Reaction::{Empty, Late, NotOffered, Refuses, Repeats, Replaces, Resumes};
    // (reaction to resume, reaction to load, strategy of the call, strategy of the receipt, memory, failed
    // strategies)
    type Case<'a> = (Reaction, Reaction, Value, &'a str, &'a str, &'a [&'a str]);
    let cases: Vec<Case<'_>> = vec![
        (Resumes, Repeats, json!("auto"), "resume", "kept", &[]),
        (Repeats, Repeats, json!("auto"), "resume", "kept", &[]),
        (
            Refuses,
            Repeats,
            json!("auto"),
            "load",
            "replayed",
            &["resume session"],
        ),
        (
            NotOffered,
            Repeats,
            json!("auto"),
            "load",
            "replayed",
            &["resume sessionNotFound"],
        ),
        (
            NotOffered,
            Late,
            json!("auto"),
            "load",
            "replayed",
            &["resume sessionNotFound"],
        ),
        (
            NotOffered,
            Empty,
            json!("auto"),
            "new",
            "lost",
            &["resume sessionNotFound", "load sessionNotFound"],
        ),
        (
            Refuses,
            Refuses,
            json!("auto"),
            "new",
            "lost",
            &["resume session", "load session"],
        ),
        (
            Replaces,
            Repeats,
            json!("auto"),
            "new",
            "lost",
            &["resume sessionNotFound"],
        ),
        (
            NotOffered,
            NotOffered,
            json!("auto"),
            "new",
            "lost",
            &["resume sessionNotFound", "load sessionNotFound"],
        ),
        (Resumes, Repeats, json!("load"), "load", "replayed", &[]),
        (Resumes, Repeats, json!("new"), "new", "lost", &[]),
        (
            Resumes,
            Refuses,
            json!(["load", "resume"]),
            "resume",
            "kept",
            &["load session"],
        ),
    ];
    for (n, (resume, load, strategy, rung, memory, failed)) in cases.into_iter().enumerate() {
        let mut s = restarted(resume, load, None);
        let opened = s.call("session/ensure", &json!({"strategy": strategy}));
        let recovery = &opened["recovery"];
        assert_eq!(
            (&recovery["rung"], &recovery["memory"]),
            (&json!(rung), &json!(memory)),
            "case {n}"
        );
        assert_eq!(kinds(recovery), failed, "case {n}");
        let replayed = (rung == "load").then_some(2);
        assert_eq!(recovery["replayed"], json!(replayed), "case {n}");
        // The next turn holds the receipt, and the replay belongs to no turn.
        let turn = s.prompt("two");
        assert_eq!(turn.one("data-recovery")["data"], *recovery, "case {n}");
        assert_eq!(turn.summary["text"], "answer", "case {n}");
        assert!(s.prompt("three").of("data-recovery").is_empty(), "case {n}");
    }
}

#[test]
fn requested_strategy_that_fails_is_an_error() {
    let mut s = restarted(Reaction::Refuses, Reaction::NotOffered, None);
    let error = s.call_error("session/ensure", &json!({"strategy": "resume"}));
    assert_eq!(error["data"]["kind"], "session");
    let error = s.call_error("session/ensure", &json!({"strategy": ["load"]}));
    assert_eq!(error["data"]["kind"], "sessionNotFound");
    assert!(
        error["message"]
            .as_str()
            .unwrap()
            .contains("does not support"),
        "{error}"
    );
    for (strategy, why) in [
        (json!("best"), "\"best\" is not a valid strategy"),
        (json!(["load", "live"]), "\"live\" is not a valid strategy"),
        (json!(7), "a strategy must be"),
        (json!([]), "no strategy is left to try"),
    ] {
        let error = s.call_error("session/ensure", &json!({"strategy": strategy}));
        assert!(error["message"].as_str().unwrap().contains(why), "{error}");
    }
    assert_eq!(s.ensure("default")["recovery"]["memory"], "lost");
}

#[test]
fn prompt_after_a_crash_restores_agent_and_session() {
    let world = Server::initialized(&[]);
    let mark = world.world.dir.join("crashed");
    let mut s = world;
    let agent = s.connect(&json!({
        "initialize": [[{"reply": {"protocolVersion": 1, "agentCapabilities": {"sessionCapabilities": {"resume": {}}}}}]],
        "session/resume": [[{"reply": {}}]],
        "session/prompt": [[say("x"), {"once": {"mark": mark, "steps": [{"exit": 9}]}}, end("end_turn")]],
    }));
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
