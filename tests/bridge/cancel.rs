//! Cancelling a turn, at every stage and with every reaction of the agent.

use crate::harness::calls;
use crate::harness::server::{Id, Server, Turn};
use crate::harness::steps::{ask, end, say, tool, until_cancelled};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

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
fn cancel_ends_a_turn_before_its_first_update() {
    let mut s = Server::ready(&run(&[], &[end("cancelled")]));
    let turn = cancelled_when(&mut s, |c| c["type"] == "start-step");
    assert_eq!(turn.summary["text"], "");
    assert_eq!(turn.last()["type"], "abort");
    let log = s.finish().log;
    assert_eq!(
        calls(&log, "session/cancel")[0],
        &json!({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": "fake-1"}})
    );
}

#[test]
fn cancel_of_an_idle_session_does_nothing() {
    let mut s = Server::ready(&json!({}));
    let nothing = json!({"cancelled": false});
    assert_eq!(s.call("session/cancel", &json!({})), nothing);
    assert_eq!(
        s.call("session/cancel", &json!({"sessionId": "unknown"})),
        nothing
    );
    let turn = s.prompt("x");
    let over = json!({"turnId": turn.summary["turnId"]});
    assert_eq!(s.call("session/cancel", &over), nothing);
    assert!(calls(&s.finish().log, "session/cancel").is_empty());
}

#[test]
fn cancel_with_a_turn_id_leaves_other_turns() {
    let mut s = Server::ready(&run(&[say("x")], &[end("cancelled")]));
    s.ensure("other");
    let id = s.send(
        "session/prompt",
        &json!({"message": "go", "turnId": "mine"}),
    );
    s.await_chunk("default", |c| c["delta"] == "x");
    for wrong in [
        json!({"turnId": "another"}),
        json!({"turnId": ""}),
        json!({"sessionId": "other"}),
        json!({"sessionId": "other", "turnId": "mine"}),
    ] {
        assert_eq!(
            s.call("session/cancel", &wrong)["cancelled"],
            false,
            "{wrong}"
        );
    }
    assert!(calls(&s.world.log(), "session/cancel").is_empty());
    let right = json!({"sessionId": "default", "turnId": "mine"});
    assert_eq!(s.call("session/cancel", &right)["cancelled"], true);
    assert_eq!(s.turn(&id).summary["stopReason"], "cancelled");
}

#[test]
fn second_cancel_is_not_sent_to_the_agent() {
    let mut s = Server::ready(&run(
        &[say("x")],
        &[{ json!({"sleep": 50}) }, end("cancelled")],
    ));
    let id = s.send_prompt("default", "go");
    s.await_chunk("default", |c| c["delta"] == "x");
    let cancels: Vec<Id> = (0..3)
        .map(|_| s.send("session/cancel", &json!({})))
        .collect();
    for cancel in &cancels {
        assert_eq!(s.result(cancel)["cancelled"], true);
    }
    s.turn(&id);
    assert_eq!(calls(&s.finish().log, "session/cancel").len(), 1);
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
fn agent_exit_after_a_cancel_ends_the_turn_as_cancelled() {
    let mut s = Server::ready(&run(&[say("x")], &[json!({"exit": 1})]));
    let id = s.send_prompt("default", "go");
    s.await_chunk("default", |c| c["delta"] == "x");
    s.call("session/cancel", &json!({}));
    let turn = s.turn(&id);
    assert_eq!(turn.summary["stopReason"], "cancelled");
    assert_eq!(turn.summary["isError"], false);
    let gone = s.notification("agent/state");
    assert_eq!(gone["state"], "disconnected");
    let reason = gone["reason"].as_str().unwrap();
    assert!(reason.contains("exit code 1"), "{reason}");
}

/// An agent ignores a cancel: after 5 s its turn is abandoned. The session waits for the agent, and other
/// sessions continue.
#[test]
fn unanswered_cancel_abandons_the_turn() {
    let question = ask(&json!({"toolCallId": "u"}), &[("y", "allow_once")]);
    let mut s = Server::ready(&json!({"session/prompt": [
        [
            say("x"),
            tool("t", &json!({"name": "n", "rawInput": 1})),
            {"wait": "session/cancel"},
            say("y"),
            // The agent continues when the test opens a session.
            {"wait": "session/new"},
            question,
            say("late"),
            end("cancelled"),
            say("over"),
        ],
        [{"default": true}],
    ]}));
    s.ensure("other");
    let id = s.send_prompt("default", "go");
    s.await_chunk("default", |c| c["type"] == "tool-input-available");
    let since = Instant::now();
    s.call("session/cancel", &json!({}));
    let turn = s.turn(&id);
    let took = since.elapsed();
    assert!(
        took >= Duration::from_millis(4900) && took < Duration::from_secs(10),
        "{took:?}"
    );
    assert_eq!(turn.summary["errors"][0]["kind"], "timeout");
    assert_eq!(turn.summary["errorReason"], "timeout exceeded");
    assert_eq!(turn.summary["text"], "xy");
    assert_eq!(turn.last()["type"], "error");
    let other = s.send_prompt("other", "alive");
    assert_eq!(s.turn(&other).summary["text"], "alive");

    // The agent still works on the turn: the session accepts no prompt, and permission requests are refused.
    let early = s.call_error(
        "session/prompt",
        &json!({"message": "x", "whenBusy": "reject"}),
    );
    assert_eq!(early["data"]["kind"], "busy");
    assert_eq!(s.call("session/cancel", &json!({}))["cancelled"], false);
    s.ensure("third");
    s.await_chunk("default", |c| c["delta"] == "over");
    // The agent has answered the abandoned turn, so the session is usable again.
    assert_eq!(s.ensure("default")["recovery"]["rung"], "live");
    let id = s.send_prompt("default", "back");
    let late = s.unprompted("default");
    assert_eq!(s.turn(&id).summary["text"], "back");
    let of = |kind: &str| {
        late.iter()
            .filter(|c| c["type"] == kind)
            .collect::<Vec<_>>()
    };
    assert_eq!(of("data-permission")[1]["data"]["approved"], false);
    let texts: Vec<_> = of("text-delta")
        .iter()
        .map(|c| c["delta"].clone())
        .collect();
    assert_eq!(texts, ["late"]);
    // The late answer ended the abandoned turn, so later text belongs to another message.
    let after = s.unprompted("default");
    assert!(after.iter().any(|c| c["delta"] == "over"));
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

#[test]
fn a_cancel_may_come_as_a_notification() {
    let mut s = Server::ready(&run(&[say("x")], &[end("cancelled")]));
    let id = s.send_prompt("default", "go");
    s.await_chunk("default", |c| c["delta"] == "x");
    s.notify("session/cancel", &json!({}));
    assert_eq!(s.turn(&id).summary["stopReason"], "cancelled");
}
