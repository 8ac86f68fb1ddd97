//! Abandoned turns: the agent never answers their cancel. The turn fails, its session accepts prompts again,
//! and other sessions are not disturbed. Each test takes as long as the timeouts involved.

use crate::harness::calls;
use crate::harness::server::{Id, Server};
use crate::harness::steps::{say, until_cancelled};
use serde_json::{Value, json};

/// Connects an agent that begins its first turn and never ends it. It resumes sessions, and closes them if
/// `closes`. After a restart it answers prompts.
fn stuck_agent(closes: bool) -> Server {
    let mut s = Server::initialized(&[]);
    let mut offers = json!({"resume": {}});
    if closes {
        offers["close"] = json!({});
    }
    let mark = s.world.dir.join("mark");
    let hangs = json!({"once": {"mark": mark, "steps": [say("x"), {"wait": "never"}]}});
    let [wait, stop] = until_cancelled();
    s.connect(&json!({
        "initialize": [[{"reply": {"protocolVersion": 1, "agentCapabilities": {"sessionCapabilities": offers}}}]],
        "session/resume": [[{"reply": {}}]],
        "session/prompt": [[hangs, {"default": true}], [say("y"), wait, stop], [{"default": true}]],
    }));
    s
}

/// Prompts until the agent is stuck, cancels, and waits until the turn is abandoned. Returns the id of a
/// queued prompt.
fn abandon_turn(s: &mut Server) -> Id {
    let id = s.send_prompt("default", "go");
    s.await_chunk("default", |c| c["delta"] == "x");
    s.call("session/cancel", &json!({}));
    // This prompt waits in the queue, whatever happens to the turn before it.
    let next = s.send(
        "session/prompt",
        &json!({"message": "next", "turnId": "next"}),
    );
    let turn = s.turn(&id);
    assert_eq!(turn.summary["errors"][0]["kind"], "timeout");
    assert_eq!(turn.summary["text"], "x");
    next
}

fn texts(log: &[Value]) -> Vec<&Value> {
    let prompts = calls(log, "session/prompt");
    prompts
        .iter()
        .map(|p| &p["params"]["prompt"][0]["text"])
        .collect()
}

#[test]
fn abandoned_turn_restarts_an_agent_without_other_turns() {
    let mut s = stuck_agent(true);
    s.ensure("default");
    s.ensure("other");
    let next = abandon_turn(&mut s);
    let turn = s.turn(&next);
    assert_eq!(turn.one("data-recovery")["data"]["rung"], "resume");
    s.agent_states(&["stopping", "disconnected", "starting", "ready"]);
    // The other session was restored too.
    assert_eq!(s.ensure("other")["recovery"]["rung"], "live");
    let log = s.finish().log;
    assert_eq!(texts(&log), ["go", "next"]);
    assert_eq!(calls(&log, "session/cancel").len(), 1);
    assert_eq!(calls(&log, "session/resume").len(), 2);
}

/// Starts a turn that does not end when it is cancelled, and a turn of another session that continues.
fn stuck_with_other_turn(closes: bool) -> (Server, Id, Id) {
    let mut s = stuck_agent(closes);
    s.ensure("default");
    s.ensure("other");
    let first = s.send_prompt("default", "go");
    s.await_chunk("default", |c| c["delta"] == "x");
    let other = s.send_prompt("other", "long");
    s.await_chunk("other", |c| c["delta"] == "y");
    s.call("session/cancel", &json!({}));
    (s, first, other)
}

#[test]
fn abandoned_session_is_closed_and_restored_while_another_turn_runs() {
    let (mut s, first, other) = stuck_with_other_turn(true);
    let next = s.send_prompt("default", "next");
    assert_eq!(s.turn(&first).summary["errors"][0]["kind"], "timeout");
    assert_eq!(s.turn(&next).summary["text"], "next");
    // The other turn still runs.
    s.call("session/cancel", &json!({"sessionId": "other"}));
    assert_eq!(s.turn(&other).summary["stopReason"], "cancelled");
    let log = s.finish().log;
    assert_eq!(calls(&log, "initialize").len(), 1);
    let of_default = |call: &str| calls(&log, call)[0]["params"]["sessionId"] == "fake-1";
    assert!(of_default("session/close") && of_default("session/resume"));
    assert_eq!(calls(&log, "session/cancel").len(), 2);
}

#[test]
fn agent_without_session_close_restarts_after_its_other_turn() {
    let (mut s, first, other) = stuck_with_other_turn(false);
    assert_eq!(s.turn(&first).summary["errors"][0]["kind"], "timeout");
    let next = s.send_prompt("default", "next");
    // A new session does not wait for the restart.
    let new = s.send(
        "session/ensure",
        &json!({"sessionId": "third", "strategy": "new"}),
    );
    s.result(&new);
    s.call("session/cancel", &json!({"sessionId": "other"}));
    assert_eq!(s.turn(&other).summary["stopReason"], "cancelled");
    let turn = s.turn(&next);
    assert_eq!(turn.one("data-recovery")["data"]["rung"], "resume");
    s.agent_states(&["stopping", "disconnected", "starting", "ready"]);
}

#[test]
fn strategy_new_replaces_a_stuck_session() {
    let mut s = stuck_agent(true);
    s.ensure("default");
    let next = abandon_turn(&mut s);
    let new = s.call("session/ensure", &json!({"strategy": "new"}));
    assert_eq!(new["recovery"]["rung"], "new");
    s.await_chunk("default", |c| c["delta"] == "y");
    s.call("session/cancel", &json!({"turnId": "next"}));
    assert_eq!(s.turn(&next).summary["stopReason"], "cancelled");
    assert_eq!(calls(&s.finish().log, "initialize").len(), 1);
}
