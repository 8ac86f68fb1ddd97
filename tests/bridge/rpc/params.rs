//! Params of calls: absent, empty and invalid ones.

use super::{Survivor, assert_error};
use crate::harness::server::Id;
use serde_json::{Value, json};

#[test]
fn invalid_params_name_the_field() {
    let mut s = Survivor::lines();
    let part = |part: Value| json!({"message": {"parts": [part]}});
    let cases = [
        ("initialize", json!({}), "protocolVersion"),
        (
            "initialize",
            json!({"protocolVersion": "1"}),
            "protocolVersion",
        ),
        (
            "initialize",
            json!({"protocolVersion": -1}),
            "protocolVersion",
        ),
        (
            "initialize",
            json!({"protocolVersion": 1, "clientInfo": {"version": "1"}}),
            "clientInfo.name",
        ),
        (
            "initialize",
            json!({"protocolVersion": 1, "capabilities": {"chunks": "no"}}),
            "capabilities.chunks",
        ),
        ("agent/connect", json!({"command": 5}), "command"),
        ("agent/connect", json!({"command": ""}), "command"),
        ("agent/connect", json!({"args": ["x"]}), "args"),
        (
            "agent/connect",
            json!({"command": "x", "args": "y"}),
            "args",
        ),
        (
            "agent/connect",
            json!({"command": "x", "args": ["y", 5]}),
            "args[1]",
        ),
        (
            "agent/connect",
            json!({"command": "x", "env": {"A": 5}}),
            "env: the value of \"A\"",
        ),
        (
            "agent/connect",
            json!({"command": "x", "env": {"A": "\u{0}"}}),
            "env: the value of \"A\"",
        ),
        (
            "agent/connect",
            json!({"command": "x", "env": {"A=B": "c"}}),
            "env",
        ),
        (
            "agent/connect",
            json!({"command": "x", "cwd": ["/"]}),
            "cwd",
        ),
        ("session/ensure", json!({"sessionId": 5}), "sessionId"),
        ("session/ensure", json!({"sessionId": ""}), "sessionId"),
        (
            "session/ensure",
            json!({"sessionId": "n", "cwd": "relative"}),
            "cwd",
        ),
        (
            "session/ensure",
            json!({"sessionId": "n", "mcpServers": {}}),
            "mcpServers",
        ),
        ("session/create", json!({}), "sessionId"),
        ("session/create", json!({"sessionId": null}), "sessionId"),
        ("session/prompt", json!({}), "message"),
        ("session/prompt", json!({"message": 5}), "message"),
        ("session/prompt", json!({"message": null}), "message"),
        ("session/prompt", json!({"message": {}}), "parts"),
        (
            "session/prompt",
            json!({"message": {"parts": "x"}}),
            "message.parts",
        ),
        (
            "session/prompt",
            json!({"message": {"parts": []}}),
            "message.parts",
        ),
        (
            "session/prompt",
            json!({"message": {"role": "assistant", "parts": []}}),
            "role",
        ),
        (
            "session/prompt",
            part(json!({"type": "text"})),
            "message.parts[0].text",
        ),
        (
            "session/prompt",
            part(json!({"type": "text", "text": 5})),
            "message.parts[0].text",
        ),
        (
            "session/prompt",
            part(json!({"text": "x"})),
            "message.parts[0].type",
        ),
        (
            "session/prompt",
            part(json!({"type": "file"})),
            "message.parts[0].url",
        ),
        ("session/prompt", part(json!("text")), "message.parts[0]"),
        (
            "session/prompt",
            json!({"message": "x", "turnId": 5}),
            "turnId",
        ),
        (
            "session/prompt",
            json!({"message": "x", "turnId": "x".repeat(257)}),
            "turnId",
        ),
        ("session/cancel", json!({"sessionId": {}}), "sessionId"),
        ("session/list", json!({"cursor": "bogus"}), "cursor"),
        ("session/subscribe", json!({}), "chunks"),
        ("session/subscribe", json!({"chunks": "yes"}), "chunks"),
        ("session/prompt", json!(["x"]), "params"),
        ("session/prompt", json!("x"), "params"),
        ("agent/status", json!([]), "params"),
    ];
    for (method, params, field) in cases {
        let id = s.0.send(method, &params);
        let answer = s.0.answer(&id);
        assert_error(&answer, -32602, "invalidParams", &params.to_string());
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(message.contains(field), "{method} {params}: {message}");
        if message.starts_with("missing field") {
            let path = answer["error"]["data"]["field"].as_str().unwrap_or("");
            assert!(path.ends_with(field), "{method} {params}: {answer}");
        }
    }
    s.assert_alive();
}

#[test]
fn params_may_be_absent_null_or_empty() {
    let mut s = Survivor::lines();
    for params in ["", r#","params":null"#, r#","params":{}"#] {
        let id = Id("\"p\"".to_owned());
        s.0.expect(&id);
        s.0.raw(&format!(
            r#"{{"jsonrpc":"2.0","id":"p","method":"agent/status"{params}}}"#
        ));
        assert_eq!(s.0.result(&id)["state"], "ready", "{params}");
    }
    s.assert_alive();
}
