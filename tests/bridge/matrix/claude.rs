//! Faults of the Claude Code CLI: invalid frames, floods and exits.

use super::deep;
use crate::harness::claude;
use serde_json::json;

#[test]
fn invalid_claude_frames_are_skipped() {
    let deep = deep();
    let lines = [
        deep.clone(),
        "[".repeat(100_000),
        r#"{"a":"#.repeat(100_000),
        format!(r#"{{"type":{deep}}}"#),
        format!(r#"{{"type":"control_request","request_id":{deep},"request":{deep}}}"#),
        format!(r#"{{"type":"control_response","response":{deep}}}"#),
        r#"{"type":"control_response","response":{"subtype":"success","request_id":"never asked","response":{}}}"#.to_owned(),
        r#"{"type":"control_response","response":{"subtype":"error","request_id":null,"error":"x"}}"#.to_owned(),
        r#"{"type":"control_cancel_request","request_id":"never asked"}"#.to_owned(),
        r#"{"type":"keep_alive","type":"keep_alive","__proto__":{"x":1},"constructor":{"prototype":1}}"#.to_owned(),
        r#"{"type":"\ud800\u0000"}"#.to_owned(),
        "{\"type\":\"a\u{0}b\"}".to_owned(),
    ];
    let mut s = claude::ready(&json!({}));
    // The JSON reader of this test may reject values that acpipe forwards.
    s.allow_gaps("default");
    s.call("session/subscribe", &json!({"chunks": false}));
    for line in lines {
        let turn = s.steps(&json!([{"delta": "a"}, {"line": line}, {"delta": "b"}]));
        let about = &line[..line.len().min(80)];
        assert_eq!(turn.summary["text"], "ab", "{about}");
        assert_eq!(turn.summary["isError"], false, "{about}");
        assert_eq!(s.prompt("next").summary["text"], "next", "{about}");
    }
}

#[test]
fn flood_of_tiny_lines_does_not_end_a_claude_turn() {
    let mut s = claude::ready(&json!({}));
    let lines = "\n{}\n[]\nnull".repeat(500);
    let turn =
        s.steps(&json!([{"delta": "a"}, {"repeat": [30, [{ "line": lines }]]}, {"delta": "b"}]));
    assert_eq!(turn.summary["text"], "ab");
    assert_eq!(s.prompt("next").summary["text"], "next");
    assert!(s.finish().stderr.len() < 100_000);
}

#[test]
fn second_claude_result_is_ignored() {
    let mut s = claude::ready(&json!({}));
    let again = json!({"type": "result", "subtype": "success", "is_error": false, "session_id": "{session}",
        "result": "again", "stop_reason": "end_turn", "usage": {}, "uuid": "another"});
    let turn = s.steps(&json!([{"say": "once"}, {"result": {}}, {"frame": again}]));
    assert_eq!(turn.summary["text"], "once");
    s.waive("session/activity");
    assert_eq!(s.prompt("next").summary["text"], "next");
}

#[test]
fn claude_exit_is_handled_at_every_stage() {
    let cases = [
        json!({"start": [{"stderr": "my last words"}, {"exit": 3}]}),
        json!({"control": {"initialize": [{"stderr": "my last words"}, {"exit": 3}]}}),
    ];
    for script in cases {
        let mut s = claude::server(&[], &script);
        s.waive("session/state");
        s.waive("agent/state");
        s.call("agent/connect", &json!({"protocol": "claude"}));
        let error = s.call_error("session/ensure", &json!({}));
        let message = error["message"].as_str().unwrap();
        assert!(message.contains("my last words"), "{script}: {error}");
    }
    for code in [0, 3] {
        let mut s = claude::ready(&json!({}));
        s.waive("agent/state");
        let turn =
            s.steps(&json!([{"delta": "half"}, {"stderr": "my last words"}, {"exit": code}]));
        let error = &turn.summary["errors"][0];
        assert_eq!(error["kind"], "agentExited", "{error}");
        assert!(
            error["message"].as_str().unwrap().contains("my last words"),
            "{error}"
        );
        assert_eq!(turn.summary["text"], "half");
        assert_eq!(s.prompt("next").summary["text"], "next");
    }
}
