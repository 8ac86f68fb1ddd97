//! Messages that are sent into a running turn.

use crate::harness::claude;
use crate::harness::server::{Server, Turn};
use crate::harness::steps::{say, until_cancelled};
use serde_json::{Value, json};

fn texts(turn: &Turn) -> Vec<String> {
    let deltas = turn.of("text-delta").into_iter();
    deltas
        .map(|chunk| chunk["delta"].as_str().unwrap().to_owned())
        .collect()
}

/// Waits until the turn has begun.
fn await_text(s: &mut Server) {
    s.await_chunk("default", |chunk| chunk["type"] == "text-delta");
}

fn steer(s: &mut Server, message: &str) -> Value {
    s.call("session/steer", &json!({ "message": message }))
}

#[test]
fn message_reaches_the_running_turn_of_claude() {
    let mut s = claude::ready(&json!({}));
    assert_eq!(
        s.call("agent/status", &json!({}))["capabilities"]["steer"],
        true
    );
    let prompt = s.send_steps(
        "default",
        &json!([{"delta": "one"}, {"steered": true}, {"say": "two"}]),
    );
    await_text(&mut s);
    let steered = steer(&mut s, "also this");
    let turn = s.turn(&prompt);
    assert_eq!(texts(&turn).join(" "), "one also this two");
    assert_eq!(steered["turnId"], turn.summary["turnId"]);
    let data = &turn.one("data-user-message")["data"];
    assert_eq!(data["messageId"], steered["messageId"]);
    assert_eq!(data["message"]["parts"][0]["text"], "also this");
    assert_eq!(data["steering"], true);
    // The message history has it in the answer, where it was sent.
    let list = s.call("message/list", &json!({}));
    let parts = list["messages"][1]["parts"].as_array().unwrap();
    let kinds: Vec<&str> = parts
        .iter()
        .map(|part| part["type"].as_str().unwrap())
        .collect();
    let at = kinds
        .iter()
        .position(|kind| *kind == "data-user-message")
        .unwrap();
    assert_eq!(kinds[at - 1], "text", "{kinds:?}");
    assert!(kinds[at + 1..].contains(&"text"), "{kinds:?}");
    assert_eq!(s.prompt("on").summary["text"], "on");
}

#[test]
fn message_that_the_turn_does_not_take_begins_a_background_turn() {
    let mut s = claude::ready(&json!({}));
    let prompt = s.send_steps("default", &json!([{"delta": "one"}, {"wait": "set_model"}]));
    await_text(&mut s);
    steer(&mut s, "late");
    s.call("session/setModel", &json!({"model": "haiku"}));
    assert_eq!(texts(&s.turn(&prompt)), ["one"]);
    let unprompted = s.unprompted("default");
    assert!(unprompted.iter().any(|chunk| chunk["delta"] == "late"));
    assert_eq!(s.prompt("two").summary["text"], "two");
    let list = s.call("message/list", &json!({}));
    let answers = list["messages"].to_string();
    assert!(answers.contains("late"), "{answers}");
}

#[test]
fn cancel_withdraws_a_message_that_the_turn_did_not_take() {
    let mut s = claude::ready(&json!({}));
    let prompt = s.send_steps(
        "default",
        &json!([{"delta": "one"}, {"wait": "cancel_async_message"}, {"interrupted": true}]),
    );
    await_text(&mut s);
    steer(&mut s, "never");
    s.call("session/cancel", &json!({}));
    assert_eq!(s.turn(&prompt).summary["stopReason"], "cancelled");
    assert_eq!(s.prompt("on").summary["text"], "on");
    let log = s.finish().log;
    assert_eq!(claude::requests(&log, "cancel_async_message").len(), 1);
}

#[test]
fn steering_is_refused_without_a_turn_or_by_an_agent_that_cannot() {
    let mut s = claude::ready(&json!({}));
    let error = s.call_error("session/steer", &json!({"message": "x"}));
    assert_eq!(error["data"]["kind"], "outOfOrder");
    let prompt = s.send_steps("default", &json!([{"delta": "one"}, {"interrupted": true}]));
    await_text(&mut s);
    let error = s.call_error("session/steer", &json!({"message": "x", "turnId": "other"}));
    assert!(
        error["message"].as_str().unwrap().contains("does not run"),
        "{error}"
    );
    s.call("session/cancel", &json!({}));
    s.turn(&prompt);
    let [wait, stop] = until_cancelled();
    let mut s = Server::ready(&json!({"session/prompt": [[say("x"), wait, stop]]}));
    let prompt = s.send_prompt("default", "go");
    await_text(&mut s);
    let error = s.call_error("session/steer", &json!({"message": "x"}));
    assert_eq!(error["data"]["kind"], "outOfOrder");
    assert!(
        error["message"]
            .as_str()
            .unwrap()
            .contains("takes no messages during a turn"),
        "{error}"
    );
    s.call("session/cancel", &json!({}));
    s.turn(&prompt);
}
