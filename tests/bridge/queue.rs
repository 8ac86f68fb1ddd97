//! Prompts to a busy session: they wait in a queue, and each runs once.

use crate::harness::calls;
use crate::harness::server::{Id, Server};
use crate::harness::steps::{say, until_cancelled};
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
