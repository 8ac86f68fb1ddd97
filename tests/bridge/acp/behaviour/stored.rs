//! Stored sessions: lists, closing, deleting, and sessions of other origin.

use super::editor::{Editor, everything};
use crate::harness::server::{Framing, Server};
use crate::harness::steps::{end, say, tool};
use crate::harness::{FAKE_AGENT, World, calls};
use serde_json::{Value, json};
use std::fs;

fn listed(editor: &mut Editor) -> Vec<Value> {
    let result = editor.peer.result("session/list", &json!({})).unwrap();
    result["sessions"].as_array().unwrap().clone()
}

#[test]
fn sessions_of_an_agent_without_a_list_are_listed_closed_and_deleted() {
    let mut editor = Editor::ready(&json!({}));
    let (one, two) = (editor.open(), editor.open());
    for session in [&one, &two] {
        assert_eq!(editor.stop_reason(session, "hello"), "end_turn");
    }
    let sessions = listed(&mut editor);
    let ids: Vec<&Value> = sessions
        .iter()
        .map(|session| &session["sessionId"])
        .collect();
    assert_eq!(sessions.len(), 2, "{sessions:?}");
    assert!(ids.contains(&&json!(one)) && ids.contains(&&json!(two)));
    assert_eq!(sessions[0]["cwd"], json!(editor.world.dir));
    let of = |session: &String| json!({"sessionId": session});
    editor.peer.result("session/close", &of(&one)).unwrap();
    assert_eq!(listed(&mut editor).len(), 2);
    editor.load(&one);
    assert_eq!(editor.stop_reason(&one, "again"), "end_turn");
    editor.peer.result("session/delete", &of(&one)).unwrap();
    let sessions = listed(&mut editor);
    assert_eq!(sessions.len(), 1, "{sessions:?}");
    assert_eq!(sessions[0]["sessionId"], json!(two));
    let params = editor.of_session(&one);
    assert_eq!(
        editor.peer.error("session/load", &params).unwrap()["code"],
        -32002
    );
    editor.finish();
}

#[test]
fn unknown_session_is_not_found() {
    let mut editor = Editor::ready(&json!({}));
    for method in ["session/load", "session/resume"] {
        let params = editor.of_session("nowhere");
        let error = editor.peer.error(method, &params).unwrap();
        assert_eq!(error["code"], -32002, "{error}");
        assert!(
            error["message"].as_str().unwrap().contains("nowhere"),
            "{error}"
        );
    }
    let prompt = editor.prompt("nowhere", "hello");
    assert_eq!(prompt["error"]["code"], -32002, "{prompt}");
    let mode = json!({"sessionId": "nowhere", "modeId": "x"});
    let error = editor.peer.error("session/set_mode", &mode).unwrap();
    assert_eq!(error["code"], -32002, "{error}");
    editor.finish();
}

#[test]
fn session_that_only_the_agent_has_is_loaded_with_its_replay() {
    let line = r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"theirs","update":{"sessionUpdate":"_novel","n":1.50}}}"#;
    let script = json!({
        "initialize": [[{"reply": {"protocolVersion": 1, "agentCapabilities": {"loadSession": true}}}]],
        "session/load": [[say("earlier"), {"line": line}, tool("t", &json!({"title": "x", "status": "completed"})),
            {"reply": {}}]],
    });
    let mut editor = Editor::ready(&script);
    let (_, replayed) = editor.load("theirs");
    assert_eq!(replayed.len(), 3, "{replayed:#?}");
    assert!(replayed[0].contains("earlier"));
    assert_eq!(replayed[1], line.replace("theirs", "SESSION"));
    assert_eq!(editor.stop_reason("theirs", "hello"), "end_turn");
    let mut editor = editor.killed();
    let (_, replayed) = editor.load("theirs");
    assert!(
        replayed.iter().any(|line| line.contains("hello")),
        "{replayed:#?}"
    );
    let log = editor.finish();
    assert_eq!(calls(&log, "session/new").len(), 0);
}

#[test]
fn session_of_acpipe_run_is_loaded_from_its_messages() {
    let world = World::new();
    let steps = json!([
        say("the answer"),
        tool(
            "t",
            &json!({"title": "look", "status": "completed",
        "rawInput": {"a": 1}})
        ),
        end("end_turn")
    ]);
    let script = world.file(
        "agent.json",
        &json!({"session/prompt": [steps]}).to_string(),
    );
    let args = ["--", FAKE_AGENT, &script];
    let mut editor = Editor::launch(world, &args, &[]);
    editor.acpipe(&[
        "run",
        "--session",
        "mine",
        "the question",
        "--",
        FAKE_AGENT,
        &script,
    ]);
    editor.initialize(&everything());
    let sessions = listed(&mut editor);
    assert_eq!(sessions.len(), 1, "{sessions:?}");
    let session = sessions[0]["sessionId"].as_str().unwrap().to_owned();
    let (_, replayed) = editor.load(&session);
    let all = replayed.join("\n");
    for part in [
        "user_message_chunk",
        "the question",
        "the answer",
        "\"toolCallId\":\"t\"",
    ] {
        assert!(all.contains(part), "{part}: {all}");
    }
    assert_eq!(editor.stop_reason(&session, "next"), "end_turn");
    editor.finish();
}

/// Runs a session with a picture in an editor and returns the editor and the session.
fn with_picture() -> (Editor, String) {
    let mut editor = Editor::ready(&json!({"initialize": [[{"reply": {"protocolVersion": 1,
        "agentCapabilities": {"promptCapabilities": {"image": true}}}}]],
        "session/prompt": [[say("a cat"), end("end_turn")]]}));
    let session = editor.open();
    let blocks = json!([{"type": "text", "text": "what is it?"},
        {"type": "image", "data": "aWNvbg==", "mimeType": "image/png"}]);
    let params = json!({"sessionId": session, "prompt": blocks});
    editor.peer.result("session/prompt", &params).unwrap();
    (editor, session)
}

#[test]
fn other_commands_of_acpipe_read_the_session() {
    let (mut editor, session) = with_picture();
    for (command, words) in [
        ("show", ["what is it?", "a cat"]),
        ("export", ["data-acp", "aWNvbg=="]),
    ] {
        let text = editor.acpipe(&["sessions", command, &session]);
        let has_all = words.iter().all(|word| text.contains(word));
        assert!(has_all, "{command}: {text}");
    }
    editor.peer.close().unwrap();
    let mut server = Server::launch(editor.world, &[], Framing::Lines, &[]);
    server.initialize();
    let list = server.call("message/list", &json!({"sessionId": session}));
    let parts = &list["messages"][0]["parts"];
    assert_eq!(parts[0]["text"], "what is it?");
    assert_eq!(parts[1]["type"], "data-acp");
    assert_eq!(parts[1]["data"]["mimeType"], "image/png");
    server.finish();
}

#[test]
fn log_without_updates_is_replayed_from_its_chunks() {
    let (mut editor, session) = with_picture();
    editor.peer.close().unwrap();
    editor.peer.wait().unwrap();
    let path = editor
        .world
        .dir
        .join(format!("state/sessions/{session}.jsonl"));
    let log = fs::read_to_string(&path).unwrap();
    let is_old = |line: &&str| !line.starts_with(r#"{"record":"update""#);
    let old: Vec<&str> = log.lines().filter(is_old).collect();
    assert!(old.len() < log.lines().count());
    fs::write(&path, old.join("\n") + "\n").unwrap();
    let mut editor = editor.killed();
    let (_, replayed) = editor.load(&session);
    let all = replayed.join("\n");
    for part in ["what is it?", "aWNvbg==", "a cat"] {
        assert!(all.contains(part), "{part}: {all}");
    }
    editor.finish();
}

#[test]
fn load_with_another_directory_fails_before_the_replay() {
    let mut editor = Editor::ready(&json!({}));
    let session = editor.open();
    assert_eq!(editor.stop_reason(&session, "hello"), "end_turn");
    let before = editor.peer.received.len();
    let params = json!({"sessionId": session, "cwd": "/", "mcpServers": []});
    let error = editor.peer.error("session/load", &params).unwrap();
    let message = error["message"].as_str().unwrap();
    assert!(
        message.contains("load it with its own directory"),
        "{error}"
    );
    let replayed = &editor.peer.received[before..];
    assert!(
        replayed
            .iter()
            .all(|message| message.get("method").is_none()),
        "{replayed:?}"
    );
    editor.finish();
}
