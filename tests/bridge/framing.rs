//! Messages of the client as bytes: lines, headers, sizes.

use crate::harness::server::{Framing, Id, Server};
use crate::rpc::{Survivor, assert_error};
use serde_json::json;

#[test]
fn content_length_framing_is_answered_in_kind() {
    let mut s = Survivor::new(Framing::ContentLength, &[]);
    let id = Id("\"é\"".to_owned());
    s.0.send_as(&id, "agent/status", &json!({"_meta": "\u{1F600}\n"}));
    s.0.result(&id);
    // Pieces, other headers, other case, a body with newlines.
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
    s.lives();
}

#[test]
fn lines_may_end_in_crlf() {
    let mut s = Survivor::lines();
    let id = Id("\"crlf\"".to_owned());
    s.0.expect(&id);
    s.0.write(b"{\"jsonrpc\":\"2.0\",\"id\":\"crlf\",\"method\":\"agent/status\"}\r\n");
    s.0.result(&id);
    s.lives();
}

#[test]
fn the_last_line_needs_no_newline() {
    let mut s = Server::start(&[]);
    let id = Id("1".to_owned());
    s.expect(&id);
    s.write(br#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}"#);
    s.close_stdin();
    assert_eq!(s.result(&id)["protocolVersion"], 1);
}

#[test]
fn messages_over_the_cap_are_refused_and_skipped() {
    let args = ["--max-line", "64K"];
    let big = json!({"message": "x".repeat(70_000)});
    let body = format!(r#"{{"jsonrpc":"2.0","method":"session/prompt","params":{big},"id":5}}"#);
    for framing in [Framing::Lines, Framing::ContentLength] {
        let mut s = Survivor::new(framing, &args);
        s.0.raw(&body);
        let answer = s.0.null_answer();
        assert_error(&answer, -32700, "parse", "too long");
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(message.contains("--max-line"), "{message}");
        // Just under it passes.
        let text = "y".repeat(60_000);
        assert_eq!(s.0.prompt(&text).summary["text"], text);
        s.lives();
    }
}

#[test]
fn big_messages_pass_under_the_default_cap() {
    let mut s = Survivor::lines();
    let text = "\u{e9}\"\\\n".repeat(200_000);
    assert_eq!(s.0.prompt(&text).summary["text"], text);
    s.lives();
}

#[test]
fn blank_lines_are_nothing() {
    let mut s = Survivor::lines();
    s.0.write(b"\n\n  \n\r\n\t\n");
    s.lives();
}

#[test]
fn a_message_that_breaks_off_at_the_end_is_told() {
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
fn an_empty_stdin_is_the_end() {
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
