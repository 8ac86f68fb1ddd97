//! Prompts during a turn, and cancelling.

use super::editor::Editor;
use crate::harness::steps::{end, say, until_cancelled};
use crate::harness::{await_calls, calls};
use serde_json::json;

/// Steps of a turn that ends when the editor sends `_go`.
fn until_go() -> serde_json::Value {
    json!([say("begun"), {"wait": "_go"}, say("done"), end("end_turn")])
}

#[test]
fn second_prompt_waits_until_the_turn_ends() {
    let script = json!({"session/prompt": [until_go(), [say("second"), end("end_turn")]]});
    let mut editor = Editor::ready(&script);
    let session = editor.open();
    let first = editor.send_prompt(&session, "one");
    editor.await_text("begun");
    let second = editor.send_prompt(&session, "two");
    editor.peer.barrier().unwrap();
    assert_eq!(calls(&editor.world.log(), "session/prompt").len(), 1);
    editor.peer.notify("_go", &json!({"sessionId": session}));
    assert_eq!(
        editor.peer.response(&second).unwrap()["result"]["stopReason"],
        "end_turn"
    );
    assert!(editor.position(&first) < editor.position(&second));
    // The response to the first prompt waits for the disk, the second prompt does not.
    assert!(editor.await_text("done") < editor.await_text("second"));
    editor.finish();
}

#[test]
fn second_prompt_is_refused_with_when_busy_reject() {
    let script = json!({"session/prompt": [until_go()]});
    let mut editor = Editor::ready_with(&["--when-busy", "reject"], &script);
    let session = editor.open();
    let first = editor.send_prompt(&session, "one");
    editor.await_text("begun");
    let refused = editor.prompt(&session, "two");
    assert_eq!(refused["error"]["data"]["kind"], "busy", "{refused}");
    editor.peer.notify("_go", &json!({"sessionId": session}));
    assert_eq!(
        editor.peer.response(&first).unwrap()["result"]["stopReason"],
        "end_turn"
    );
    editor.finish();
}

#[test]
fn cancel_ends_the_turn_and_the_queued_prompt() {
    let running = [vec![say("begun")], until_cancelled().to_vec()].concat();
    let mut editor = Editor::ready(&json!({"session/prompt": [running]}));
    let session = editor.open();
    let first = editor.send_prompt(&session, "one");
    editor.await_text("begun");
    let second = editor.send_prompt(&session, "two");
    editor
        .peer
        .notify("session/cancel", &json!({"sessionId": session}));
    for prompt in [first, second] {
        let response = editor.peer.response(&prompt).unwrap();
        assert_eq!(response["result"]["stopReason"], "cancelled", "{response}");
    }
    let log = editor.finish();
    assert_eq!(calls(&log, "session/prompt").len(), 1);
    assert_eq!(calls(&log, "session/cancel").len(), 1);
}

#[test]
fn cancel_request_of_a_queued_prompt_leaves_the_running_turn() {
    let script = json!({"session/prompt": [until_go()]});
    let mut editor = Editor::ready(&script);
    let session = editor.open();
    let first = editor.send_prompt(&session, "one");
    editor.await_text("begun");
    let second = editor.send_prompt(&session, "two");
    let params = json!({"requestId": second});
    editor.peer.notify("$/cancel_request", &params);
    let response = editor.peer.response(&second).unwrap();
    assert_eq!(response["result"]["stopReason"], "cancelled", "{response}");
    editor.peer.notify("_go", &json!({"sessionId": session}));
    let response = editor.peer.response(&first).unwrap();
    assert_eq!(response["result"]["stopReason"], "end_turn", "{response}");
    let log = editor.finish();
    assert_eq!(calls(&log, "session/prompt").len(), 1);
}

#[test]
fn prompt_that_is_cancelled_while_its_session_opens_is_cancelled() {
    let mut editor = Editor::ready(&json!({}));
    let session = editor.open();
    editor.stop_reason(&session, "hello");
    let opening = json!({"session/new": [[{"wait": "_go"}, {"default": true}]]});
    let mut editor = editor.killed_with(&opening);
    let params = editor.of_session(&session);
    let load = editor.peer.request("session/load", &params);
    let prompt = editor.send_prompt(&session, "too early");
    editor
        .peer
        .notify("session/cancel", &json!({"sessionId": session}));
    let response = editor.peer.response(&prompt).unwrap();
    assert_eq!(response["result"]["stopReason"], "cancelled", "{response}");
    // A notification that comes before the call is not waited for.
    await_calls(&editor.world, "session/new", 2);
    editor.peer.notify("_go", &json!({}));
    assert!(editor.peer.response(&load).unwrap()["result"].is_object());
    let log = editor.finish();
    assert_eq!(calls(&log, "session/prompt").len(), 1);
}

#[test]
fn turn_without_output_and_a_failed_one_are_errors_for_the_editor() {
    let script = json!({"session/prompt": [
        [end("end_turn")],
        [say("no quota"), end("error")],
        [say("tired"), end("tired")],
    ]});
    let mut editor = Editor::ready(&script);
    let session = editor.open();
    for want in ["emptyTurn", "session"] {
        let response = editor.prompt(&session, "go");
        assert_eq!(response["error"]["data"]["kind"], want, "{response}");
    }
    let response = editor.prompt(&session, "go");
    assert_eq!(response["result"]["stopReason"], "end_turn", "{response}");
    editor.finish();
}
