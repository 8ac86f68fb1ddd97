//! Large messages with very many small members: their memory while they pass or are refused. Parsed into
//! values they would take twenty to a hundred times their size.

use super::{Client, MIB, mib, print_line};
use crate::harness::steps::{end, say};
use serde_json::{Value, json};
use std::io::Write as _;

/// Size of a message.
const SIZE: u64 = if cfg!(debug_assertions) { 8 } else { 48 } * MIB;

/// Asserts that a message took at most four times its size in memory, plus a few buffers.
fn assert_ratio(client: &Client, idle: u64, size: u64, what: &str) {
    let took = client.peak().saturating_sub(idle);
    let percent = took * 100 / size;
    print_line(&format!(
        "{what} of {}: {} above idle, {percent} % of its size",
        mib(size),
        mib(took)
    ));
    assert!(took <= 4 * size + 2 * MIB, "{what}: {percent} %");
}

/// Repeats a small piece up to the size of a message.
fn many(piece: &str) -> String {
    piece.repeat(usize::try_from(SIZE).unwrap() / piece.len())
}

/// Sends one line to acpipe and returns its answer. A later prompt must succeed.
fn refused(what: &str, id: Option<u32>, line: &str) -> Value {
    let script = json!({"session/prompt": [[say("still here"), end("end_turn")]]});
    let mut client = Client::new(&[], &script);
    let idle = client.memory("VmRSS");
    writeln!(client.stdin, "{line}").unwrap();
    let answer = match id {
        Some(id) => client.read_to(id, |_| {}),
        None => client.read_to_error(),
    };
    client.send(9, "session/prompt", &json!({"message": "go"}));
    assert_eq!(client.read_to(9, |_| {})["result"]["text"], "still here");
    assert_ratio(&client, idle, line.len() as u64, what);
    client.finish();
    answer
}

#[test]
fn a_batch_of_very_many_messages_is_refused_as_a_whole() {
    for piece in ["1,", "{},", "[],", r#"{"id":1,"method":"x"},"#] {
        let answer = refused("a batch", None, &format!("[{}1]", many(piece)));
        let told = answer["error"]["message"].as_str().unwrap();
        assert!(told.contains("1024 messages"), "{told}");
    }
}

#[test]
fn params_with_very_many_members_are_refused() {
    let server = r#"{"name":"a","command":"b","args":[],"env":[]},"#;
    let env = r#"{"name":"a","value":"secret-1"},"#;
    let cases = [
        format!(
            r#"{{"mcpServers":[{}]}}"#,
            many(server).trim_end_matches(',')
        ),
        format!(
            r#"{{"mcpServers":[{{"name":"a","command":"b","args":[],"env":[{}]}}]}}"#,
            many(env).trim_end_matches(',')
        ),
        format!(r#"{{"unknown":[{}1]}}"#, many("1,")),
        format!(r#"{{{}"z":1}}"#, many(r#""a":1,"#)),
    ];
    for params in cases {
        let line =
            format!(r#"{{"jsonrpc":"2.0","id":5,"method":"session/ensure","params":{params}}}"#);
        let answer = refused("session/ensure", Some(5), &line);
        assert_eq!(answer["error"]["data"]["kind"], "invalidParams");
    }
}

#[test]
fn prompt_with_too_many_values_is_refused() {
    for part in [r#"{"type":"x"},"#, "1,", "[],"] {
        let line = format!(
            r#"{{"jsonrpc":"2.0","id":5,"method":"session/prompt","params":{{"message":{{"parts":[{}{{"type":"text","text":"a"}}]}}}}}}"#,
            many(part)
        );
        let answer = refused("session/prompt", Some(5), &line);
        assert_eq!(answer["error"]["data"]["kind"], "invalidParams");
    }
}

/// Steps that write an update with very many small members in one line.
fn update(before: &str, piece: &str, after: &str) -> [Value; 3] {
    let block = piece.repeat(64 * 1024 / piece.len());
    let begin = format!(
        r#"{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"fake-1","update":{{{before}"#
    );
    let times = SIZE / block.len() as u64;
    [
        json!({"partial": begin}),
        json!({"repeat": {"times": times, "steps": [{"partial": block}]}}),
        json!({"line": format!("{after}}}}}}}")}),
    ]
}

/// Runs these steps in a turn, then another prompt, and checks the memory.
fn passes(what: &str, steps: &[Value]) {
    let rest = [say("z"), end("end_turn")];
    let run = [steps, &rest].concat();
    let script = json!({"session/prompt": [run, [say("still here"), end("end_turn")]]});
    let mut client = Client::new(&[], &script);
    let idle = client.memory("VmRSS");
    for (id, text) in [(3, "z"), (4, "still here")] {
        client.send(id, "session/prompt", &json!({"message": "go"}));
        assert_eq!(client.read_to_raw(id)["result"]["text"], text);
    }
    assert_ratio(&client, idle, SIZE, what);
    client.finish();
}

#[test]
fn session_state_of_very_many_members_takes_bounded_memory() {
    for (kind, name, piece) in [
        (
            "available_commands_update",
            "availableCommands",
            r#"{"name":"a","description":""},"#,
        ),
        (
            "config_option_update",
            "configOptions",
            r#"{"id":"a","type":"select","options":[]},"#,
        ),
        ("available_commands_update", "availableCommands", "1,"),
    ] {
        let before = format!(r#""sessionUpdate":"{kind}","{name}":["#);
        passes(name, &update(&before, piece, "1]"));
    }
}

#[test]
fn tool_output_of_very_many_members_takes_bounded_memory() {
    let tool = r#""sessionUpdate":"tool_call","toolCallId":"t","title":"t","status":"completed","rawInput":{"a":1},"#;
    passes(
        "rawOutput of numbers",
        &update(&format!(r#"{tool}"rawOutput":["#), "1,", "1]"),
    );
    passes(
        "rawOutput of members",
        &update(
            &format!(r#"{tool}"rawOutput":{{"#),
            r#""a":1,"#,
            r#""z":1}"#,
        ),
    );
}

#[test]
fn tool_call_member_with_very_many_values_takes_bounded_memory() {
    let tool = r#""sessionUpdate":"tool_call","toolCallId":"t","title":"t","status":"completed","#;
    for (what, name, piece) in [
        ("content", "content", "0,"),
        ("locations", "locations", r#"{"path":"a"},"#),
        ("_meta", "_meta", r#"{"a":1},"#),
    ] {
        let begin = format!("{tool}\"{name}\":[");
        passes(what, &update(&begin, piece, "1]"));
    }
}

/// Steps that write a line of `SIZE` bytes with very many small members.
fn line(before: &str, piece: &str, after: &str) -> [Value; 3] {
    let block = piece.repeat(64 * 1024 / piece.len());
    [
        json!({"partial": before}),
        json!({"repeat": {"times": SIZE / block.len() as u64, "steps": [{"partial": block}]}}),
        json!({"line": after}),
    ]
}

#[test]
fn agent_requests_of_very_many_members_take_bounded_memory() {
    let requests = [
        (
            "terminal/create",
            r#""sessionId":"fake-1","command":"a","args":["#,
            r#""a","#,
            r#""a"]"#,
        ),
        (
            "session/request_permission",
            r#""sessionId":"fake-1","toolCall":{"toolCallId":"t"},"options":["#,
            r#"{"optionId":"a","name":"a","kind":"allow_once"},"#,
            "{}]",
        ),
    ];
    for (method, before, piece, after) in requests {
        let before =
            format!(r#"{{"jsonrpc":"2.0","id":77,"method":"{method}","params":{{{before}"#);
        passes(method, &line(&before, piece, &format!("{after}}}}}")));
    }
}

#[test]
fn an_answer_to_a_prompt_of_very_many_members_fails_its_turn() {
    let before = r#"{"jsonrpc":"2.0","id":{id},"result":{"stopReason":"end_turn","usage":{"#;
    let steps = line(before, r#""a":1,"#, r#""z":1}}}"#);
    let script = json!({"session/prompt": [steps, [say("still here"), end("end_turn")]]});
    let mut client = Client::new(&[], &script);
    let idle = client.memory("VmRSS");
    client.send(3, "session/prompt", &json!({"message": "go"}));
    let error = &client.read_to_raw(3)["result"]["errors"][0];
    assert_eq!(error["kind"], "malformed", "{error}");
    client.send(4, "session/prompt", &json!({"message": "go"}));
    assert_eq!(client.read_to_raw(4)["result"]["text"], "still here");
    assert_ratio(&client, idle, SIZE, "usage");
    client.finish();
}
