//! Faults of clients. The whole input is written at once and acpipe exits at its end, so the next client gets
//! a new acpipe.

use super::deep;
use crate::harness::run::Run;
use serde_json::Value;

/// Returns acpipe's answers to these bytes after `initialize`, one for each line of output.
fn answers(said: &[u8]) -> Vec<Value> {
    let hello =
        br#"{"jsonrpc":"2.0","id":"hello","method":"initialize","params":{"protocolVersion":1}}"#;
    let all = [&hello[..], b"\n", said].concat();
    let outcome = Run::new(&["serve"]).stdin(all).go().expect(0);
    let text = outcome.text();
    assert!(
        text.is_empty() || text.ends_with('\n'),
        "{}",
        outcome.show()
    );
    let mut answers: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}")))
        .collect();
    let first = answers.remove(0);
    assert_eq!(first["id"], "hello");
    assert_eq!(first["result"]["protocolVersion"], 1);
    answers
}

/// Returns the error codes of the answers, with 0 for a result. Answers of a batch count one by one.
fn codes(answers: &[Value]) -> Vec<i64> {
    let single = |answer: &Value| match answer {
        Value::Array(batch) => batch.clone(),
        single => vec![single.clone()],
    };
    answers
        .iter()
        .flat_map(single)
        .map(|answer| answer["error"]["code"].as_i64().unwrap_or(0))
        .collect()
}

#[test]
fn each_invalid_message_gets_one_answer() {
    let deep = deep();
    let status = |id: &str| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"agent/status"}}"#);
    // (input, code of the answer: 0 for a result)
    let cases = [
        (deep.clone(), -32600),
        ("[".repeat(100_000), -32700),
        (status(&deep), -32600),
        (format!(r#"{{"jsonrpc":"2.0","id":1,"method":"agent/status","params":{deep}}}"#), -32602,
        ),
        (format!(r#"{{"jsonrpc":"2.0","id":1,"method":"session/ensure","params":{{"mcpServers":{deep}}}}}"#), -32602),
        (format!(r#"{{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{{"message":{deep}}}}}"#), -32602),
        (status(&format!(r#""{}""#, "x".repeat(1 << 20))), 0),
        (status(&"9".repeat(300)), 0),
        (status("-0"), 0),
        (status(r#""\u0000__proto__""#), 0),
        (r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"agent/status"}"#.to_owned(), 0),
        (r#"{"jsonrpc":"2.0","id":1,"method":"agent/status","method":"nonsense"}"#.to_owned(), -32601),
        (r#"{"jsonrpc":"2.0","id":1,"method":"__proto__","__proto__":{}}"#.to_owned(), -32601),
        (r#"{"jsonrpc":"2.0","id":1,"method":"\ud800"}"#.to_owned(), -32601),
        (r#"{"jsonrpc":"2.0","id":1,"method":"session/get","params":{"sessionId":"\ud800\u0000/../x"}}"#.to_owned(), -32602),
        ("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\u{0}\"}".to_owned(), -32700),
        ("}".to_owned(), -32700),
        ("null".to_owned(), -32600),
    ];
    let mut told = Vec::new();
    for (said, code) in &cases {
        let got = codes(&answers(format!("{said}\n").as_bytes()));
        if got != [*code] {
            told.push(format!(
                "{}: {got:?}, not {code}",
                &said[..said.len().min(100)]
            ));
        }
    }
    assert!(told.is_empty(), "{told:#?}");
}

#[test]
fn one_id_for_two_calls_gets_two_answers() {
    let call = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"session/ensure\",\"params\":{\"sessionId\":\"a\"}}\n";
    let answers = answers(call.repeat(2).as_bytes());
    let own = answers.iter().filter(|answer| answer["id"] == 1);
    assert_eq!(own.count(), 2, "{answers:?}");
}

#[test]
fn a_flood_of_tiny_lines_is_answered_line_by_line() {
    let said = "\n{}\n[]\nnull\n".repeat(5_000);
    let answers = answers(said.as_bytes());
    assert_eq!(answers.len(), 15_000);
    assert!(codes(&answers).iter().all(|code| *code == -32600));
}

#[test]
fn thousands_of_calls_of_a_client_that_reads_late_are_answered() {
    let call =
        |id: usize| format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"agent/status\"}}\n");
    let said: String = (0..5_000).map(call).collect();
    let answers = answers(said.as_bytes());
    let ids: Vec<u64> = answers
        .iter()
        .filter_map(|answer| answer["id"].as_u64())
        .collect();
    let wrong = ids.iter().zip(0..).find(|(id, place)| *id != place);
    assert_eq!((ids.len(), wrong), (5_000, None));
    assert!(codes(&answers).iter().all(|code| *code == 0));
}
