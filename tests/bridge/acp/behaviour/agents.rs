//! An agent for each session.

use super::editor::{Editor, everything};
use crate::harness::steps::{end, say};
use crate::harness::{FAKE_AGENT, World, calls};
use serde_json::{Value, json};
use std::fmt::Write as _;

fn options() -> Value {
    json!([{"id": "x", "name": "X", "type": "select", "currentValue": "a",
        "options": [{"value": "a", "name": "A"}, {"value": "b", "name": "B"}]}])
}

fn script(name: &str) -> Value {
    let update =
        json!({"update": {"sessionUpdate": "config_option_update", "configOptions": options()}});
    json!({
        "initialize": [[{"reply": {"protocolVersion": 1, "agentInfo": {"name": name, "version": "1"}}}]],
        "session/new": [[{"reply": {"sessionId": name, "configOptions": options()}}]],
        "session/set_config_option": [[{"reply": {"configOptions": options()}}]],
        "session/prompt": [[say(&format!("{name} says")), update, end("end_turn")]],
    })
}

/// Starts an editor with the agents `one` and `two`, and `three`, which the editor may not choose.
fn start() -> Editor {
    let world = World::new();
    let mut config = String::new();
    for name in ["one", "two", "three"] {
        let script = world.script(&script(name));
        let _ = writeln!(
            config,
            "[agents.{name}]\ncommand = {FAKE_AGENT:?}\nargs = [{script:?}]"
        );
    }
    world.configure(&config);
    let mut editor = Editor::launch(world, &["--agent", "one", "--agent", "two"], &[]);
    let result = editor.initialize(&everything());
    assert_eq!(result["agentInfo"]["name"], "one");
    editor
}

fn create_with(editor: &mut Editor, agent: &str) -> Value {
    let params = json!({"cwd": editor.world.dir, "mcpServers": [], "_meta": {"acpipe": {"agent": agent}, "z": 1}});
    editor.peer.call("session/new", &params).unwrap()
}

fn agent_option(options: &Value) -> Value {
    let mut options = options.as_array().unwrap().iter();
    options
        .find(|option| option["id"] == "acpipe.agent")
        .unwrap()
        .clone()
}

#[test]
fn editor_chooses_the_agent_of_a_session() {
    let mut editor = start();
    let session = create_with(&mut editor, "two")["result"].clone();
    let option = agent_option(&session["configOptions"]);
    assert_eq!(option["currentValue"], "two");
    let names: Vec<&Value> = option["options"]
        .as_array()
        .unwrap()
        .iter()
        .map(|o| &o["value"])
        .collect();
    assert_eq!(names, ["one", "two"]);
    assert_eq!(session["_meta"]["acpipe"]["agent"], "two");
    let id = session["sessionId"].as_str().unwrap();
    assert_eq!(editor.stop_reason(id, "hello"), "end_turn");
    assert_eq!(editor.said(id, "agent_message_chunk", 0), "two says");
    let log = editor.finish();
    let created = calls(&log, "session/new");
    assert_eq!(created.len(), 1);
    assert_eq!(created[0]["params"]["_meta"], json!({"z": 1}));
}

#[test]
fn unknown_agent_is_an_error_with_the_names() {
    let mut editor = start();
    for name in ["three", "nobody"] {
        let error = create_with(&mut editor, name)["error"].clone();
        assert_eq!(error["code"], -32602, "{error}");
        let message = error["message"].as_str().unwrap();
        assert!(
            message.contains(name) && message.contains("one, two"),
            "{message}"
        );
    }
    let session = editor.open();
    let params = json!({"sessionId": session, "configId": "acpipe.agent", "value": "three"});
    let error = editor
        .peer
        .error("session/set_config_option", &params)
        .unwrap();
    assert!(
        error["message"].as_str().unwrap().contains("one, two"),
        "{error}"
    );
    editor.finish();
}

#[test]
fn switch_of_the_agent_hands_the_conversation_over() {
    let mut editor = start();
    let session = editor.open();
    assert_eq!(editor.stop_reason(&session, "my number is 7"), "end_turn");
    let params = json!({"sessionId": session, "configId": "acpipe.agent", "value": "two"});
    let result = editor
        .peer
        .result("session/set_config_option", &params)
        .unwrap();
    assert_eq!(
        agent_option(&result["configOptions"])["currentValue"],
        "two"
    );
    let shown = editor.said(&session, "agent_thought_chunk", 0);
    assert!(
        shown.contains("continues the session of the agent one"),
        "{shown}"
    );
    let from = editor.peer.received.len();
    assert_eq!(editor.stop_reason(&session, "which number?"), "end_turn");
    assert_eq!(
        editor.said(&session, "agent_message_chunk", from),
        "two says"
    );
    let log = editor.finish();
    let prompts = calls(&log, "session/prompt");
    assert_eq!(prompts[1]["params"]["sessionId"], "two");
    assert!(prompts[1].to_string().contains("my number is 7"));
}

#[test]
fn options_that_the_agent_reports_keep_the_option_of_the_agent() {
    let mut editor = start();
    let session = editor.open();
    assert_eq!(editor.stop_reason(&session, "hello"), "end_turn");
    let at = editor.await_update(0, |update| {
        update["sessionUpdate"] == "config_option_update"
    });
    let update = &editor.peer.received[at]["params"]["update"];
    assert_eq!(update["configOptions"][0], options()[0]);
    assert_eq!(
        agent_option(&update["configOptions"])["currentValue"],
        "one"
    );
    let params = json!({"sessionId": session, "configId": "x", "value": "b"});
    let result = editor
        .peer
        .result("session/set_config_option", &params)
        .unwrap();
    assert_eq!(
        agent_option(&result["configOptions"])["currentValue"],
        "one"
    );
    let log = editor.finish();
    assert_eq!(calls(&log, "session/set_config_option").len(), 1);
}

#[test]
fn agent_of_an_unknown_session_cannot_be_set() {
    let mut editor = start();
    let params = json!({"sessionId": "ghost", "configId": "acpipe.agent", "value": "two"});
    let error = editor.peer.error("session/set_config_option", &params);
    assert_eq!(error.unwrap()["code"], -32002);
    let listed = editor.peer.result("session/list", &json!({})).unwrap();
    assert_eq!(listed["sessions"], json!([]));
    editor.finish();
}
