//! JSON-RPC 2.0 toward the client: no input ends the daemon or loses a session.

mod at_once;
mod params;

use crate::harness::World;
use crate::harness::server::{Framing, Id, Server};
use serde_json::{Value, json};

/// Server with a session; [`Survivor::assert_alive`] checks that both still work.
pub struct Survivor(pub Server);

impl Survivor {
    pub fn new(framing: Framing, args: &[&str]) -> Self {
        let mut s = Server::launch(World::new(), args, framing, &[]);
        s.initialize();
        s.connect(&json!({}));
        s.ensure("default");
        Self(s)
    }

    pub fn lines() -> Self {
        Self::new(Framing::Lines, &[])
    }

    pub fn assert_alive(mut self) {
        assert_eq!(self.0.prompt("alive?").summary["text"], "alive?");
        self.0.finish();
    }
}

/// Asserts that an answer is this error, with a message of one line.
#[track_caller]
pub fn assert_error(answer: &Value, code: i32, kind: &str, about: &str) {
    assert_eq!(answer["error"]["code"], code, "{about}: {answer}");
    assert_eq!(answer["error"]["data"]["kind"], kind, "{about}: {answer}");
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(!message.is_empty() && !message.contains('\n'), "{message}");
}

#[test]
fn invalid_json_is_a_parse_error_with_the_id_of_the_request() {
    let mut s = Survivor::lines();
    for text in [
        "nonsense",
        "{",
        r#"{"jsonrpc":"2.0","id":7,"meth"#,
        "[1,",
        "{'id':1}",
        "\u{0}",
        "\"half",
        r#"{"a":01}"#,
    ] {
        s.0.raw(text);
        let answer = s.0.null_answer();
        assert_eq!(answer["id"], Value::Null);
        assert_error(&answer, -32700, "parse", text);
    }
    for (n, text, why) in [
        (
            1,
            r#"{"jsonrpc":"2.0","id":1,"method":"agent/status""#,
            "EOF",
        ),
        (
            2,
            r#"{"jsonrpc":"2.0","id":2,"method":"agent/status"} trailing"#,
            "other text",
        ),
        (
            3,
            r#"[{"jsonrpc":"2.0","id":3,"method":"agent/status"}"#,
            "EOF",
        ),
        (
            4,
            r#"{"jsonrpc":"2.0","params":{"a":NaN},"method":"agent/status","id":4}"#,
            "NaN",
        ),
        (
            5,
            "{\"id\":5,\"method\":\"agent/status\",\"params\":{\"a\":\"\t\"}}",
            "control",
        ),
        (
            6,
            r#"{"id":6,"method":"agent/status","params":{},}"#,
            "comma",
        ),
    ] {
        let id = Id(n.to_string());
        s.0.expect(&id);
        s.0.raw(text);
        let answer = s.0.answer(&id);
        assert_error(&answer, -32700, "parse", text);
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(message.contains(why), "{message}");
    }
    let glued = ["8", "9"].map(|id| Id(id.to_owned()));
    for id in &glued {
        s.0.expect(id);
    }
    s.0.raw(r#"{"id":8,"method":"agent/status"}{"id":9,"method":"agent/status"}"#);
    for id in &glued {
        assert_error(&s.0.answer(id), -32700, "parse", "two requests in one line");
    }
    s.0.write(b"\xff\xfe\n");
    assert_error(&s.0.null_answer(), -32700, "parse", "invalid UTF-8");
    // The id is found beside bytes that are not UTF-8, but not if it contains such bytes itself.
    let id = Id("\"utf\"".to_owned());
    s.0.expect(&id);
    s.0.write(b"{\"id\":\"utf\",\"method\":\"\xff\xfe\"}\n");
    assert_error(&s.0.answer(&id), -32700, "parse", "invalid UTF-8");
    s.0.write(b"{\"id\":\"\xff\",\"method\":\"agent/status\"}\n");
    assert_error(
        &s.0.null_answer(),
        -32700,
        "parse",
        "invalid UTF-8 in the id",
    );
    s.assert_alive();
}

#[test]
fn message_that_is_not_a_request_is_invalid() {
    let mut s = Survivor::lines();
    let without_id = [
        "{}",
        "5",
        "\"text\"",
        "null",
        "true",
        r#"{"jsonrpc":"2.0"}"#,
        r#"{"jsonrpc":"2.0","params":{}}"#,
        r#"{"jsonrpc":"2.0","method":5}"#,
        r#"{"jsonrpc":"2.0","id":[1],"method":"agent/status"}"#,
        r#"{"jsonrpc":"2.0","id":{"a":1},"method":"agent/status"}"#,
        r#"{"jsonrpc":"2.0","id":true,"method":"agent/status"}"#,
        "[]",
    ];
    for text in without_id {
        s.0.raw(text);
        let answer = s.0.null_answer();
        assert_eq!(answer["id"], Value::Null, "{text}");
        assert_error(&answer, -32600, "invalidRequest", text);
    }
    // A valid id is returned.
    for (id, text) in [
        ("7", r#"{"jsonrpc":"2.0","id":7}"#),
        ("\"a\"", r#"{"jsonrpc":"2.0","id":"a","method":null}"#),
        ("-1", r#"{"jsonrpc":"2.0","method":{},"id":-1}"#),
    ] {
        let id = Id(id.to_owned());
        s.0.expect(&id);
        s.0.raw(text);
        assert_error(&s.0.answer(&id), -32600, "invalidRequest", text);
    }
    s.assert_alive();
}

#[test]
fn unexpected_responses_are_ignored() {
    let mut s = Survivor::lines();
    for text in [
        r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":"x","error":{"code":1,"message":"m"}}"#,
        r#"{"jsonrpc":"2.0","id":null,"result":null}"#,
    ] {
        s.0.raw(text);
    }
    s.assert_alive();
}

#[test]
fn unknown_methods_are_not_found() {
    let mut s = Survivor::lines();
    for method in [
        "nope",
        "",
        "session/Prompt",
        "rpc.other",
        "session/prompt ",
        "a\"b",
    ] {
        let id = s.0.send(method, &json!({}));
        let answer = s.0.answer(&id);
        assert_error(&answer, -32601, "methodNotFound", method);
    }
    s.assert_alive();
}

#[test]
fn request_ids_of_all_types_are_returned_verbatim() {
    let mut s = Survivor::lines();
    for id in [
        "0",
        "-3",
        "1.5",
        "1e3",
        "1.50",
        "123456789012345678901234567890",
        "\"x\"",
        "\"\"",
        "\"1\"",
        r#""a\"b\\ é""#,
        r#""\u00e9""#,
        "null",
    ] {
        let id = Id(id.to_owned());
        s.0.send_as(&id, "agent/status", &json!({}));
        assert_eq!(s.0.result(&id)["state"], "ready", "{id:?}");
        s.0.send_as(&id, "nope", &json!({}));
        assert_eq!(s.0.error(&id)["code"], -32601, "{id:?}");
        // Answered later, by the main loop.
        s.0.send_as(&id, "session/prompt", &json!({"message": "x"}));
        s.0.turn(&id);
    }
    s.assert_alive();
}

#[test]
fn notifications_are_never_answered() {
    let mut s = Survivor::lines();
    for (method, params) in [
        ("nope", json!({})),
        ("agent/status", json!({})),
        ("rpc.discover", json!({})),
        ("session/prompt", json!({})),
        (
            "session/prompt",
            json!({"sessionId": "unknown", "message": "x"}),
        ),
        ("session/create", json!({"sessionId": "default"})),
        ("session/cancel", json!({})),
        ("initialize", json!({"protocolVersion": 9})),
        ("$/cancelRequest", json!({"id": 1})),
    ] {
        s.0.notify(method, &params);
    }
    s.assert_alive();
}

#[test]
fn notification_is_performed_without_an_answer() {
    let mut s = Survivor::lines();
    s.0.notify("session/create", &json!({"sessionId": "quiet"}));
    let live = s.0.ensure("quiet");
    assert_eq!(live["agentSessionId"], "fake-2");
    let prompt = json!({"sessionId": "quiet", "message": "a turn"});
    s.0.notify("session/prompt", &prompt);
    s.0.await_chunk("quiet", |c| c["type"] == "finish");
    let chunks = s.0.take_chunks("quiet");
    assert!(chunks.iter().any(|c| c["delta"] == "a turn"));
    s.assert_alive();
}

#[test]
fn rpc_discover_works_before_initialize() {
    let mut s = Server::start(&[]);
    let document = s.call("rpc.discover", &json!({}));
    let methods: Vec<&str> = document["methods"]
        .as_array()
        .unwrap()
        .iter()
        .map(|m| m["name"].as_str().unwrap())
        .collect();
    for method in ["initialize", "session/prompt", "shutdown", "rpc.discover"] {
        assert!(methods.contains(&method), "{methods:?}");
    }
    // Every listed method exists.
    for method in methods {
        if method != "shutdown" {
            let id = s.send(method, &json!([]));
            assert_ne!(s.answer(&id)["error"]["code"], -32601, "{method}");
        }
    }
}
