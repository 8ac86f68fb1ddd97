//! JSON-RPC 2.0 toward the client: nothing that it sends ends the daemon or loses a session.

use crate::harness::server::{Framing, Id, Server};
use crate::harness::{FAKE_AGENT, World};
use serde_json::{Value, json};

/// A server with a session, and the proof that both have survived.
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

    pub fn lives(mut self) {
        assert_eq!(self.0.prompt("alive?").summary["text"], "alive?");
        self.0.finish();
    }
}

/// Whether an answer is this error, with a message of one line.
#[track_caller]
pub fn assert_error(answer: &Value, code: i32, kind: &str, about: &str) {
    assert_eq!(answer["error"]["code"], code, "{about}: {answer}");
    assert_eq!(answer["error"]["data"]["kind"], kind, "{about}: {answer}");
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(!message.is_empty() && !message.contains('\n'), "{message}");
}

#[test]
fn what_is_not_json_is_a_parse_error_with_the_id_null() {
    let mut s = Survivor::lines();
    for text in [
        "nonsense",
        "{",
        r#"{"jsonrpc":"2.0","id":7,"method":"agent/status""#,
        r#"{"jsonrpc":"2.0","id":7,"method":"agent/status"} trailing"#,
        "[1,",
        r#"[{"jsonrpc":"2.0","id":7,"method":"agent/status"}"#,
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
    s.0.write(b"\xff\xfe\n");
    assert_error(&s.0.null_answer(), -32700, "parse", "invalid UTF-8");
    // Around bytes that are not UTF-8 the id is seen; one that holds such bytes is not the client's.
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
    s.lives();
}

#[test]
fn what_is_no_request_is_invalid() {
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
    // An id that can be read is given back.
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
    s.lives();
}

#[test]
fn answers_that_nobody_waits_for_are_ignored() {
    let mut s = Survivor::lines();
    for text in [
        r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":"x","error":{"code":1,"message":"m"}}"#,
        r#"{"jsonrpc":"2.0","id":null,"result":null}"#,
    ] {
        s.0.raw(text);
    }
    s.lives();
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
    s.lives();
}

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
    s.lives();
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
    s.lives();
}

#[test]
fn ids_of_all_forms_are_given_back_exactly() {
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
        // Answered later, by the loop.
        s.0.send_as(&id, "session/prompt", &json!({"message": "x"}));
        s.0.turn(&id);
    }
    s.lives();
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
    s.lives();
}

#[test]
fn what_a_notification_wants_is_done() {
    let mut s = Survivor::lines();
    s.0.notify("session/create", &json!({"sessionId": "quiet"}));
    let live = s.0.ensure("quiet");
    assert_eq!(live["agentSessionId"], "fake-2");
    s.lives();
}

#[test]
fn batches() {
    let mut s = Survivor::lines();
    let call = |id: &str, method: &str| {
        let params = match method {
            "session/prompt" => r#"{"message":"m"}"#,
            _ => "{}",
        };
        format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#)
    };
    let notification = r#"{"jsonrpc":"2.0","method":"agent/status"}"#;

    // Mixed: everything that wants an answer gets one, in one array.
    let ids = ["11", "\"b\"", "1.5", "14"].map(|id| Id(id.to_owned()));
    for id in &ids {
        s.0.expect(id);
    }
    s.0.raw(&format!(
        "[{},{notification},{},1,{},{},[],{{}}]",
        call("11", "agent/status"),
        call("\"b\"", "nope"),
        call("1.5", "rpc.discover"),
        call("14", "session/cancel"),
    ));
    let answers = s.0.batch();
    assert_eq!(answers.len(), 7, "{answers:?}");
    let by = |id: Value| answers.iter().find(|a| a["id"] == id).unwrap();
    assert_eq!(by(json!(11))["result"]["state"], "ready");
    assert_error(by(json!("b")), -32601, "methodNotFound", "batch");
    assert_eq!(by(json!(1.5))["result"]["info"]["title"], "acpipe");
    assert_eq!(by(json!(14))["result"], json!({"cancelled": false}));
    let nulls: Vec<_> = answers.iter().filter(|a| a["id"].is_null()).collect();
    assert_eq!(nulls.len(), 3);
    for null in nulls {
        assert_error(null, -32600, "invalidRequest", "batch");
    }

    // Only notifications: nothing at all.
    s.0.raw(&format!("[{notification},{notification}]"));

    // A turn in a batch: its chunks stream, the array comes when all is answered.
    let id = Id("21".to_owned());
    let status = Id("22".to_owned());
    s.0.expect(&id);
    s.0.expect(&status);
    s.0.raw(&format!(
        " \t[{}, {}]",
        call("21", "session/prompt"),
        call("22", "agent/status")
    ));
    s.0.await_chunk("default", |c| c["type"] == "finish");
    let answers = s.0.batch();
    assert_eq!(answers.len(), 2);
    let turn = answers.iter().find(|a| a["id"] == 21).unwrap();
    assert_eq!(turn["result"]["text"], "m");
    s.0.claim_turn(&turn["result"]);

    // Only wrong ones.
    s.0.raw("[1,2]");
    let answers = s.0.batch();
    assert_eq!(answers.len(), 2);
    s.lives();
}

#[test]
fn a_flood_of_calls_is_answered_each_once() {
    let mut s = Survivor::lines();
    let ids: Vec<Id> = (0..500)
        .map(|_| s.0.send("agent/status", &json!({})))
        .collect();
    for id in &ids {
        assert_eq!(s.0.result(id)["state"], "ready");
    }
    s.lives();
}

#[test]
fn the_document_is_discovered_before_anything_else() {
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
    // What it lists, there is.
    for method in methods {
        if method != "shutdown" {
            let id = s.send(method, &json!([]));
            assert_ne!(s.answer(&id)["error"]["code"], -32601, "{method}");
        }
    }
}

/// Writes these calls at once; the ids are their places.
fn write_at_once(s: &mut Server, framing: Framing, calls: &[(&str, Value)]) {
    let mut bytes = Vec::new();
    for (n, (method, params)) in calls.iter().enumerate() {
        s.expect(&Id(n.to_string()));
        let call = json!({"jsonrpc": "2.0", "id": n, "method": method, "params": params});
        let call = call.to_string();
        if framing == Framing::ContentLength {
            bytes.extend(format!("Content-Length: {}\r\n\r\n", call.len()).into_bytes());
        }
        bytes.extend(call.into_bytes());
        if framing == Framing::Lines {
            bytes.push(b'\n');
        }
    }
    s.write(&bytes);
}

#[test]
fn a_whole_conversation_can_be_written_at_once() {
    for framing in [Framing::Lines, Framing::ContentLength] {
        let mut s = Server::framed(framing);
        let script = s.world.script(&json!({}));
        s.waive("agent/state");
        let calls = [
            ("initialize", json!({"protocolVersion": 1})),
            (
                "agent/connect",
                json!({"command": FAKE_AGENT, "args": [script]}),
            ),
            ("session/ensure", json!({})),
            ("session/prompt", json!({"message": "first"})),
            ("session/prompt", json!({"message": "second"})),
        ];
        write_at_once(&mut s, framing, &calls);
        let id = |n: usize| Id(n.to_string());
        assert_eq!(s.result(&id(0))["protocolVersion"], 1);
        assert_eq!(s.result(&id(1))["state"], "ready");
        assert_eq!(s.result(&id(2))["recovery"]["rung"], "new");
        assert_eq!(s.turn(&id(3)).summary["text"], "first");
        assert_eq!(s.turn(&id(4)).summary["text"], "second");
    }
}

#[test]
fn calls_that_wait_for_one_that_fails_fail_with_its_error() {
    let mut s = Server::start(&[]);
    s.waive("agent/state");
    let calls = [
        ("initialize", json!({"protocolVersion": 1})),
        ("agent/connect", json!({"command": "/no/such/agent"})),
        ("session/ensure", json!({})),
        ("session/prompt", json!({"message": "x"})),
    ];
    write_at_once(&mut s, Framing::Lines, &calls);
    s.result(&Id("0".to_owned()));
    for n in ["1", "2", "3"] {
        let error = s.error(&Id(n.to_owned()));
        assert_eq!(error["data"]["kind"], "agentNotFound", "{n}: {error}");
    }
}
