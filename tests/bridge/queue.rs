//! Prompts to a busy session: they wait in a queue, and each runs once.

use crate::harness::server::{Id, Server};
use crate::harness::steps::{end, say, until_cancelled};
use crate::harness::{calls, claude};
use serde_json::{Value, json};

/// Script of an agent whose first turn sends "x" and ends when it is cancelled; later turns repeat their
/// prompt.
fn first_turn_waits() -> Value {
    let [wait, stop] = until_cancelled();
    json!({"session/prompt": [[say("x"), wait, stop], [{"default": true}]]})
}

fn prompt(s: &mut Server, turn: &str) -> Id {
    s.send("session/prompt", &json!({"message": turn, "turnId": turn}))
}

/// Starts a first turn, and queues prompts behind it.
fn waiting(script: &Value, turns: &[&str]) -> (Server, Id, Vec<Id>) {
    let mut s = Server::ready(script);
    let first = prompt(&mut s, "first");
    s.await_chunk("default", |c| c["delta"] == "x");
    let waiting = turns.iter().map(|turn| prompt(&mut s, turn)).collect();
    s.await_queue("default", turns);
    (s, first, waiting)
}

fn cancel(s: &mut Server, params: &Value) -> bool {
    s.call("session/cancel", params)["cancelled"] == true
}

/// Returns the texts of the agent's prompts, in order.
fn prompted(s: &Server) -> Vec<Value> {
    let log = s.world.log();
    let prompts = calls(&log, "session/prompt");
    let text = |p: &&Value| p["params"]["prompt"][0]["text"].clone();
    prompts.iter().map(text).collect()
}

#[test]
fn queued_prompts_run_in_order_one_at_a_time() {
    let (mut s, first, waiting) = waiting(&first_turn_waits(), &["a", "b", "c"]);
    assert_eq!(prompted(&s), ["first"]);
    assert!(cancel(&mut s, &json!({})));
    assert_eq!(s.turn(&first).summary["stopReason"], "cancelled");
    for (id, turn) in waiting.iter().zip(["a", "b", "c"]) {
        let turn_of = s.turn(id);
        assert_eq!(turn_of.summary["text"], turn);
        assert_eq!(turn_of.summary["turnId"], turn);
    }
    s.await_queue("default", &[]);
    assert_eq!(prompted(&s), ["first", "a", "b", "c"]);
    assert_eq!(calls(&s.finish().log, "session/cancel").len(), 1);
}

#[test]
fn queued_prompt_can_be_cancelled_alone() {
    let (mut s, first, ids) = waiting(&first_turn_waits(), &["a", "b", "c"]);
    assert!(cancel(&mut s, &json!({"turnId": "b"})));
    s.await_queue("default", &["a", "c"]);
    assert_eq!(s.error(&ids[1])["data"]["kind"], "cancelled");
    assert!(!cancel(&mut s, &json!({"turnId": "b"})));
    assert!(calls(&s.world.log(), "session/cancel").is_empty());
    // A cancel without a turn id means the running turn, and is harmless when repeated.
    assert!(cancel(&mut s, &json!({})));
    s.turn(&first);
    assert_eq!(s.turn(&ids[0]).summary["text"], "a");
    assert_eq!(s.turn(&ids[2]).summary["text"], "c");
    assert!(!cancel(&mut s, &json!({})));
    assert_eq!(prompted(&s), ["first", "a", "c"]);
}

#[test]
fn cancel_without_a_turn_removes_the_first_queued_prompt() {
    let mut s = Server::initialized(&[]);
    s.connect(&json!({"session/new": [[{"wait": "session/list"}, {"default": true}]]}));
    let ensured = s.send("session/ensure", &json!({}));
    s.await_agent_call("session/new");
    let [a, b] = ["a", "b"].map(|turn| prompt(&mut s, turn));
    s.await_queue("default", &["a", "b"]);
    assert!(cancel(&mut s, &json!({})));
    assert_eq!(s.error(&a)["data"]["kind"], "cancelled");
    s.await_queue("default", &["b"]);
    assert!(cancel(&mut s, &json!({})));
    assert_eq!(s.error(&b)["data"]["kind"], "cancelled");
    // The next cancel ends the opening itself.
    assert!(cancel(&mut s, &json!({})));
    assert_eq!(s.error(&ensured)["data"]["kind"], "cancelled");
    assert!(!cancel(&mut s, &json!({})));
    s.call("agent/disconnect", &json!({}));
    s.agent_states(&["stopping", "disconnected"]);
    assert!(prompted(&s).is_empty());
}

#[test]
fn prompts_over_the_queue_limit_are_refused() {
    let names: Vec<String> = (0..32).map(|n| format!("t{n}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let (mut s, first, waiting) = waiting(&first_turn_waits(), &names);
    let error = s.call_error("session/prompt", &json!({"message": "too many"}));
    assert_eq!(error["code"], -32001);
    assert_eq!(error["data"]["kind"], "overloaded");
    // The queue of another session is not full.
    s.ensure("other");
    let other = s.send_prompt("other", "x");
    assert_eq!(s.turn(&other).summary["text"], "x");
    s.call("session/cancel", &json!({}));
    s.turn(&first);
    for id in &waiting {
        s.turn(id);
    }
}

#[test]
fn large_prompts_are_refused_while_others_wait() {
    let [wait, stop] = until_cancelled();
    let script = json!({"session/prompt": [[say("x"), wait, stop], [say("y"), end("end_turn")]]});
    let (mut s, first, waiting) = waiting(&script, &["a"]);
    let large = json!({"message": "x".repeat(17 << 20)});
    let error = s.call_error("session/prompt", &large);
    assert_eq!(error["data"]["kind"], "overloaded");
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("more than 16 MiB"), "{message}");
    assert!(cancel(&mut s, &json!({"turnId": "a"})));
    assert_eq!(s.error(&waiting[0])["data"]["kind"], "cancelled");
    let large = s.send("session/prompt", &large);
    assert!(cancel(&mut s, &json!({})));
    s.turn(&first);
    assert_eq!(s.turn(&large).summary["text"], "y");
}

#[test]
fn turn_id_in_use_is_not_run_twice() {
    let (mut s, first, ids) = waiting(&first_turn_waits(), &["a"]);
    for (turn, when_busy) in [("first", "queue"), ("a", "queue"), ("a", "reject")] {
        let again =
            json!({"message": "again", "turnId": turn, "whenBusy": when_busy, "rerun": true});
        let error = s.call_error("session/prompt", &again);
        assert_eq!(error["data"]["kind"], "busy", "{turn}");
        assert_eq!(error["data"]["turnId"], turn);
    }
    let wrong = json!({"message": {"parts": [{"type": "text"}]}});
    let error = s.call_error("session/prompt", &wrong);
    assert_eq!(error["data"]["kind"], "invalidParams");
    for call in ["session/close", "session/clear", "message/clear"] {
        let error = s.call_error(call, &json!({}));
        assert_eq!(error["data"]["kind"], "busy", "{call}");
    }
    s.call("session/cancel", &json!({}));
    s.turn(&first);
    s.turn(&ids[0]);
    assert_eq!(prompted(&s), ["first", "a"]);
}

#[test]
fn crash_fails_the_running_turn_and_keeps_the_queue() {
    let mut s = Server::initialized(&[]);
    let mark = s.world.dir.join("mark");
    let dies =
        json!({"once": {"mark": mark, "steps": [say("x"), {"wait": "session/list"}, {"exit": 3}]}});
    s.connect(&json!({
        "initialize": [[{"reply": {"protocolVersion": 1, "agentCapabilities":
            {"sessionCapabilities": {"resume": {}, "list": {}}}}}]],
        "session/resume": [[{"reply": {}}]],
        "session/prompt": [[dies, {"default": true}]],
    }));
    s.ensure("default");
    let first = prompt(&mut s, "first");
    s.await_chunk("default", |c| c["delta"] == "x");
    let [a, b] = ["a", "b"].map(|turn| prompt(&mut s, turn));
    s.await_queue("default", &["a", "b"]);
    let list = s.send("session/list", &json!({"agent": true}));
    let failed = s.turn(&first);
    assert_eq!(failed.summary["errors"][0]["kind"], "agentExited");
    s.result(&list);
    let turn = s.turn(&a);
    assert_eq!(turn.summary["text"], "a");
    assert_eq!(turn.one("data-recovery")["data"]["rung"], "resume");
    assert_eq!(s.turn(&b).summary["text"], "b");
    s.agent_states(&["disconnected", "starting", "ready"]);
    assert_eq!(prompted(&s), ["first", "a", "b"]);
}

#[test]
fn disconnect_fails_every_queued_prompt() {
    let (mut s, first, ids) = waiting(&first_turn_waits(), &["a", "b"]);
    s.call("agent/disconnect", &json!({}));
    assert_eq!(s.turn(&first).summary["stopReason"], "cancelled");
    for id in &ids {
        assert_eq!(s.error(id)["data"]["kind"], "cancelled");
    }
    s.await_queue("default", &[]);
    s.agent_states(&["stopping", "disconnected"]);
    assert_eq!(prompted(&s), ["first"]);
}

#[test]
fn new_environment_applies_to_later_prompts() {
    let (mut s, first, ids) = waiting(&first_turn_waits(), &["a"]);
    let update = s.send("agent/updateEnvironment", &json!({"set": {"TOKEN": "t"}}));
    let late = prompt(&mut s, "late");
    s.await_queue("default", &["a", "late"]);
    s.call("session/cancel", &json!({}));
    s.turn(&first);
    assert_eq!(s.turn(&ids[0]).summary["text"], "a");
    // The new process also waits in its first turn.
    s.await_chunk("default", |c| c["type"] == "data-recovery");
    assert_eq!(s.result(&update)["restarted"], true);
    s.call("session/cancel", &json!({"turnId": "late"}));
    assert_eq!(s.turn(&late).summary["text"], "x");
    s.agent_states(&["stopping", "disconnected", "starting", "ready"]);
    let log = s.world.log();
    let methods: Vec<&str> = log.iter().filter_map(|m| m["method"].as_str()).collect();
    let new = methods.iter().rposition(|m| *m == "initialize").unwrap();
    let prompts = |methods: &[&str]| methods.iter().filter(|m| **m == "session/prompt").count();
    assert_eq!((prompts(&methods[..new]), prompts(&methods[new..])), (2, 1));
}

#[test]
fn claude_gets_one_prompt_at_a_time() {
    let mut s = claude::ready(&json!({}));
    let first = s.send_steps("default", &json!([{"delta": "x"}, {"interrupted": true}]));
    s.await_chunk("default", |c| c["delta"] == "x");
    let [a, b] = ["a", "b"].map(|turn| prompt(&mut s, turn));
    s.await_queue("default", &["a", "b"]);
    let users = |s: &Server| {
        s.world
            .log()
            .iter()
            .filter(|m| m["got"]["type"] == "user")
            .count()
    };
    assert_eq!(users(&s), 1);
    s.call("session/cancel", &json!({}));
    assert_eq!(s.turn(&first).summary["stopReason"], "cancelled");
    assert_eq!(s.turn(&a).summary["text"], "a");
    // If the process exits during a turn, the queued prompt goes to the next process.
    let dies = s.send_steps(
        "default",
        &json!([{"delta": "y"}, {"wait": "set_model"}, {"exit": 1}]),
    );
    assert_eq!(s.turn(&b).summary["text"], "b");
    s.await_chunk("default", |c| c["delta"] == "y");
    let last = prompt(&mut s, "last");
    s.await_queue("default", &["last"]);
    let set = s.send("session/setModel", &json!({"model": "haiku"}));
    s.answer(&set);
    assert_eq!(s.turn(&dies).summary["errors"][0]["kind"], "agentExited");
    assert_eq!(s.turn(&last).summary["text"], "last");
}

#[test]
fn refused_prompt_lets_the_next_run() {
    let (mut s, first, _) = waiting(&first_turn_waits(), &[]);
    let image = json!({"message": {"parts": [{"type": "file", "mediaType": "image/png",
        "url": "data:image/png;base64,AAAA"}]}, "turnId": "image"});
    let image = s.send("session/prompt", &image);
    let after = prompt(&mut s, "after");
    s.await_queue("default", &["image", "after"]);
    s.call("session/cancel", &json!({}));
    s.turn(&first);
    let error = s.error(&image);
    assert_eq!(error["data"]["kind"], "invalidParams", "{error}");
    assert!(
        error["message"].as_str().unwrap().contains("image"),
        "{error}"
    );
    assert_eq!(s.turn(&after).summary["text"], "after");
}
