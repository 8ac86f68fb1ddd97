//! Agents that crash.

use super::editor::Editor;
use crate::harness::steps::{end, say, tool};
use serde_json::{Value, json};

/// Script of an agent whose process exits in its first turn with a tool call open.
fn crashing_once(editor_dir: &str) -> Value {
    let open = tool("t1", &json!({"title": "look", "status": "in_progress"}));
    let crash = json!([open, {"stderr": "out of cheese"}, {"exit": 3}]);
    json!({"session/prompt": [[
        {"if": {"params": "crash", "then": [{"once": {"mark": editor_dir, "steps": crash}}]}},
        say("answer"), end("end_turn"),
    ]]})
}

fn start() -> (Editor, String) {
    let world = crate::harness::World::new();
    let mark = world.dir.join("crashed");
    let script = crashing_once(mark.to_str().unwrap());
    let script = world.file("agent.json", &script.to_string());
    let args = ["--", crate::harness::FAKE_AGENT, &script];
    let mut editor = Editor::launch(world, &args, &[]);
    editor.initialize(&super::editor::everything());
    let session = editor.open();
    (editor, session)
}

#[test]
fn crash_fails_the_open_tool_calls_and_the_prompt_and_the_next_prompt_works() {
    let (mut editor, session) = start();
    let failed = editor.prompt(&session, "crash");
    let message = failed["error"]["message"].as_str().unwrap();
    assert!(
        message.contains("exited") && message.contains('3'),
        "{message}"
    );
    assert!(!message.contains('\n'), "{message:?}");
    let updates = editor.peer.updates(&session, 0, editor.peer.received.len());
    let last = updates
        .iter()
        .rfind(|update| update["toolCallId"] == "t1")
        .unwrap();
    assert_eq!(last["status"], "failed", "{updates:#?}");

    let from = editor.peer.received.len();
    assert_eq!(editor.stop_reason(&session, "again"), "end_turn");
    let receipt = editor.await_update(from, |update| {
        update["_meta"]["acpipe"]["recovery"]["memory"] == "lost"
    });
    let answer = editor.await_update(from, |update| update["content"]["text"] == "answer");
    assert!(receipt < answer);
    assert!(
        editor
            .said(&session, "agent_thought_chunk", from)
            .contains("acpipe: the agent does not remember the earlier messages")
    );
    editor.finish();
}

#[test]
fn other_session_of_a_crashed_agent_works() {
    let (mut editor, crashed) = start();
    let other = editor.open();
    assert_eq!(editor.stop_reason(&other, "before"), "end_turn");
    assert!(editor.prompt(&crashed, "crash")["error"].is_object());
    let from = editor.peer.received.len();
    assert_eq!(editor.stop_reason(&other, "after"), "end_turn");
    assert_eq!(editor.said(&other, "agent_message_chunk", from), "answer");
    assert_eq!(editor.stop_reason(&crashed, "after"), "end_turn");
    editor.finish();
}

#[test]
fn request_that_was_passed_on_is_answered_when_the_agent_exits() {
    let mut editor = Editor::ready(&json!({"_x/ask": [[{"exit": 3}]]}));
    let session = editor.open();
    let error = editor
        .peer
        .error("_x/ask", &json!({"sessionId": session}))
        .unwrap();
    assert_eq!(error["data"]["kind"], "agentExited", "{error}");
    editor.finish();
}
