//! Calls that are written at once: batches, floods and complete conversations.

use super::{Survivor, assert_error};
use crate::harness::FAKE_AGENT;
use crate::harness::server::{Framing, Id, Server};
use serde_json::{Value, json};

#[test]
fn batches_are_answered_as_batches() {
    let mut s = Survivor::lines();
    let call = |id: &str, method: &str| {
        let params = match method {
            "session/prompt" => r#"{"message":"m"}"#,
            _ => "{}",
        };
        format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#)
    };
    let notification = r#"{"jsonrpc":"2.0","method":"agent/status"}"#;

    // Mixed: all answers arrive in one array.
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

    // Notifications only: no answer.
    s.0.raw(&format!("[{notification},{notification}]"));

    // A turn in a batch: its chunks are streamed, and the array follows when all calls are answered.
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

    // Invalid messages only.
    s.0.raw("[1,2]");
    let answers = s.0.batch();
    assert_eq!(answers.len(), 2);
    s.assert_alive();
}

/// Writes these calls at once; their ids are their indexes.
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
        let [first, second] = [3, 4].map(|n| s.turn(&id(n)).summary);
        assert_eq!(
            (&first["text"], &second["text"]),
            (&json!("first"), &json!("second"))
        );
        for id in ["turnId", "messageId"] {
            assert_ne!(first[id], second[id]);
        }
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
