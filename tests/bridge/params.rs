//! Unknown fields in client messages.

use crate::harness::World;
use crate::harness::server::{Framing, Server};
use crate::harness::steps::{ask, end, say, tool, tool_change};
use serde_json::{Value, json};

/// Asserts that a call is refused because of this field, and that the message contains `words`.
fn refused(s: &mut Server, method: &str, params: &Value, field: &str, words: &str) {
    let error = s.call_error(method, params);
    assert_eq!(error["code"], -32602, "{error}");
    assert_eq!(error["data"]["kind"], "invalidParams");
    assert_eq!(error["data"]["field"], field, "{error}");
    assert!(error["data"]["choices"].is_array(), "{error}");
    assert!(
        error["message"].as_str().unwrap().contains(words),
        "{error}"
    );
}

#[test]
fn misspelt_fields_are_refused_with_the_nearest_name() {
    let mut s = Server::start(&[]);
    let first = json!({"protocolVersion": 1, "capabilites": {"permissions": true}});
    refused(
        &mut s,
        "initialize",
        &first,
        "capabilites",
        "did you mean \"capabilities\"?",
    );
    let first = json!({"protocolVersion": 1, "capabilities": {"permission": true}});
    let field = "capabilities.permission";
    refused(
        &mut s,
        "initialize",
        &first,
        field,
        "did you mean \"permissions\"?",
    );
    s.initialize();
    for (method, params, field, words) in [
        (
            "session/ensure",
            json!({"options": {"maxTurn": 1}}),
            "options.maxTurn",
            "did you mean \"maxTurns\"?",
        ),
        (
            "session/ensure",
            json!({"options": {"disallowedTool": []}}),
            "options.disallowedTool",
            "\"disallowedTools\"",
        ),
        (
            "session/create",
            json!({"sesionId": "s"}),
            "sesionId",
            "did you mean \"sessionId\"?",
        ),
        (
            "agent/connect",
            json!({"options": {"modle": "x"}}),
            "options.modle",
            "did you mean \"model\"?",
        ),
        (
            "session/prompt",
            json!({"message": "x", "trunId": "t"}),
            "trunId",
            "did you mean \"turnId\"?",
        ),
        (
            "session/prompt",
            json!({"message": "x", "whenbusy": "reject"}),
            "whenbusy",
            "did you mean \"whenBusy\"?",
        ),
        (
            "session/cancel",
            json!({"sessionID": "s"}),
            "sessionID",
            "did you mean \"sessionId\"?",
        ),
        (
            "session/subscribe",
            json!({"chunks": false, "frobnicate": 1}),
            "frobnicate",
            "the known fields are chunks",
        ),
        (
            "agent/updateEnvironment",
            json!({"env": {}}),
            "env",
            "the known fields are agent, set, unset, whenBusy",
        ),
        (
            "agent/disconnect",
            json!({"force": true}),
            "force",
            "the known fields are agent",
        ),
        (
            "shutdown",
            json!({"force": true}),
            "force",
            "this object has no fields",
        ),
        (
            "rpc.discover",
            json!({"x": 1}),
            "x",
            "this object has no fields",
        ),
        (
            "session/ensure",
            json!({"mcpServers": [{"name": "a", "command": "c", "enviroment": {}}]}),
            "mcpServers[0].enviroment",
            "unknown field",
        ),
    ] {
        refused(&mut s, method, &params, field, words);
    }
    let log = s.finish().log;
    assert!(log.is_empty(), "an agent was started: {log:?}");
}

#[test]
fn a_wrong_value_names_its_field() {
    let mut s = Server::initialized(&[]);
    let error = s.call_error("session/ensure", &json!({"options": {"maxTurns": "x"}}));
    assert_eq!(error["data"]["field"], "options.maxTurns", "{error}");
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

#[test]
fn an_answer_with_an_unknown_field_is_a_refusal() {
    let call = json!({"toolCallId": "t", "title": "T", "kind": "execute"});
    let allow = ask(&call, &[("allow", "allow_once"), ("reject", "reject_once")]);
    let update = |status: &str| tool_change("t", &json!({"status": status}));
    for (mode, approved) in [("refuse", false), ("ignore", true)] {
        let status = if approved { "completed" } else { "failed" };
        let script =
            json!({"session/prompt": [[tool("t", &call), allow, update(status), end("end_turn")]]});
        let mut s = Server::start(&["--permissions", "ask"]);
        let client = json!({"protocolVersion": 1, "capabilities": {"permissions": true}, "unknownFields": mode});
        s.call("initialize", &client);
        s.connect(&script);
        s.ensure("default");
        let prompt = s.send_prompt("default", "go");
        let (id, _) = s.asked("permission/request");
        s.reply(
            &id,
            &json!({"outcome": {"outcome": "selected", "optionId": "allow", "mesage": "x"}}),
        );
        let turn = s.turn(&prompt);
        let decided = turn
            .chunks
            .iter()
            .rfind(|c| c["type"] == "data-permission")
            .unwrap();
        assert_eq!(decided["data"]["approved"], approved, "{decided}");
        let reason = decided["data"]["reason"].as_str().unwrap();
        assert_eq!(
            reason.contains("outcome: unknown field"),
            !approved,
            "{reason}"
        );
    }
}
