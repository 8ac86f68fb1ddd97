//! Sessions after the editor and acpipe were killed.

use super::editor::Editor;
use crate::harness::steps::{end, say, tool};
use crate::harness::{FAKE_AGENT, World, calls};
use serde_json::{Value, json};

/// Lines of updates that no parser of acpipe keeps as they are.
const ODD: &[&str] = &[
    r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"{session}","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"half a thou\u0067ht","_meta":{"n":1.50}},"x":1e3}}}"#,
    r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"{session}","update":{"sessionUpdate":"tool_call","toolCallId":"t1","title":"look","status":"in_progress","rawInput":{"b":1,"a":2.0},"_meta":{"z":null}},"_meta":{"trace":"t"}}}"#,
    r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"{session}","update":{"sessionUpdate":"_unknown_kind","deep":{"er":[{"_meta":{}},12345678901234567890]}},"extra":[ ]}}"#,
];

fn odd_steps() -> Vec<Value> {
    ODD.iter().map(|line| json!({"line": line})).collect()
}

/// Script of an agent that stops in mid-turn.
fn hanging() -> Value {
    let steps = [odd_steps(), vec![say("last"), json!({"hang": true})]].concat();
    json!({"session/prompt": [steps]})
}

#[test]
fn killed_editor_loads_every_update_of_the_interrupted_turn_unchanged() {
    let mut editor = Editor::ready(&hanging());
    let session = editor.open();
    editor.send_prompt(&session, "remember the number 7");
    let last = editor.await_text("last");
    let before = editor.lines(&session, 0..last + 1);
    assert_eq!(before.len(), ODD.len() + 1);
    for (line, odd) in before.iter().zip(ODD) {
        assert_eq!(*line, odd.replace("{session}", "SESSION"));
    }

    let mut editor = editor.killed_with(&json!({}));
    let (result, replayed) = editor.load(&session);
    assert!(replayed[0].contains("user_message_chunk") && replayed[0].contains("number 7"));
    assert_eq!(replayed[1..=before.len()], before);
    let memory = &result["_meta"]["acpipe"]["recovery"]["memory"];
    assert_eq!(memory, "lost", "{result}");
    let shown = editor.said(&session, "agent_thought_chunk", 0);
    assert!(
        shown.contains("acpipe: the agent does not remember the earlier messages"),
        "{shown}"
    );

    assert_eq!(editor.stop_reason(&session, "go on"), "end_turn");
    let log = editor.finish();
    let prompts = calls(&log, "session/prompt");
    let second = prompts[1].to_string();
    assert!(
        second.contains("number 7") && second.contains("half a thought"),
        "{second}"
    );
}

#[test]
fn session_that_was_loaded_twice_replays_each_update_once() {
    let script =
        json!({"session/prompt": [[say("one"), end("end_turn")], [say("two"), end("end_turn")]]});
    let mut editor = Editor::ready(&script);
    let session = editor.open();
    editor.stop_reason(&session, "first");
    editor.stop_reason(&session, "second");
    let mut editor = editor.restarted();
    editor.load(&session);
    let mut editor = editor.restarted();
    let (_, replayed) = editor.load(&session);
    let answers = chunks(&replayed);
    assert_eq!(answers.len(), 2, "{replayed:#?}");
    assert!(answers[0].contains("one") && answers[1].contains("two"));
    editor.finish();
}

#[test]
fn agent_that_can_load_keeps_its_memory_and_its_replay_is_not_repeated() {
    let can = json!({"protocolVersion": 1, "agentCapabilities": {"loadSession": true}});
    let script = json!({
        "initialize": [[{"reply": can}]],
        "session/load": [[say("the agent's replay"), {"reply": {}}]],
        "session/prompt": [[say("answer"), end("end_turn")]],
    });
    let mut editor = Editor::ready(&script);
    let session = editor.open();
    editor.stop_reason(&session, "hello");
    let mut editor = editor.killed();
    let (result, replayed) = editor.load(&session);
    let answers = chunks(&replayed);
    assert_eq!(answers.len(), 1, "{replayed:#?}");
    assert_eq!(result["_meta"]["acpipe"]["recovery"]["rung"], "load");
    assert_eq!(editor.said(&session, "agent_thought_chunk", 0), "");
    let log = editor.finish();
    assert_eq!(
        calls(&log, "session/load")[0]["params"]["sessionId"],
        "fake-1"
    );
}

#[test]
fn resumed_session_is_not_replayed() {
    let mut editor = Editor::ready(&json!({}));
    let session = editor.open();
    editor.stop_reason(&session, "secret word");
    let mut editor = editor.killed();
    let params = editor.of_session(&session);
    let result = editor.peer.result("session/resume", &params).unwrap();
    assert_eq!(result["_meta"]["acpipe"]["recovery"]["memory"], "lost");
    let shown = editor.said(&session, "agent_message_chunk", 0);
    assert_eq!(shown, "");
    editor.stop_reason(&session, "next");
    let log = editor.finish();
    assert!(
        calls(&log, "session/prompt")[1]
            .to_string()
            .contains("secret word")
    );
}

#[test]
fn tool_call_of_the_interrupted_turn_is_not_open_after_the_load() {
    let steps =
        json!([tool("t1", &json!({"title": "look", "status": "in_progress"})), {"hang": true}]);
    let mut editor = Editor::ready(&json!({"session/prompt": [steps]}));
    let session = editor.open();
    editor.send_prompt(&session, "go");
    editor.await_update(0, |update| update["toolCallId"] == "t1");
    let mut editor = editor.killed_with(&json!({}));
    editor.load(&session);
    let updates = editor.peer.updates(&session, 0, editor.peer.received.len());
    let mut calls = updates.iter().filter(|update| update["toolCallId"] == "t1");
    assert_eq!(
        calls.next_back().unwrap()["status"],
        "failed",
        "{updates:#?}"
    );
    editor.finish();
}

/// Returns the chunks of answers among these lines.
fn chunks(lines: &[String]) -> Vec<&String> {
    let is_chunk = |line: &&String| line.contains("agent_message_chunk");
    lines.iter().filter(is_chunk).collect()
}

#[test]
fn full_disk_fails_the_prompt_and_every_update_of_the_editor_is_stored() {
    let mut world = World::new();
    world.room = Some(128);
    let piece = json!([say(&format!("{{i}} {}", "x".repeat(500))), {"sleep": 2}]);
    let steps = json!([{"repeat": {"times": 400, "steps": piece}}, end("end_turn")]);
    let script = world.file(
        "agent.json",
        &json!({"session/prompt": [steps]}).to_string(),
    );
    let mut editor = Editor::launch(world, &["--", FAKE_AGENT, &script], &[]);
    editor.initialize(&super::editor::everything());
    let session = editor.open();
    let error = editor.prompt(&session, "go")["error"].clone();
    assert_eq!(error["data"]["kind"], "storage", "{error}");
    let shown = editor.lines(&session, 0..editor.peer.received.len());
    assert!(!shown.is_empty());

    editor.world.room = None;
    let mut editor = editor.killed();
    let (_, replayed) = editor.load(&session);
    // The updates after the failure may be stored, too.
    let (replayed, shown) = (chunks(&replayed), chunks(&shown));
    assert!(replayed.starts_with(&shown), "{replayed:#?} {shown:#?}");
    editor.finish();
}
