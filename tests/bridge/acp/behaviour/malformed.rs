//! Malformed input, and the end of input.

use super::editor::{Editor, everything};
use crate::harness::steps::{end, say};
use crate::harness::{LIMIT, calls};
use serde_json::{Value, json};
use std::time::Instant;

/// Waits until the agent's log has this method.
#[track_caller]
fn await_call(editor: &Editor, method: &str) {
    let since = Instant::now();
    while calls(&editor.world.log(), method).is_empty() {
        assert!(since.elapsed() < LIMIT, "{method} did not arrive");
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
}

#[test]
fn each_malformed_line_gets_one_error() {
    let mut editor = Editor::ready(&json!({}));
    let session = editor.open();
    let lines = [
        ("not JSON", -32700),
        (
            "[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\"}]",
            -32600,
        ),
        ("7", -32600),
        ("{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"x\"}", -32600),
        ("{\"jsonrpc\":\"2.0\",\"id\":true,\"method\":\"x\"}", -32600),
    ];
    for (line, code) in lines {
        let from = editor.peer.received.len();
        editor.peer.send_line(line);
        editor.peer.barrier().unwrap();
        let answers: Vec<&Value> = editor.peer.received[from..]
            .iter()
            .filter(|message| message["id"].is_null())
            .collect();
        assert_eq!(answers.len(), 1, "{line}: {answers:?}");
        assert_eq!(answers[0]["error"]["code"], code, "{line}: {answers:?}");
    }
    assert_eq!(editor.stop_reason(&session, "still here"), "end_turn");
    editor.finish();
}

#[test]
fn wrong_parameters_are_invalid() {
    let mut editor = Editor::ready(&json!({}));
    let session = editor.open();
    let cwd = json!(editor.world.dir);
    let cases = [
        ("session/new", json!({})),
        ("session/new", json!({"cwd": 7, "mcpServers": []})),
        ("session/new", json!({"cwd": "relative", "mcpServers": []})),
        ("session/new", json!({"cwd": cwd, "mcpServers": {}})),
        (
            "session/new",
            json!({"cwd": cwd, "mcpServers": [{"name": "x"}]}),
        ),
        (
            "session/new",
            json!({"cwd": cwd, "mcpServers": [], "_meta": {"acpipe": {"agent": 7}}}),
        ),
        ("session/load", json!({"cwd": cwd, "mcpServers": []})),
        (
            "session/load",
            json!({"cwd": cwd, "mcpServers": [], "sessionId": ["x"]}),
        ),
        ("session/prompt", json!({"sessionId": session})),
        (
            "session/prompt",
            json!({"sessionId": session, "prompt": "text"}),
        ),
        (
            "session/prompt",
            json!({"sessionId": session, "prompt": [7]}),
        ),
        (
            "session/prompt",
            json!({"sessionId": session, "prompt": []}),
        ),
        ("session/prompt", json!({"prompt": []})),
        ("session/set_mode", json!({"sessionId": session})),
        (
            "session/set_config_option",
            json!({"sessionId": session, "configId": "x", "value": {}}),
        ),
        ("session/close", json!({"sessionId": null})),
        ("session/delete", json!([])),
        ("session/list", json!({"cursor": 7})),
        ("authenticate", json!({})),
    ];
    for (method, params) in cases {
        let error = editor.peer.error(method, &params).unwrap();
        assert_eq!(error["code"], -32602, "{method} {params}: {error}");
        assert!(!error["message"].as_str().unwrap().is_empty());
    }
    for (method, params) in [
        ("session/cancel", json!({})),
        ("session/cancel", json!({"sessionId": "nowhere"})),
        ("$/cancel_request", json!({"requestId": 4711})),
        ("$/cancel_request", json!(7)),
    ] {
        editor.peer.notify(method, &params);
    }
    editor
        .peer
        .send_line(r#"{"jsonrpc":"2.0","id":999,"result":{}}"#);
    editor
        .peer
        .send_line(r#"{"jsonrpc":"2.0","id":"x","error":{"code":1,"message":"?"}}"#);
    assert_eq!(editor.stop_reason(&session, "still here"), "end_turn");
    editor.finish();
}

#[test]
fn calls_before_initialize_are_refused_and_a_second_initialize_changes_nothing() {
    let mut editor = Editor::of_agent(&[], &json!({}));
    let params = json!({"cwd": editor.world.dir, "mcpServers": []});
    let error = editor.peer.error("session/new", &params).unwrap();
    assert!(
        error["message"].as_str().unwrap().contains("initialize"),
        "{error}"
    );
    let error = editor.peer.error("initialize", &json!({})).unwrap();
    assert_eq!(error["code"], -32602);
    editor.initialize(&everything());
    let session = editor.open();
    let again = json!({"protocolVersion": 1, "clientCapabilities": {}});
    assert!(editor.peer.call("initialize", &again).unwrap()["id"].is_number());
    assert_eq!(editor.stop_reason(&session, "still here"), "end_turn");
    let log = editor.finish();
    assert_eq!(calls(&log, "initialize").len(), 1);
}

#[test]
fn prompt_of_megabytes_reaches_the_agent_and_is_replayed() {
    let mut editor = Editor::ready(&json!({"session/prompt": [[say("read"), end("end_turn")]]}));
    let session = editor.open();
    editor.peer.set_deadline(LIMIT * 2);
    let text = "m".repeat(3_000_000);
    assert_eq!(editor.stop_reason(&session, &text), "end_turn");
    let mut editor = editor.killed();
    let (_, replayed) = editor.load(&session);
    assert!(replayed[0].len() > text.len());
    let log = editor.finish();
    let sent = &calls(&log, "session/prompt")[0]["params"]["prompt"][0]["text"];
    assert_eq!(sent.as_str().unwrap().len(), text.len());
}

#[test]
fn end_of_input_ends_acpipe_while_the_agent_starts() {
    let mut editor = Editor::of_agent(&[], &json!({"initialize": [[{"hang": true}]]}));
    let params = json!({"protocolVersion": 1, "clientCapabilities": {}});
    editor.peer.request("initialize", &params);
    await_call(&editor, "initialize");
    editor.finish();
}

#[test]
fn agent_that_does_not_start_fails_initialize_with_a_sentence() {
    let world = crate::harness::World::new();
    let mut editor = Editor::launch(world, &["--", "/nowhere/agent"], &[]);
    let params = json!({"protocolVersion": 1, "clientCapabilities": {}});
    let error = editor.peer.error("initialize", &params).unwrap();
    assert!(
        error["message"]
            .as_str()
            .unwrap()
            .contains("/nowhere/agent"),
        "{error}"
    );
    editor.finish();
}

#[test]
fn unreadable_requests_are_answered_with_their_ids() {
    let mut editor = Editor::ready(&json!({}));
    let session = editor.open();
    let from = editor.peer.received.len();
    for line in [
        r#"{"jsonrpc":"2.0","id":"nan","method":"session/prompt","params":{"x":NaN}}"#,
        r#"{"jsonrpc":"2.0","id":"a","method":"x"}{"jsonrpc":"2.0","id":"b","method":"x"}"#,
        r#"log {"jsonrpc":"2.0","params":{},"method":"x","id":"log"}"#,
        r#"{"jsonrpc":"2.0","id":"torn","method":"x","params":{"#,
    ] {
        editor.peer.send_line(line);
    }
    editor.peer.barrier().unwrap();
    for id in ["nan", "a", "b", "log", "torn"] {
        let mut answers = editor.peer.received[from..]
            .iter()
            .filter(|m| m["id"] == id);
        assert_eq!(answers.next().unwrap()["error"]["code"], -32700, "{id}");
        assert!(answers.next().is_none(), "{id}");
    }
    assert_eq!(editor.stop_reason(&session, "still here"), "end_turn");
    editor.finish();
}

#[test]
fn blocks_of_a_prompt_are_counted_before_it_is_parsed() {
    let mut editor = Editor::ready(&json!({}));
    let session = editor.open();
    let blocks = vec![json!({"type": "text", "text": "x"}); 16_385];
    // The session is not valid either, and a parser would say so.
    let params = json!({"prompt": blocks, "sessionId": 7});
    let error = editor.peer.error("session/prompt", &params).unwrap();
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("16384 elements in `prompt`"), "{message}");
    assert_eq!(editor.stop_reason(&session, "still here"), "end_turn");
    editor.finish();
}
