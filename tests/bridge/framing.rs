//! Client messages as bytes: lines, headers, sizes.

use crate::harness::server::{Framing, Id, Server};
use crate::harness::steps::say;
use crate::rpc::{Survivor, assert_error};
use serde_json::json;

#[test]
fn content_length_framing_is_answered_in_kind() {
    let mut s = Survivor::new(Framing::ContentLength, &[]);
    let id = Id("\"é\"".to_owned());
    s.0.send_as(&id, "agent/status", &json!({"_meta": "\u{1F600}\n"}));
    s.0.result(&id);
    // Fragments, other headers, other letter case, a body with newlines.
    let body = "{\"jsonrpc\":\"2.0\",\r\n \"id\":\"é\",\n\"method\":\"agent/status\"}";
    s.0.expect(&id);
    let text = format!(
        "Content-Type: application/vscode-jsonrpc; charset=utf-8\r\ncontent-length:{}\r\n\r\n{body}",
        body.len()
    );
    for piece in text.as_bytes().chunks(7) {
        s.0.write(piece);
    }
    assert_eq!(s.0.result(&id)["state"], "ready");
    // Two messages in one write.
    let ids = ["1001", "1002"].map(|id| Id(id.to_owned()));
    let mut both = String::new();
    for id in &ids {
        s.0.expect(id);
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":{},"method":"agent/status"}}"#,
            id.0
        );
        both.push_str("Content-Length: ");
        both.push_str(&body.len().to_string());
        both.push_str("\r\n\r\n");
        both.push_str(&body);
    }
    s.0.write(both.as_bytes());
    for id in &ids {
        s.0.result(id);
    }
    s.0.raw("nonsense");
    assert_error(&s.0.null_answer(), -32700, "parse", "nonsense");
    s.0.write(b"Content-Length: 3\r\n\r\n\xff\xff\xff");
    assert_error(&s.0.null_answer(), -32700, "parse", "invalid UTF-8");
    s.0.write(b"Content-Length: many\r\n\r\n");
    assert_error(&s.0.null_answer(), -32700, "parse", "bad header");
    s.0.write(b"Nonsense: 5\r\n\r\n");
    assert_error(&s.0.null_answer(), -32700, "parse", "no length");
    s.assert_alive();
}

#[test]
fn requests_over_the_cap_are_refused_by_their_id_and_skipped() {
    let args = ["--max-line", "64K"];
    let big = json!({"message": "x".repeat(70_000)});
    let head = r#""jsonrpc":"2.0","method":"session/prompt""#;
    // The id before or after the parameters, and with half a surrogate pair in a key.
    let bodies = [
        format!(r#"{{{head},"params":{big},"id":"big"}}"#),
        format!(r#"{{{head},"id":"big","params":{big}}}"#),
        format!(r#"{{"id" : "big","\ud800":1,"params":{big},{head}}}"#),
    ];
    let id = Id("\"big\"".to_owned());
    for framing in [Framing::Lines, Framing::ContentLength] {
        let mut s = Survivor::new(framing, &args);
        for body in &bodies {
            s.0.expect(&id);
            s.0.raw(body);
            let answer = s.0.answer(&id);
            assert_error(&answer, -32700, "parse", "too long");
            let message = answer["error"]["message"].as_str().unwrap();
            assert!(message.contains("--max-line"), "{message}");
        }
        // In a batch or a notification there is no id to answer.
        for body in [
            format!("[{}]", bodies[0]),
            format!(r#"{{{head},"params":{big}}}"#),
        ] {
            s.0.raw(&body);
            assert_error(&s.0.null_answer(), -32700, "parse", "too long");
        }
        // A message just below the limit is accepted.
        let text = "y".repeat(60_000);
        assert_eq!(s.0.prompt(&text).summary["text"], text);
        s.assert_alive();
    }
}

#[test]
fn half_a_surrogate_pair_in_a_key_does_not_lose_the_id() {
    let mut s = Survivor::lines();
    let id = Id("\"half\"".to_owned());
    for text in [
        r#"{"jsonrpc":"2.0","\ud800":1,"id":"half","method":"agent/status"}"#,
        r#"{"jsonrpc":"2.0","id":"half","method":"agent/status","x\udfff\u0000":{"\udfff":1}}"#,
    ] {
        s.0.expect(&id);
        s.0.raw(text);
        assert_eq!(s.0.result(&id)["state"], "ready", "{text}");
    }
    s.assert_alive();
    // Responses and requests of an agent also keep their ids.
    let line = |line: &str| json!({ "line": line });
    let update = r#"{"jsonrpc":"2.0","\udfff":1,"method":"session/update","params":{"sessionId":"{session}","update":{"sessionUpdate":"odd","\ud800":1}}}"#;
    let asked = r#"{"jsonrpc":"2.0","id":"q","method":"session/nonsense","\ud800":{}}"#;
    let steps = [
        line(update),
        line(asked),
        say("said"),
        line(
            r#"{"jsonrpc":"2.0","\ud83d":[],"id":{id},"result":{"stopReason":"end_turn","\ud800":1}}"#,
        ),
    ];
    let mut s = Server::ready(&json!({ "session/prompt": [steps] }));
    s.ensure("default");
    let turn = s.prompt("go");
    assert_eq!(turn.summary["stopReason"], "end_turn", "{}", turn.summary);
    assert_eq!(turn.of("data-acp").len(), 1);
    let log = s.finish().log;
    let refused = log
        .iter()
        .filter(|m| m["id"] == "q" && m["error"].is_object());
    assert_eq!(refused.count(), 1);
}

#[test]
fn truncated_last_message_is_reported() {
    for (framing, text) in [
        (
            Framing::ContentLength,
            "Content-Length: 100\r\n\r\n{\"jsonrpc\"",
        ),
        (Framing::ContentLength, "Content-Length: 10"),
        (Framing::Lines, "{\"jsonrpc\":\"2.0\",\"id\":9,"),
    ] {
        let mut s = Server::framed(framing);
        s.initialize();
        s.write(text.as_bytes());
        s.close_stdin();
        assert_error(&s.null_answer(), -32700, "parse", text);
    }
}

#[test]
fn empty_stdin_exits() {
    for text in ["", "\n", " \r\n\n", "Con"] {
        let mut s = Server::start(&[]);
        s.write(text.as_bytes());
        s.close_stdin();
        if text == "Con" {
            assert_error(&s.null_answer(), -32700, "parse", text);
        }
        s.finish();
    }
}
