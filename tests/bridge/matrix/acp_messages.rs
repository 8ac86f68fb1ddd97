//! Invalid messages of ACP agents: none of them ends more than its own turn.

use super::deep;
use crate::harness::server::Server;
use crate::harness::steps::{end, say};
use serde_json::{Value, json};

/// Starts a server whose client receives no chunks, since the JSON reader of this test may reject values that
/// acpipe forwards.
fn without_chunks(runs: &[Vec<Value>]) -> Server {
    let mut s = Server::start(&[]);
    s.allow_gaps("default");
    let quiet = json!({"protocolVersion": 1, "capabilities": {"chunks": false}});
    s.call("initialize", &quiet);
    s.connect(&json!({ "session/prompt": runs }));
    s.ensure("default");
    s
}

fn line(text: impl Into<String>) -> Value {
    let text: String = text.into();
    json!({ "line": text })
}

fn update(update: &str) -> Value {
    line(format!(
        r#"{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"{{session}}","update":{update}}}}}"#
    ))
}

/// Sends each piece in the middle of a turn, and checks that it has no effect.
fn assert_ignored(pieces: &[Value]) {
    let around = |piece: &Value| vec![say("before "), piece.clone(), say("after"), end("end_turn")];
    let runs: Vec<Vec<Value>> = pieces.iter().map(around).collect();
    let mut s = without_chunks(&runs);
    s.waive("session/state");
    for piece in pieces {
        let turn = s.prompt("x");
        let about: String = piece.to_string().chars().take(200).collect();
        assert_eq!(turn.summary["text"], "before after", "{about}");
        assert_eq!(turn.summary["stopReason"], "end_turn", "{about}");
        assert_eq!(turn.summary["isError"], false, "{about}");
    }
}

#[test]
fn bottomless_nesting_is_skipped() {
    let deep = deep();
    let open = "[".repeat(100_000);
    let objects = r#"{"a":"#.repeat(100_000);
    assert_ignored(&[
        line(deep.clone()),
        line(open.clone()),
        line(objects.clone()),
        line(format!(r#"{{"jsonrpc":"2.0","id":{deep},"result":{{}}}}"#)),
        line(format!(r#"{{"jsonrpc":"2.0","id":{deep},"error":{deep}}}"#)),
        line(format!(r#"{{"jsonrpc":"2.0","id":99,"result":{deep}}}"#)),
        line(format!(
            r#"{{"jsonrpc":"2.0","id":{deep},"method":"fs/read_text_file","params":{{}}}}"#
        )),
        line(format!(
            r#"{{"jsonrpc":"2.0","id":5,"method":"fs/read_text_file","params":{deep}}}"#
        )),
        line(format!(
            r#"{{"jsonrpc":"2.0","id":6,"method":"session/request_permission","params":{{"sessionId":"{{session}}","toolCall":{deep},"options":{deep}}}}}"#
        )),
        line(format!(r#"{{"jsonrpc":"2.0","method":{deep}}}"#)),
        line(format!(
            r#"{{"jsonrpc":"2.0","method":"session/update","params":{deep}}}"#
        )),
        line(format!(
            r#"{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":{deep},"update":{deep}}}}}"#
        )),
        line(format!(
            r#"{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"{{session}}","update":{open}"#
        )),
        update(&deep),
        update(&format!(r#"{{"sessionUpdate":{deep}}}"#)),
        update(&format!(
            r#"{{"sessionUpdate":"agent_message_chunk","content":{{"type":"image","data":{deep}}}}}"#
        )),
        update(&format!(
            r#"{{"sessionUpdate":"usage_update","used":{deep},"size":{deep}}}"#
        )),
    ]);
}

#[test]
fn duplicate_and_prototype_keys_are_handled() {
    let text = |fields: &str| {
        update(&format!(
            r#"{{"sessionUpdate":"agent_thought_chunk","content":{{"type":"text","text":"x"}},{fields}}}"#
        ))
    };
    assert_ignored(&[
        line(r#"{"jsonrpc":"2.0","id":99,"id":98,"result":{},"result":[]}"#.to_owned()),
        line(
            r#"{"jsonrpc":"2.0","method":"x","method":"session/update","params":{},"params":[]}"#
                .to_owned(),
        ),
        text(r#""content":{"type":"text","text":"y","text":"z","type":"image"}"#),
        text(r#""sessionUpdate":"plan","sessionUpdate":"agent_thought_chunk""#),
        text(
            r#""__proto__":{"x":1},"constructor":{"prototype":{"x":1}},"toString":1,"hasOwnProperty":null"#,
        ),
        text(r#""_meta":{"__proto__":{"x":1},"\u005f_proto__":2}"#),
        update(
            r#"{"sessionUpdate":"tool_call","toolCallId":"__proto__","title":"constructor","rawInput":{"__proto__":{"x":1}}}"#,
        ),
        update(
            r#"{"sessionUpdate":"current_mode_update","currentModeId":"__proto__","__proto__":"x"}"#,
        ),
        line(r#"{"jsonrpc":"2.0","method":"__proto__","__proto__":{"id":1}}"#.to_owned()),
    ]);
}

#[test]
fn nul_and_partial_characters_are_handled() {
    assert_ignored(&[
        update(r#"{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"a\u0000b\ud800"}}"#),
        update(r#"{"sessionUpdate":"tool_call","toolCallId":"\u0000","title":"\udfff","kind":"\u0000","rawInput":{"\ud800":"\ud800"}}"#),
        update(r#"{"sessionUpdate":"\ud800\u0000"}"#),
        update(r#"{"sessionUpdate":"available_commands_update","availableCommands":[{"name":"\u0000"},{"name":"\ud83d"}]}"#),
        line(r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"\u0000\ud800","update":{"sessionUpdate":"plan","entries":[]}}}"#.to_owned()),
        line(r#"{"jsonrpc":"2.0","id":"\u0000\ud800","result":{}}"#.to_owned()),
        line(r#"{"jsonrpc":"2.0","id":"\ud800","method":"\ud800\u0000"}"#.to_owned()),
        line("{\"jsonrpc\":\"2.0\",\"method\":\"a\u{0}b\"}".to_owned()),
    ]);
}

#[test]
fn unexpected_answers_are_ignored() {
    let ids = [
        "0",
        "-1",
        "1.5",
        "1e999",
        "99999999999999999999999999",
        "true",
        "{}",
        r#""""#,
        r#""1""#,
        "null",
    ];
    let answers = [
        r#""result":{"stopReason":"refusal"}"#,
        r#""error":{"code":-1,"message":"no"}"#,
    ];
    let pieces = ids.iter().flat_map(|id| {
        answers.map(|answer| line(format!(r#"{{"jsonrpc":"2.0","id":{id},{answer}}}"#)))
    });
    assert_ignored(&pieces.collect::<Vec<_>>());
}

/// Each case: members of the answer to a prompt, and the kind of the turn's error (empty for none).
#[test]
fn prompt_is_answered_for_every_invalid_agent_response() {
    let deep = deep();
    let cases = [
        (
            r#""result":{"stopReason":"end_turn"},"error":{"code":-32603,"message":"both"}"#
                .to_owned(),
            "session",
        ),
        (
            r#""error":{"code":-32603,"message":"both"},"result":{"stopReason":"end_turn"}"#
                .to_owned(),
            "session",
        ),
        (r#""nothing":1"#.to_owned(), "malformed"),
        (format!(r#""result":{deep}"#), "malformed"),
        (format!(r#""result":{{"stopReason":{deep}}}"#), "malformed"),
        (format!(r#""error":{deep}"#), "session"),
        (r#""error":"text""#.to_owned(), "session"),
        (
            r#""error":{"code":"E","message":{"a":1},"data":"\ud800"}"#.to_owned(),
            "session",
        ),
        (
            r#""result":{"stopReason":"end_turn","stopReason":"refusal","__proto__":{"x":1}}"#
                .to_owned(),
            "",
        ),
        (r#""result":{"stopReason":"\u0000\ud800"}"#.to_owned(), ""),
    ];
    let mut runs: Vec<Vec<Value>> = cases
        .iter()
        .map(|(members, _)| {
            vec![
                say("kept"),
                line(format!(r#"{{"jsonrpc":"2.0","id":{{id}},{members}}}"#)),
                json!({"sleep": 100}),
            ]
        })
        .collect();
    runs.push(vec![json!({"default": true})]);
    let mut s = without_chunks(&runs);
    for (members, kind) in &cases {
        let about = &members[..members.len().min(100)];
        let turn = s.prompt("x");
        let said = turn.summary["errors"][0]["kind"]
            .as_str()
            .unwrap_or_default();
        assert_eq!(said, *kind, "{about}: {}", turn.summary);
        assert_eq!(turn.summary["text"], "kept", "{about}");
    }
    assert_eq!(s.prompt("next").summary["text"], "next");
}

#[test]
fn two_requests_with_one_id_are_both_answered() {
    let ask = |tool: &str| {
        line(format!(
            r#"{{"jsonrpc":"2.0","id":7,"method":"session/request_permission","params":{{"sessionId":"{{session}}","toolCall":{{"toolCallId":"{tool}"}},"options":[{{"optionId":"y","name":"Yes","kind":"allow_once"}}]}}}}"#
        ))
    };
    let unknown =
        line(r#"{"jsonrpc":"2.0","id":7,"method":"fs/read_text_file","params":{}}"#.to_owned());
    let mut s = without_chunks(&[
        vec![ask("a"), ask("b"), unknown, end("end_turn")],
        vec![json!({"default": true})],
    ]);
    assert_eq!(s.prompt("x").summary["stopReason"], "end_turn");
    assert_eq!(s.prompt("next").summary["text"], "next");
    let log = s.finish().log;
    let answers: Vec<&Value> = log.iter().filter(|m| m["id"] == 7).collect();
    let allowed = answers
        .iter()
        .filter(|m| m["result"]["outcome"]["optionId"] == "y");
    let refused = answers.iter().filter(|m| m["error"]["code"] == -32601);
    assert_eq!(
        (allowed.count(), refused.count(), answers.len()),
        (2, 1, 3),
        "{answers:?}"
    );
}

#[test]
fn flood_of_tiny_lines_is_counted_and_the_turn_continues() {
    let lines = "\n{}\n[]\nnull\n".repeat(500);
    let flood = json!({"repeat": {"times": 100, "steps": [{ "partial": lines }]}});
    let mut s = without_chunks(&[
        vec![say("before "), flood, say("after"), end("end_turn")],
        vec![json!({"default": true})],
    ]);
    assert_eq!(s.prompt("x").summary["text"], "before after");
    let faults = s.call("agent/status", &json!({}))["faults"].clone();
    let want = json!({"malformed": 150_000, "blank": 50_000, "invalidUtf8": 0, "tooLong": 0});
    assert_eq!(faults, want);
    assert_eq!(s.prompt("next").summary["text"], "next");
    // A log line for each fault would be another flood.
    assert!(s.finish().stderr.len() < 100_000);
}
