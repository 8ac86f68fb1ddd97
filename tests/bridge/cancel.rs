//! Cancelling a turn, at every stage and with every reaction of the agent.

use crate::harness::calls;
use crate::harness::server::{Server, Turn};
use crate::harness::steps::{end, say, tool, until_cancelled};
use serde_json::{Value, json};

fn run(before: &[Value], after: &[Value]) -> Value {
    let steps = [before, &[json!({"wait": "session/cancel"})], after].concat();
    json!({"session/prompt": [steps, [{"default": true}]]})
}

/// Prompts, waits for a matching chunk, cancels, and checks that the session still works.
fn cancelled_when(s: &mut Server, shown: impl Fn(&Value) -> bool) -> Turn {
    let id = s.send_prompt("default", "go");
    s.await_chunk("default", shown);
    assert_eq!(
        s.call("session/cancel", &json!({})),
        json!({"cancelled": true})
    );
    let turn = s.turn(&id);
    assert_eq!(s.prompt("again").summary["text"], "again");
    turn
}

#[test]
fn cancel_ends_a_turn_within_a_text() {
    let mut s = Server::ready(&run(&[say("so far")], &[say(" and on"), end("cancelled")]));
    let turn = cancelled_when(&mut s, |c| c["delta"] == "so far");
    assert_eq!(
        turn.last(),
        &json!({"type": "abort", "reason": "cancelled"})
    );
    let s = &turn.summary;
    assert_eq!(s["stopReason"], "cancelled");
    assert_eq!(s["finishReason"], "other");
    assert_eq!(s["isError"], false);
    assert_eq!(s["errorReason"], Value::Null);
    assert_eq!(s["text"], "so far and on");
    assert_eq!(s["metadata"]["cancelRequested"], true);
}

#[test]
fn cancel_ends_a_turn_within_a_tool_call() {
    let before = [tool(
        "t",
        &json!({"name": "bash", "status": "in_progress", "rawInput": {"c": 1}}),
    )];
    let mut s = Server::ready(&run(&before, &[end("cancelled")]));
    let turn = cancelled_when(&mut s, |c| c["type"] == "tool-input-available");
    let error = turn.one("tool-output-error");
    assert_eq!(error["errorText"], "Cancelled before it finished");
    assert_eq!(turn.summary["toolResults"][0]["isError"], true);
    assert_eq!(turn.summary["isError"], false);
    assert_eq!(turn.activity.last(), Some(&Value::Null));
}

#[test]
fn cancelled_turn_keeps_another_stop_reason_of_the_agent() {
    // (step of the agent, `stopReason`, type of the last chunk)
    let cases = [
        (end("end_turn"), "end_turn", "finish"),
        (end("max_tokens"), "max_tokens", "finish"),
        (end("odd"), "odd", "finish"),
        // After a requested cancel, an error or an invalid result is not a failure.
        (json!({"reply": null}), "cancelled", "abort"),
        (
            json!({"error": {"code": -32603, "message": "AbortError"}}),
            "cancelled",
            "abort",
        ),
    ];
    for (step, stop, last) in cases {
        let before = [say("x"), tool("t", &json!({"name": "n", "rawInput": 1}))];
        let mut s = Server::ready(&run(&before, std::slice::from_ref(&step)));
        let turn = cancelled_when(&mut s, |c| c["delta"] == "x");
        assert_eq!(turn.summary["stopReason"], stop, "{step}");
        assert_eq!(turn.last()["type"], last, "{step}");
        assert_eq!(turn.summary["isError"], false, "{step}");
        assert_eq!(turn.summary["metadata"]["cancelRequested"], true);
        assert_eq!(
            turn.one("tool-output-error")["errorText"],
            "Cancelled before it finished",
            "{step}"
        );
    }
}

#[test]
fn cancel_of_one_session_leaves_others_running() {
    let [wait, stop] = until_cancelled();
    let mut s = Server::ready(&json!({"session/prompt": [[say("x"), wait, stop]]}));
    s.ensure("b");
    let a = s.send_prompt("default", "go");
    let b = s.send_prompt("b", "go");
    s.await_chunk("default", |c| c["delta"] == "x");
    s.await_chunk("b", |c| c["delta"] == "x");
    s.call("session/cancel", &json!({"sessionId": "b"}));
    assert_eq!(s.turn(&b).summary["stopReason"], "cancelled");
    assert_eq!(calls(&s.world.log(), "session/cancel").len(), 1);
    assert_eq!(
        s.call_error(
            "session/prompt",
            &json!({"message": "x", "whenBusy": "reject"})
        )["data"]["kind"],
        "busy"
    );
    s.call("session/cancel", &json!({}));
    assert_eq!(s.turn(&a).summary["stopReason"], "cancelled");
}
