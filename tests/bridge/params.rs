//! Unknown fields in client messages.

use crate::harness::World;
use crate::harness::server::{Framing, Server};
use crate::harness::steps::{end, say};
use serde_json::json;

#[test]
fn misspelt_fields_are_refused_with_the_nearest_name() {
    let mut s = Server::start(&[]);
    // Method, params, the field, and words of the message.
    let cases = json!([
        ["initialize", {"protocolVersion": 1, "capabilites": {}}, "capabilites", "did you mean \"capabilities\"?"],
        ["initialize", {"protocolVersion": 1, "capabilities": {"permission": true}}, "capabilities.permission",
            "did you mean \"permissions\"?"],
        ["session/ensure", {"options": {"maxTurn": 1}}, "options.maxTurn", "did you mean \"maxTurns\"?"],
        ["session/create", {"sesionId": "s"}, "sesionId", "did you mean \"sessionId\"?"],
        ["agent/connect", {"options": {"modle": "x"}}, "options.modle", "did you mean \"model\"?"],
        ["session/prompt", {"message": "x", "trunId": "t"}, "trunId", "did you mean \"turnId\"?"],
        ["session/cancel", {"sessionID": "s"}, "sessionID", "did you mean \"sessionId\"?"],
        ["session/subscribe", {"chunks": false, "x": 1}, "x", "the known fields are chunks"],
        ["agent/updateEnvironment", {"env": {}}, "env", "the known fields are agent, set, unset, whenBusy"],
        ["agent/disconnect", {"force": true}, "force", "the known fields are agent"],
        ["shutdown", {"force": true}, "force", "this object has no fields"],
        ["rpc.discover", {"x": 1}, "x", "this object has no fields"],
        ["session/ensure", {"mcpServers": [{"name": "a", "command": "c", "enviroment": {}}]},
            "mcpServers[0].enviroment", "unknown field"],
    ]);
    for (n, case) in cases.as_array().unwrap().iter().enumerate() {
        if n == 2 {
            s.initialize();
        }
        let error = s.call_error(case[0].as_str().unwrap(), &case[1]);
        assert_eq!(error["code"], -32602, "{error}");
        assert_eq!(error["data"]["kind"], "invalidParams");
        assert_eq!(error["data"]["field"], case[2], "{error}");
        assert!(error["data"]["choices"].is_array(), "{error}");
        let message = error["message"].as_str().unwrap();
        assert!(message.contains(case[3].as_str().unwrap()), "{message}");
    }
    let log = s.finish().log;
    assert!(log.is_empty(), "an agent was started: {log:?}");
}

#[test]
fn meta_and_forwarded_content_accept_any_field() {
    let mut s = Server::ready(&json!({"session/prompt": [[say("x"), end("end_turn")]]}));
    let message = json!({"id": "m", "role": "user", "x": 1, "metadata": {"y": 2},
        "parts": [{"type": "text", "text": "go", "providerMetadata": {"z": 3}}]});
    let id = s.send(
        "session/prompt",
        &json!({"message": message, "_meta": {"trace": "t"}}),
    );
    assert_eq!(s.turn(&id).summary["text"], "x");
    s.call("session/get", &json!({"sessionId": "default", "_meta": {}}));
}

#[test]
fn a_client_can_have_unknown_fields_ignored() {
    let mut s = Server::start(&[]);
    s.call(
        "initialize",
        &json!({"protocolVersion": 1, "unknownFields": "ignore", "x": 1}),
    );
    assert_eq!(
        s.call("session/cancel", &json!({"x": 1})),
        json!({"cancelled": false})
    );
    assert_eq!(
        s.call("session/list", &json!({"limit": 1, "x": {}}))["sessions"],
        json!([])
    );
}

#[test]
fn a_notification_with_an_unknown_field_is_logged_and_has_no_effect() {
    let mut s = Server::launch(World::new(), &[], Framing::Lines, &[]);
    s.initialize();
    s.raw(
        r#"{"jsonrpc":"2.0","method":"session/subscribe","params":{"chunk":false,"chunks":false}}"#,
    );
    s.call("session/list", &json!({}));
    let stderr = s.finish().stderr;
    assert!(
        stderr.contains("chunk: unknown field; did you mean"),
        "{stderr}"
    );
}
