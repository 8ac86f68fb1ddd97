//! Tests of sessions that are opened while the agent still closes them, of adopted sessions that the agent
//! may not have, and of updates that precede the response that opens a session.

use super::play::{Play, program, settings};
use crate::client::{Command, History};
use crate::hub::AgentInput;
use crate::store::MemoryStore;
use acpipe_model::error::ErrorKind;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

fn close() -> History {
    History::CloseSession(serde_json::from_value(json!({})).unwrap())
}

fn adopt() -> Value {
    json!({"agentSessionId": "S"})
}

fn history() -> Value {
    json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "x"}})
}

/// Loads a session at an agent with these capabilities, and closes it; `loaded` is the response to the load.
fn load_and_close(play: &mut Play, offers: &Value, loaded: &Value) {
    let opened = play.ensure(adopt());
    let load = play.ready_with(offers);
    assert_eq!(load["method"], "session/load");
    play.update("S", &history());
    play.answer(&load, loaded);
    play.wait();
    assert_eq!(play.failed(opened), None);
    play.ask(Command::History(close()));
}

/// Returns a session that was loaded and is being closed, and the call that closes it.
fn closing() -> (Play, Value) {
    let mut play = Play::new();
    load_and_close(&mut play, &json!({"close": {}}), &json!({}));
    let call = play.sent();
    assert_eq!(call["method"], "session/close");
    (play, call)
}

#[test]
fn a_session_is_not_loaded_before_its_close_is_answered() {
    let answers = [
        json!({"result": {}}),
        json!({"error": {"code": -32603, "message": "no"}}),
    ];
    for answer in answers {
        let (mut play, call) = closing();
        let again = play.ensure(adopt());
        assert_eq!(play.sent(), Value::Null);
        // Updates meanwhile change nothing.
        play.update("S", &history());
        assert_eq!(play.sent(), Value::Null);
        let mut answer = answer;
        answer["id"] = call["id"].clone();
        let load = play.say(&answer);
        assert_eq!(load["method"], "session/load");
        play.update("S", &history());
        play.answer(&load, &json!({}));
        play.wait();
        assert_eq!(play.result(again)["recovery"]["rung"], "load");
    }
}

#[test]
fn a_close_that_is_never_answered_holds_a_session_for_its_limit_only() {
    let (mut play, _) = closing();
    let closed_at = play.now;
    play.ensure(adopt());
    let mut told = 0;
    let load = loop {
        play.wait();
        let sent = play.sent();
        if sent != Value::Null {
            break sent;
        }
        told += 1;
        assert!(told < 10);
    };
    assert_eq!(load["method"], "session/load");
    assert_eq!(play.now - closed_at, Duration::from_secs(10));
    // After one wait, the session is not held again.
    play.ask(Command::History(close()));
    play.ensure(adopt());
    assert_eq!(play.sent()["method"], "session/load");
}

#[test]
fn session_with_its_own_process_is_loaded_when_the_old_process_has_ended() {
    let mut settings = settings(Instant::now());
    settings.default_agent.spec.child_per_session = true;
    let mut play = Play::of(settings, Box::new(MemoryStore));
    load_and_close(&mut play, &json!({}), &json!({}));
    play.sent();
    let old = play.agent;
    play.ensure(adopt());
    assert_eq!(play.sent(), Value::Null);
    assert_eq!(play.agent, old);
    play.crash();
    assert_ne!(play.agent, old);
}

#[test]
fn new_session_does_not_wait_for_a_closing_session() {
    let (mut play, _) = closing();
    play.ensure(json!({}));
    assert_eq!(play.sent()["method"], "session/new");
}

#[test]
fn a_session_that_is_closed_again_while_it_waits_is_not_opened() {
    let (mut play, call) = closing();
    let again = play.ensure(adopt());
    play.ask(Command::History(close()));
    assert_eq!(play.failed(again), Some(ErrorKind::Cancelled));
    assert_eq!(play.answer(&call, &json!({})), Value::Null);
}

/// Adopts a session of which the agent replays nothing. `offers` are the agent's capabilities in addition to
/// load, `list` is its response to the session list.
fn adopted(offers: &Value, list: Option<&Value>) -> (Play, u64) {
    let mut play = Play::new();
    let token = play.ensure(adopt());
    let load = play.ready_with(offers);
    assert_eq!(load["method"], "session/load");
    play.answer(&load, &Value::Null);
    play.wait();
    let call = play.sent();
    if let Some(list) = list {
        assert_eq!(call["method"], "session/list");
        play.answer(&call, list);
    }
    (play, token)
}

#[test]
fn a_session_to_adopt_that_repeats_nothing_is_looked_up() {
    let lists = json!({"list": {}, "resume": {}});
    let other = json!({"sessionId": "T", "cwd": "/"});
    let own = json!({"sessionId": "S", "cwd": "/"});
    let (play, token) = adopted(&lists, Some(&json!({"sessions": [other]})));
    assert_eq!(play.failed(token), Some(ErrorKind::SessionNotFound));
    let (play, token) = adopted(&lists, Some(&json!({"sessions": [other, own]})));
    let recovery = &play.result(token)["recovery"];
    assert_eq!(
        (&recovery["replayed"], &recovery["warning"]),
        (&json!(0), &Value::Null)
    );
    // Without a list, the agent may not have the session: the receipt has a warning.
    let (play, token) = adopted(&json!({}), None);
    let recovery = &play.result(token)["recovery"];
    assert_eq!(recovery["replayed"], 0);
    let warning = recovery["warning"].as_str().unwrap();
    assert!(warning.contains("replayed no messages"), "{warning}");
}

#[test]
fn usage_that_comes_before_the_session_is_open_is_that_of_the_session() {
    let usage = json!({"sessionUpdate": "usage_update", "used": 7, "size": 100, "cost": {"amount": 0.5, "currency": "USD"}});
    let mut play = Play::new();
    let opened = play.ensure(json!({}));
    let new = play.ready_with(&json!({}));
    play.update("N", &usage);
    play.answer(&new, &json!({"sessionId": "N"}));
    assert_eq!(
        play.result(opened)["state"]["context"]["used"],
        7,
        "{}",
        play.result(opened)
    );
    // Also while the session is being loaded.
    let mut play = Play::new();
    let opened = play.ensure(adopt());
    let load = play.ready_with(&json!({}));
    play.update("S", &usage);
    play.update("S", &history());
    play.answer(&load, &json!({}));
    play.wait();
    assert_eq!(play.result(opened)["state"]["context"]["used"], 7);
}

#[test]
fn a_known_program_without_its_acp_argument_is_hinted_at() {
    let mut settings = settings(Instant::now());
    settings.default_agent.spec.command = "qwen".to_owned();
    let mut play = Play::of(settings, Box::new(MemoryStore));
    let connect = play.ask(Command::Connect(serde_json::from_value(json!({})).unwrap()));
    assert_eq!(play.sent()["method"], "initialize");
    play.hear(AgentInput::Started {
        pid: 1,
        program: Box::new(program()),
    });
    let hint = "did you mean `qwen --acp`?";
    play.now += Duration::from_secs(2);
    let now = play.now;
    let note = play.hub.status(now).waiting_for.unwrap().note;
    assert!(note.contains(hint), "{note}");
    while play.failed(connect).is_none() {
        play.wait();
    }
    let message = play.error(connect);
    assert!(message.contains(hint), "{message}");
}

/// Restores a session that was loaded and closed at an agent without `session/close`. The agent refuses to
/// load it again. If `crashes`, the agent's process crashes before that.
fn opened_again(crashes: bool) -> (Play, u64, Value) {
    let mut play = Play::new();
    let modes = json!({"currentModeId": "m", "availableModes": [{"id": "m", "name": "M"}]});
    load_and_close(&mut play, &json!({}), &json!({"modes": modes}));
    assert_eq!(play.sent(), Value::Null);
    if crashes {
        play.crash();
    }
    let again = play.ensure(json!({"agentSessionId": "S", "strategy": ["load", "new"]}));
    let load = if crashes {
        play.ready_with(&json!({}))
    } else {
        play.sent()
    };
    assert_eq!(load["method"], "session/load");
    let busy = json!({"code": -32603, "message": "already open"});
    let next = play.say(&json!({"jsonrpc": "2.0", "id": load["id"], "error": busy}));
    (play, again, next)
}

#[test]
fn session_stays_live_if_it_cannot_be_closed_and_a_load_fails() {
    let (play, again, next) = opened_again(false);
    assert_eq!(next, Value::Null);
    let result = play.result(again);
    assert_eq!(result["recovery"]["rung"], "live");
    assert_eq!(result["recovery"]["memory"], "kept");
    assert_eq!(result["recovery"]["failed"][0]["rung"], "load");
    assert_eq!(result["agentSessionId"], "S");
    assert_eq!(result["state"]["modes"]["currentModeId"], "m");
}

#[test]
fn a_session_of_a_process_that_crashed_is_not_taken_for_open() {
    let (_, _, next) = opened_again(true);
    assert_eq!(next["method"], "session/new");
}
