//! Invalid output of agents: it is skipped and counted, and never ends the connection.

use crate::harness::server::Server;
use crate::harness::steps::{end, say};
use serde_json::{Value, json};

const CAP: [&str; 2] = ["--max-line", "64K"];

fn faults(s: &mut Server) -> Value {
    s.call("agent/status", &json!({}))["faults"].clone()
}

/// Steps with text before and after a piece of garbage; both texts must arrive.
fn around(garbage: &Value) -> Vec<Value> {
    vec![
        say("before "),
        garbage.clone(),
        say("after"),
        end("end_turn"),
    ]
}

#[test]
fn lines_that_are_not_messages_are_skipped() {
    let garbage = [
        json!({"line": ""}),
        json!({"line": " \t "}),
        json!({"line": "\r"}),
        json!({"line": "npm warn deprecated something"}),
        json!({"line": "{"}),
        json!({"line": "[1,2,3]"}),
        json!({"line": r#"[{"jsonrpc":"2.0","id":1,"result":{}}]"#}),
        json!({"line": "\"text\""}),
        json!({"line": "5"}),
        json!({"line": "null"}),
        json!({"line": "{}"}),
        json!({"line": r#"{"jsonrpc":"2.0","id":3}"#}),
        json!({"line": r#"{"jsonrpc":"2.0","method":5}"#}),
        json!({"line": r#"{"jsonrpc":"2.0","method":"x"} trailing"#}),
        json!({"bytes": [0, 10]}),
        json!({"bytes": [255, 10]}),
        json!({"bytes": [0xc3, 0x28, 10, 0xe2, 0x82, 10]}),
        json!({"line": r#"{"jsonrpc":"2.0","id":999,"result":{}}"#}),
        json!({"line": r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}"#}),
        json!({"line": r#"{"jsonrpc":"2.0","error":{"code":-32700,"message":"Parse error"}}"#}),
        json!({"line": r#"{"jsonrpc":"2.0","id":"x","result":null}"#}),
        json!({"notify": {"method": "_ext/news", "params": {"x": 1}}}),
        json!({"notify": {"method": "session/request_permission"}}),
        json!({"notify": {"method": "$/progress", "params": [1]}}),
        json!({"notify": {"method": ""}}),
        json!({"huge": {"bytes": 200_000}}),
        json!({"huge": {"bytes": 200_000, "prefix": "{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{\"x\":\"", "suffix": "\"}}"}}),
    ];
    let runs: Vec<Vec<Value>> = garbage.iter().map(around).collect();
    let mut s = Server::ready_with(&CAP, &json!({"session/prompt": runs}));
    for piece in &garbage {
        let turn = s.prompt("x");
        assert_eq!(turn.summary["text"], "before after", "{piece}");
        assert_eq!(turn.summary["stopReason"], "end_turn", "{piece}");
        assert!(turn.of("data-acp").is_empty(), "{piece}");
    }
    assert_eq!(
        faults(&mut s),
        json!({"malformed": 12, "blank": 3, "invalidUtf8": 3, "tooLong": 2})
    );
}

#[test]
fn lines_in_pieces_and_with_crlf_are_whole() {
    let mut s = Server::ready(&json!({"session/prompt": [[
        {"partial": r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"fake-1","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"in "#},
        {"sleep": 30},
        {"bytes": [0xf0, 0x9f]},
        {"sleep": 30},
        {"bytes": [0x98, 0x80]},
        {"sleep": 30},
        {"partial": " pieces\"}}}}\r\n{\"jsonrpc\":\"2.0\","},
        {"sleep": 30},
        {"line": r#""id":{id},"result":{"stopReason":"end_turn"}}"#},
    ]]}));
    assert_eq!(s.prompt("x").summary["text"], "in \u{1F600} pieces");
    assert_eq!(faults(&mut s)["malformed"], 0);
}

#[test]
fn unterminated_last_line_counts_only_if_it_is_complete_json() {
    let answer = r#"{"jsonrpc":"2.0","id":{id},"result":{"stopReason":"end_turn"}}"#;
    let half = r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"fake-1","upda"#;
    for (line, kind) in [(answer, Value::Null), (half, json!("agentExited"))] {
        let steps = json!([say("whole"), {"partial": line}, {"exit": 1}]);
        let mut s = Server::ready(&json!({"session/prompt": [steps]}));
        let turn = s.prompt("x");
        assert_eq!(turn.summary["text"], "whole");
        assert_eq!(turn.summary["errors"][0]["kind"], kind);
        assert_eq!(s.notification("agent/state")["state"], "disconnected");
    }
}

#[test]
fn an_answer_over_the_cap_fails_its_call() {
    let huge = |prefix: &str, suffix: &str| json!([say("x"), {"huge": {"bytes": 100_000, "prefix": prefix, "suffix": suffix}}]);
    let runs = [
        huge(
            r#"{"jsonrpc":"2.0","id":{id},"result":{"stopReason":"end_turn","_meta":{"x":""#,
            r#""}}}"#,
        ),
        huge(r#"{"jsonrpc":"2.0","id":"{id}","result":{"x":""#, r#""}}"#),
        huge(r#"{"result":{"x":""#, r#""},"id":{id}}"#),
        huge(r#"{"result":{"x":""#, r#""},"id" : {id}, "jsonrpc":"2.0"}"#),
        huge(
            r#"{"jsonrpc":"2.0","error":{"code":1,"message":""#,
            r#""},"id":{id}}"#,
        ),
    ];
    let mut s = Server::ready_with(&CAP, &json!({"session/prompt": runs}));
    for run in &runs {
        let turn = s.prompt("x");
        let error = &turn.summary["errors"][0];
        assert_eq!(error["kind"], "malformed", "{run}");
        let message = error["message"].as_str().unwrap();
        assert!(message.contains("--max-line"), "{message}");
        let raw = error["data"]["raw"].as_str().unwrap();
        assert!(raw.starts_with('{') && raw.len() < 3000, "{raw}");
        assert_eq!(turn.summary["text"], "x");
    }
    assert_eq!(faults(&mut s)["tooLong"], 5);
}

#[test]
fn a_request_over_the_cap_is_answered() {
    let huge = |prefix: &str, suffix: &str| json!({"huge": {"bytes": 100_000, "prefix": prefix, "suffix": suffix}});
    let mut s = Server::ready_with(
        &CAP,
        &json!({"session/prompt": [[
            huge(r#"{"jsonrpc":"2.0","id":"long-1","method":"session/request_permission","params":{"x":""#, "\"}}"),
            huge(r#"{"method":"fs/write_text_file","id":0,"jsonrpc":"2.0","params":{"content":""#, "\"}}"),
            huge(r#"{"id":"a\"b","params":{"x":[1,{"id":5}]},"method":"m","y":""#, "\"}"),
            say("x"),
            end("end_turn"),
        ]]}),
    );
    assert_eq!(s.prompt("x").summary["stopReason"], "end_turn");
    let log = s.finish().log;
    let refused: Vec<&Value> = log.iter().filter(|m| m.get("error").is_some()).collect();
    let ids: Vec<&Value> = refused.iter().map(|m| &m["id"]).collect();
    assert_eq!(ids, [&json!("long-1"), &json!(0), &json!("a\"b")]);
    for answer in refused {
        assert_eq!(answer["error"]["code"], -32600);
        assert!(
            answer["error"]["message"]
                .as_str()
                .unwrap()
                .contains("longer than the limit")
        );
    }
}

#[test]
fn a_line_just_under_the_cap_is_kept() {
    let prefix = r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"fake-1","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":""#;
    let suffix = r#""}}}}"#;
    let cap = 64 * 1024;
    let fits = cap - prefix.len() - suffix.len();
    let step = |bytes: usize| json!([{"huge": {"bytes": bytes, "prefix": prefix, "suffix": suffix}}, end("end_turn")]);
    let mut s = Server::ready_with(
        &CAP,
        &json!({"session/prompt": [step(fits), step(fits + 1)]}),
    );
    assert_eq!(s.prompt("x").summary["text"].as_str().unwrap().len(), fits);
    assert_eq!(s.prompt("x").summary["text"], "");
    assert_eq!(faults(&mut s)["tooLong"], 1);
}

#[test]
fn unsupported_agent_requests_are_refused() {
    let ask = |method: &str, id: &Value| json!({"ask": {"method": method, "id": id, "params": {"path": "/x"}}});
    let asked = [
        ("fs/read_text_file", json!(0)),
        ("fs/write_text_file", json!("s")),
        ("terminal/create", json!(-1)),
        ("_ext/whatever", json!(2.5)),
        ("", json!("")),
    ];
    let mut steps: Vec<Value> = asked.iter().map(|(method, id)| ask(method, id)).collect();
    steps.extend([json!({"echoAnswer": true}), end("end_turn")]);
    let mut s = Server::ready(&json!({"session/prompt": [steps]}));
    let turn = s.prompt("x");
    assert!(turn.summary["text"].as_str().unwrap().contains("-32601"));
    let log = s.finish().log;
    let refused: Vec<&Value> = log.iter().filter(|m| m.get("error").is_some()).collect();
    assert_eq!(refused.len(), asked.len());
    for (answer, (method, id)) in refused.iter().zip(&asked) {
        assert_eq!(answer["id"], *id);
        assert_eq!(answer["error"]["code"], -32601, "{method}");
        assert!(
            answer["error"]["message"]
                .as_str()
                .unwrap()
                .contains(method)
        );
    }
}
