//! Claude Code behind `acpipe acp`, without its ACP adapter.

use super::editor::{Editor, everything};
use crate::acp::peer::Answer;
use crate::harness::claude::{answers, requests};
use serde_json::{Value, json};

fn start() -> (Editor, String) {
    start_with(&everything())
}

fn start_with(capabilities: &Value) -> (Editor, String) {
    let mut editor = Editor::of_claude(&[], &json!({}), capabilities);
    let session = editor.open();
    (editor, session)
}

/// Runs a turn in which the CLI performs these steps.
#[track_caller]
fn turn(editor: &mut Editor, session: &str, steps: &Value) {
    assert_eq!(editor.stop_reason(session, &steps.to_string()), "end_turn");
}

fn select(option: &str) -> Answer {
    Answer::Result(json!({"outcome": {"outcome": "selected", "optionId": option}}))
}

/// Chooses the first option of this kind.
fn choose(kind: &'static str) -> impl FnMut(&Value) -> Answer + Send + 'static {
    move |request| {
        let mut options = request["params"]["options"].as_array().unwrap().iter();
        let option = options.find(|option| option["kind"] == kind).unwrap();
        select(option["optionId"].as_str().unwrap())
    }
}

fn question() -> Value {
    json!([{"ask": {"tool_name": "AskUserQuestion", "tool_use_id": "t1", "requires_user_interaction": true,
        "input": {"questions": [{"question": "Which colour?", "header": "Colour", "multiSelect": false,
            "options": [{"label": "red", "description": "warm"}, {"label": "blue", "description": "cold"}]}]}}}])
}

fn answered_colour(log: &[Value]) -> Value {
    answers(log)[0]["response"]["updatedInput"]["answers"]["Which colour?"].clone()
}

#[test]
fn question_is_an_elicitation_for_an_editor_that_has_them() {
    let (mut editor, session) = start();
    editor.peer.answer_with(|request| {
        assert_eq!(request["params"]["mode"], "form");
        Answer::Result(json!({"action": "accept", "content": {"question_0": "blue"}}))
    });
    turn(&mut editor, &session, &question());
    assert_eq!(editor.asked("elicitation/create").len(), 1);
    let log = editor.finish();
    assert_eq!(answered_colour(&log), "blue");
}

#[test]
fn question_is_a_permission_request_for_an_editor_without_elicitation() {
    let (mut editor, session) = start_with(&json!({}));
    editor.peer.answer_with(|request| {
        let options = request["params"]["options"].as_array().unwrap();
        let blue = options
            .iter()
            .find(|option| option["name"] == "blue")
            .unwrap();
        select(blue["optionId"].as_str().unwrap())
    });
    turn(&mut editor, &session, &question());
    let asked = editor.asked("session/request_permission");
    assert_eq!(asked[0]["params"]["toolCall"]["title"], "Which colour?");
    let log = editor.finish();
    assert_eq!(answered_colour(&log), "blue");
}

#[test]
fn plan_is_approved_in_the_dialog_of_the_editor() {
    let (mut editor, session) = start();
    let params = json!({"sessionId": session, "modeId": "plan"});
    editor.peer.result("session/set_mode", &params).unwrap();
    editor.peer.answer_with(choose("allow_once"));
    let call = json!({"type": "assistant", "session_id": "{session}", "parent_tool_use_id": null, "message": {
        "id": "m1", "role": "assistant", "content": [
            {"type": "tool_use", "id": "t1", "name": "ExitPlanMode", "input": {"plan": "1. go"}}]}});
    let ask = json!({"subtype": "can_use_tool", "tool_name": "ExitPlanMode", "tool_use_id": "t1", "input": {},
        "requires_user_interaction": true});
    turn(
        &mut editor,
        &session,
        &json!([{"frame": call}, {"request": ask}]),
    );
    let asked = editor.asked("session/request_permission");
    assert_eq!(asked.len(), 1);
    assert!(asked[0].to_string().contains("1. go"), "{}", asked[0]);
    let log = editor.finish();
    assert_eq!(answers(&log)[0]["response"]["behavior"], "allow");
    assert_eq!(requests(&log, "set_permission_mode")[0]["mode"], "plan");
}

#[test]
fn killed_editor_loads_the_session_and_claude_resumes_it() {
    let (mut editor, session) = start();
    turn(&mut editor, &session, &json!([{"say": "first answer"}]));
    let before = editor.lines(&session, 0..editor.peer.received.len());
    let before: Vec<&String> = before
        .iter()
        .filter(|line| line.contains("agent_message"))
        .collect();
    let mut editor = editor.killed();
    let (result, replayed) = editor.load(&session);
    let after: Vec<&String> = replayed
        .iter()
        .filter(|line| line.contains("agent_message"))
        .collect();
    assert_eq!(after, before);
    let recovery = &result["_meta"]["acpipe"]["recovery"];
    assert_eq!(
        (&recovery["rung"], &recovery["memory"]),
        (&json!("resume"), &json!("kept")),
        "{result}"
    );
    turn(&mut editor, &session, &json!([{"say": "second answer"}]));
    editor.finish();
}

#[test]
fn modes_and_models_are_options() {
    let mut editor = Editor::of_claude(&[], &json!({}), &everything());
    let created = editor.create();
    let session = created["sessionId"].as_str().unwrap().to_owned();
    let ids: Vec<&Value> = created["configOptions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|o| &o["id"])
        .collect();
    assert_eq!(ids, ["mode", "model"], "{created}");
    assert!(created["modes"].is_object() && created["models"].is_object());
    let params = json!({"sessionId": session, "configId": "model", "value": "haiku"});
    let result = editor
        .peer
        .result("session/set_config_option", &params)
        .unwrap();
    assert_eq!(
        result["configOptions"][1]["currentValue"], "haiku",
        "{result}"
    );
    let params = json!({"sessionId": session, "configId": "mode", "value": "plan"});
    let result = editor
        .peer
        .result("session/set_config_option", &params)
        .unwrap();
    assert_eq!(
        result["configOptions"][0]["currentValue"], "plan",
        "{result}"
    );
    let params = json!({"sessionId": session, "configId": "mode", "value": "sideways"});
    assert_eq!(
        editor
            .peer
            .error("session/set_config_option", &params)
            .unwrap()["code"],
        -32602
    );
    let log = editor.finish();
    assert_eq!(requests(&log, "set_model")[0]["model"], "haiku");
    assert_eq!(requests(&log, "set_permission_mode")[0]["mode"], "plan");
}
