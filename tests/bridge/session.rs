//! Sessions: identified by the client's ids, many at once on one agent.

use crate::harness::server::{Id, Server, Turn};
use crate::harness::steps::{end, say, tool, tool_change};
use crate::harness::{calls, counted};
use serde_json::{Value, json};

#[test]
fn ensure_returns_a_live_session() {
    let mut s = Server::initialized(&[]);
    s.connect(&json!({"session/new": [[{"reply": {
        "sessionId": "given",
        "modes": {"currentModeId": "a", "availableModes": []},
        "models": null,
        "configOptions": [{"id": "o"}],
    }}], [{"default": true}]]}));
    let new = s.call("session/ensure", &json!({}));
    assert_eq!(new["sessionId"], "default");
    assert_eq!(new["agentSessionId"], "given");
    assert_eq!(
        new["recovery"],
        json!({"rung": "new", "memory": "none", "failed": [], "replayed": null,
            "messages": 0, "adopted": 0, "reinjected": 0, "missed": 0, "notRestored": []})
    );
    assert_eq!(
        new["state"],
        json!({"modes": {"currentModeId": "a", "availableModes": []}, "configOptions": [{"id": "o"}]})
    );
    let here = std::env::current_dir().unwrap();
    assert_eq!(new["cwd"], json!(here));
    let live = s.call("session/ensure", &json!({"sessionId": "default"}));
    assert_eq!(
        live["recovery"],
        json!({"rung": "live", "memory": "kept", "failed": [], "replayed": null,
            "messages": 0, "adopted": 0, "reinjected": 0, "missed": 0, "notRestored": []})
    );
    assert_eq!(live["agentSessionId"], "given");
    assert_eq!(live["state"], new["state"]);

    let error = s.call_error("session/create", &json!({"sessionId": "default"}));
    assert_eq!(error["code"], -32023);
    assert_eq!(error["data"]["kind"], "sessionExists");
    let made = s.call("session/create", &json!({"sessionId": "böth \"x\"/y"}));
    assert_eq!(made["sessionId"], "böth \"x\"/y");
    let id = s.send_prompt("böth \"x\"/y", "hi");
    assert_eq!(s.turn(&id).summary["text"], "hi");
    let log = s.finish().log;
    assert_eq!(calls(&log, "session/new").len(), 2);
}

#[test]
fn ensure_twice_at_once_opens_one_session() {
    let mut s = Server::initialized(&[]);
    s.connect(&json!({"session/new": [[{"sleep": 100}, {"default": true}]]}));
    let ids: Vec<Id> = (0..3)
        .map(|_| s.send("session/ensure", &json!({})))
        .collect();
    let error = s.call_error("session/create", &json!({"sessionId": "default"}));
    assert_eq!(error["data"]["kind"], "sessionExists");
    let early = s.send_prompt("default", "x");
    let second = s.call_error(
        "session/prompt",
        &json!({"message": "y", "whenBusy": "reject"}),
    );
    assert_eq!(second["data"]["kind"], "busy");
    for id in &ids {
        assert_eq!(s.result(id)["agentSessionId"], "fake-1");
    }
    assert_eq!(s.turn(&early).summary["text"], "x");
    assert_eq!(calls(&s.finish().log, "session/new").len(), 1);
}

#[test]
fn many_sessions_share_one_agent() {
    const SESSIONS: usize = 8;
    const ROUNDS: u64 = 20;
    let mut s = Server::initialized(&[]);
    s.waive("session/activity");
    // Each round of a turn takes at least 1 ms, so the updates of all turns mix.
    s.connect(&json!({"session/prompt": [[
        say("{session}:"),
        {"repeat": {"times": ROUNDS, "steps": [say("{i},"), {"sleep": 1}, {"update": {"sessionUpdate": "plan", "entries": [{"content": "{session}"}]}}]}},
        tool("t", &json!({"name": "{session}", "status": "completed", "rawOutput": "{session}"})),
        end("end_turn"),
    ]]}));
    let names: Vec<String> = (1..=SESSIONS).map(|n| format!("s{n}")).collect();
    for name in &names {
        s.ensure(name);
    }
    let prompts: Vec<Id> = names.iter().map(|n| s.send_prompt(n, "go")).collect();
    let turns: Vec<Turn> = prompts.iter().map(|id| s.turn(id)).collect();
    for (n, turn) in turns.iter().enumerate() {
        let own = format!("fake-{}", n + 1);
        let numbers = counted(ROUNDS);
        assert_eq!(turn.summary["sessionId"], names[n]);
        assert_eq!(turn.summary["text"], format!("{own}:{numbers}"));
        assert_eq!(turn.summary["toolCalls"][0]["name"], own);
        let plans = turn.of("data-plan");
        assert_eq!(plans.len(), usize::try_from(ROUNDS).unwrap());
        assert!(
            plans
                .iter()
                .all(|p| p["data"]["entries"][0]["content"] == own)
        );
    }
    assert_eq!(calls(&s.finish().log, "initialize").len(), 1);
}

#[test]
fn chunk_subscription_can_be_changed() {
    let mut s = Server::ready(&json!({}));
    s.ensure("b");
    s.allow_gaps("default");
    s.allow_gaps("b");
    let shown = |s: &mut Server, session: &str| {
        let id = s.send_prompt(session, "x");
        let turn = s.turn(&id);
        // The summary is sent in every case.
        assert_eq!(turn.summary["text"], "x");
        !turn.chunks.is_empty()
    };
    assert!(shown(&mut s, "default"));
    s.call(
        "session/subscribe",
        &json!({"sessionId": "default", "chunks": false}),
    );
    assert!(!shown(&mut s, "default"));
    assert!(shown(&mut s, "b"));
    s.call("session/subscribe", &json!({"chunks": false}));
    assert!(!shown(&mut s, "b"));
    // Also for later sessions.
    s.allow_gaps("c");
    s.ensure("c");
    assert!(!shown(&mut s, "c"));
    s.call(
        "session/subscribe",
        &json!({"sessionId": "b", "chunks": true}),
    );
    assert!(shown(&mut s, "b"));
    s.call("session/subscribe", &json!({"chunks": true}));
    assert!(shown(&mut s, "c"));
    assert!(shown(&mut s, "default"));
}

#[test]
fn client_can_start_without_chunks() {
    let mut s = Server::start(&[]);
    s.call(
        "initialize",
        &json!({"protocolVersion": 1, "capabilities": {"chunks": false}}),
    );
    s.connect(&json!({}));
    s.ensure("default");
    s.allow_gaps("default");
    let turn = s.prompt("x");
    assert_eq!(turn.summary["text"], "x");
    assert!(turn.chunks.is_empty());
}

#[test]
fn updates_of_unknown_sessions_do_not_reach_the_client() {
    let other = |session: Value| {
        json!({"notify": {"method": "session/update", "params": {"sessionId": session, "update": {
        "sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "WRONG"}}}}})
    };
    let mut s = Server::ready(&json!({"session/prompt": [[
        other(json!("someone-else")),
        other(json!("default")),
        other(json!(5)),
        other(json!(null)),
        {"notify": {"method": "session/update", "params": {"sessionId": "{session}"}}},
        {"notify": {"method": "session/update"}},
        say("right"),
        end("end_turn"),
    ]]}));
    assert_eq!(s.prompt("x").summary["text"], "right");
}

#[test]
fn state_changes_are_notified() {
    let update = |u: Value| json!({"update": u});
    let mut s = Server::ready(&json!({
        "session/new": [[{"default": true}, update(json!({"sessionUpdate": "available_commands_update", "availableCommands": [{"name": "c"}]}))]],
        "session/prompt": [[
            update(json!({"sessionUpdate": "current_mode_update", "currentModeId": "plan"})),
            say("x"),
            update(json!({"sessionUpdate": "session_info_update", "title": "T", "updatedAt": null})),
            say("y"),
            end("end_turn"),
        ]],
    }));
    let state = s.notification("session/state");
    assert_eq!(
        state,
        json!({"sessionId": "default", "queue": [], "state": {"availableCommands": [{"name": "c"}]}})
    );
    let turn = s.prompt("x");
    assert_eq!(turn.summary["text"], "xy");
    // Later text continues the same block.
    assert_eq!(turn.of("text-start").len(), 1);
    let shown = turn.of("data-session");
    assert_eq!(shown.len(), 2);
    assert!(shown.iter().all(|c| c["transient"] == true));
    let state = s.notification("session/state")["state"].clone();
    assert_eq!(
        state,
        json!({"availableCommands": [{"name": "c"}], "currentModeId": "plan"})
    );
    assert_eq!(shown[0]["data"], state);
    let state = s.notification("session/state")["state"].clone();
    assert_eq!(state["title"], "T");
    assert_eq!(s.ensure("default")["state"], state);
}

#[test]
fn activity_changes_are_notified() {
    let mut s = Server::ready(&json!({"session/prompt": [[
        say("x"),
        tool("a", &json!({"name": "bash", "title": "Run a", "status": "pending"})),
        tool_change("a", &json!({"status": "in_progress", "rawInput": {"x": 1}})),
        tool_change("a", &json!({"title": "Run a now"})),
        tool_change("a", &json!({"status": "completed"})),
        say("y"),
        tool("b", &json!({"kind": "read"})),
        end("end_turn"),
    ]]}));
    let of = |name: &str, what: &str| json!({"toolName": name, "description": what});
    assert_eq!(
        s.prompt("x").activity,
        [
            of("bash", "Run a"),
            of("bash", "Run a now"),
            Value::Null,
            of("read", "read"),
            Value::Null,
        ]
    );
}

#[test]
fn agent_can_reconnect_after_a_disconnect() {
    let mut s = Server::ready(&json!({"session/prompt": [[say("one"), end("end_turn")]]}));
    assert_eq!(s.prompt("x").summary["text"], "one");
    let first = s.call("agent/status", &json!({}))["pid"].clone();
    assert_eq!(s.call("agent/disconnect", &json!({})), json!({}));
    s.agent_states(&["stopping", "disconnected"]);
    assert!(
        s.world.alive().iter().all(|(pid, _)| json!(pid) != first),
        "the agent lives on"
    );
    let status = s.call("agent/status", &json!({}));
    assert_eq!(status["state"], "disconnected");
    assert_eq!(status["pid"], Value::Null);
    // The messages do not depend on the agent.
    assert_eq!(s.call("message/list", &json!({}))["total"], 2);
    // After an explicit disconnect the agent is not restarted automatically.
    assert_eq!(
        s.call_error("session/prompt", &json!({"message": "x"}))["data"]["kind"],
        "outOfOrder"
    );
    let second = s.connect(&json!({"session/prompt": [[say("two"), end("end_turn")]]}));
    assert_ne!(second["pid"], first);
    assert_eq!(s.ensure("default")["recovery"]["rung"], "new");
    assert_eq!(s.prompt("x").summary["text"], "two");
}

#[test]
fn updates_for_sessions_of_an_earlier_agent_are_ignored() {
    let other = json!({"notify": {"method": "session/update", "params": {"sessionId": "fake-2", "update": {
        "sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "WRONG"}}}}});
    let mut s = Server::ready(&json!({}));
    assert_eq!(s.ensure("b")["agentSessionId"], "fake-2");
    s.call("agent/disconnect", &json!({}));
    s.agent_states(&["stopping", "disconnected"]);
    s.connect(&json!({"session/prompt": [[other, say("right"), end("end_turn")]]}));
    // The new agent uses another id for the session.
    assert_eq!(s.ensure("b")["agentSessionId"], "fake-1");
    let id = s.send_prompt("b", "x");
    assert_eq!(s.turn(&id).summary["text"], "right");
}
