//! Messages outside of turns: updates of an agent without a prompt, or after its answer.

use crate::harness::server::Server;
use crate::harness::steps::{end, say, tool};
use serde_json::{Value, json};

/// Runs a turn, then makes the agent send these updates for the first session, by a later `session/ensure`.
/// Returns the unprompted message that they form.
fn unprompted_message(steps: &[Value]) -> (Server, Vec<Value>) {
    let late = steps.iter().map(|update| {
        json!({"notify": {"method": "session/update", "params": {"sessionId": "fake-1", "update": update}}})
    });
    let opens = std::iter::once(json!({"default": true}))
        .chain(late)
        .collect::<Vec<_>>();
    let mut s = Server::ready(&json!({
        "session/new": [[{"default": true}], opens],
        "session/prompt": [
            [said("a", "m1"), tool("t", &json!({"name": "Bash"})), end("end_turn")],
            [say("b"), end("end_turn")],
        ],
    }));
    assert_eq!(s.prompt("1").summary["text"], "a");
    s.ensure("other");
    s.await_chunk("default", |c| {
        c["type"] == "text-delta" || c["type"] == "tool-output-available"
    });
    let id = s.send_prompt("default", "2");
    let unprompted = s.unprompted("default");
    assert_eq!(s.turn(&id).summary["text"], "b");
    (s, unprompted)
}

fn said(text: &str, id: &str) -> Value {
    json!({"update": {"sessionUpdate": "agent_message_chunk", "messageId": id, "content": {"type": "text", "text": text}}})
}

#[test]
fn background_text_is_a_separate_message() {
    let (_, message) = unprompted_message(&[said("late", "m2")["update"].clone()]);
    assert_eq!(
        message[0]["messageMetadata"]["acp"],
        json!({"sessionId": "fake-1", "unprompted": true})
    );
    let deltas: Vec<_> = message
        .iter()
        .filter(|c| c["type"] == "text-delta")
        .collect();
    assert_eq!(deltas.len(), 1);
    assert_eq!(deltas[0]["delta"], "late");
    assert_eq!(message.last().unwrap()["finishReason"], "other");
}

/// Returns the id of the session's first answer.
fn first_answer(s: &mut Server) -> Value {
    let messages = s.call("message/list", &json!({}))["messages"].clone();
    assert_eq!(messages[1]["role"], "assistant");
    messages[1]["id"].clone()
}

#[test]
fn late_updates_name_the_message_they_continue() {
    let (mut s, message) = unprompted_message(&[
        json!({"sessionUpdate": "tool_call_update", "toolCallId": "t", "status": "completed"}),
    ]);
    let answer = first_answer(&mut s);
    let end = s.finish();
    assert!(end.stderr.is_empty(), "{}", end.stderr);
    assert_eq!(message[0]["messageMetadata"]["acp"]["continues"], answer);
    let shown = message
        .iter()
        .find(|c| c["type"] == "tool-input-available")
        .unwrap();
    assert_eq!(shown["toolName"], "Bash");
    let (mut s, message) = unprompted_message(&[said("more", "m1")["update"].clone()]);
    let answer = first_answer(&mut s);
    assert_eq!(message[0]["messageMetadata"]["acp"]["continues"], answer);
}

#[test]
fn session_updates_start_no_message() {
    let update = |update: Value| json!({"notify": {"method": "session/update", "params": {"sessionId": "fake-1", "_meta": {"n": 1}, "update": update}}});
    let mut s = Server::ready(&json!({"session/new": [[{"default": true}], [
        {"default": true},
        update(json!({"sessionUpdate": "_mine", "x": 1})),
        update(json!({"sessionUpdate": "notice", "severity": "info", "title": "T"})),
    ]]}));
    s.ensure("other");
    let other = s.chunk_outside_turns("default");
    assert_eq!(other["type"], "data-acp");
    assert_eq!(
        other["data"],
        json!({"update": {"sessionUpdate": "_mine", "x": 1}, "notification": {"_meta": {"n": 1}}})
    );
    let notice = s.chunk_outside_turns("default");
    assert_eq!(notice["type"], "data-notice");
    assert_eq!(notice["data"]["title"], "T");
}
