//! Params of calls: absent, empty and invalid ones.

use super::{Survivor, assert_error};
use crate::harness::server::Id;
use serde_json::json;

#[test]
fn invalid_params_name_the_field() {
    let mut s = Survivor::lines();
    let long = "x".repeat(257);
    // Method, params, and the field or the reason in the message.
    let cases = json!([
        ["initialize", {}, "protocolVersion"],
        ["initialize", {"protocolVersion": "1"}, "protocolVersion"],
        ["initialize", {"protocolVersion": -1}, "protocolVersion"],
        ["initialize", {"protocolVersion": 1, "clientInfo": {"version": "1"}}, "clientInfo.name"],
        ["initialize", {"protocolVersion": 1, "capabilities": {"chunks": "no"}}, "capabilities.chunks"],
        ["agent/connect", {"command": 5}, "command"],
        ["agent/connect", {"command": ""}, "command"],
        ["agent/connect", {"args": ["x"]}, "args"],
        ["agent/connect", {"command": "x", "args": "y"}, "args"],
        ["agent/connect", {"command": "x", "args": ["y", 5]}, "args[1]"],
        ["agent/connect", {"command": "x", "env": {"A": 5}}, "env: the value of \"A\""],
        ["agent/connect", {"command": "x", "env": {"A": "\u{0}"}}, "env: the value of \"A\""],
        ["agent/connect", {"command": "x", "env": {"A=B": "c"}}, "env"],
        ["agent/connect", {"command": "x", "cwd": ["/"]}, "cwd"],
        ["session/ensure", {"sessionId": 5}, "sessionId"],
        ["session/ensure", {"sessionId": ""}, "sessionId"],
        ["session/ensure", {"sessionId": "n", "cwd": "relative"}, "cwd"],
        ["session/ensure", {"sessionId": "n", "mcpServers": {}}, "mcpServers"],
        ["session/ensure", {"options": {"maxTurns": "x"}}, "options.maxTurns"],
        ["session/ensure", {"strategy": "best"}, "\"best\" is not a valid strategy"],
        ["session/ensure", {"strategy": ["load", "live"]}, "\"live\" is not a valid strategy"],
        ["session/ensure", {"strategy": 7}, "a strategy must be"],
        ["session/create", {}, "sessionId"],
        ["session/create", {"sessionId": null}, "sessionId"],
        ["session/prompt", {}, "message"],
        ["session/prompt", {"message": 5}, "message"],
        ["session/prompt", {"message": null}, "message"],
        ["session/prompt", {"message": {}}, "parts"],
        ["session/prompt", {"message": {"parts": "x"}}, "message.parts"],
        ["session/prompt", {"message": {"parts": []}}, "message.parts"],
        ["session/prompt", {"message": {"role": "assistant", "parts": []}}, "role"],
        ["session/prompt", {"message": {"parts": [{"type": "text"}]}}, "message.parts[0].text"],
        ["session/prompt", {"message": {"parts": [{"type": "text", "text": 5}]}}, "message.parts[0].text"],
        ["session/prompt", {"message": {"parts": [{"text": "x"}]}}, "message.parts[0].type"],
        ["session/prompt", {"message": {"parts": [{"type": "file"}]}}, "message.parts[0].url"],
        ["session/prompt", {"message": {"parts": ["text"]}}, "message.parts[0]"],
        ["session/prompt", {"message": "x", "turnId": 5}, "turnId"],
        ["session/prompt", {"message": "x", "turnId": long}, "turnId"],
        ["session/cancel", {"sessionId": {}}, "sessionId"],
        ["session/list", {"cursor": "bogus"}, "cursor"],
        ["session/subscribe", {}, "chunks"],
        ["session/subscribe", {"chunks": "yes"}, "chunks"],
        ["session/prompt", ["x"], "params"],
        ["session/prompt", "x", "params"],
        ["agent/status", [], "params"],
    ]);
    for case in cases.as_array().unwrap() {
        let (method, field) = (case[0].as_str().unwrap(), case[2].as_str().unwrap());
        let id = s.0.send(method, &case[1]);
        let answer = s.0.answer(&id);
        assert_error(&answer, -32602, "invalidParams", &case.to_string());
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(message.contains(field), "{case}: {message}");
        if message.starts_with("missing field") {
            let path = answer["error"]["data"]["field"].as_str().unwrap_or("");
            assert!(path.ends_with(field), "{case}: {answer}");
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
