//! Lines of agents that are almost messages: they are repaired, or what waits for them is answered.

use crate::harness::claude;
use crate::harness::run::Run;
use crate::harness::server::Server;
use crate::harness::steps::{end, say};
use serde_json::{Value, json};

/// Damages a line.
type Damage = fn(&str) -> Vec<u8>;

/// Ways in which a line `{…,"x":1}` is damaged.
const DAMAGES: &[(&str, Damage)] = &[
    ("control", |line| line.into()),
    ("NaN", |line| line.replace("\"x\":1", "\"x\":NaN").into()),
    ("Infinity", |line| {
        line.replace("\"x\":1", "\"x\":[-Infinity]").into()
    }),
    ("not UTF-8", |line| {
        let (before, after) = line.split_once("\"x\":1").unwrap();
        [before.as_bytes(), b"\"x\":\"caf\xe9\"", after.as_bytes()].concat()
    }),
    ("tab", |line| {
        line.replace("\"x\":1", "\"x\":\"a\tb\"").into()
    }),
    ("trailing comma", |line| {
        line.replace("\"x\":1", "\"x\":1,").into()
    }),
    ("log before", |line| {
        format!("[debug] it's \"starting\" {line}").into()
    }),
    ("log behind", |line| format!("{line}[debug] done").into()),
];

/// Returns the step that writes a damaged line.
fn damaged(damage: Damage, line: &str) -> Value {
    let mut bytes = damage(line);
    bytes.push(b'\n');
    json!({ "bytes": bytes })
}

fn request(id: u32, method: &str, more: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{"sessionId":"fake-1"{more},"_meta":{{"x":1}}}}}}"#
    )
}

fn permission(id: u32) -> String {
    let more = r#","toolCall":{"toolCallId":"t","kind":"read"},"options":[{"optionId":"y","name":"Yes","kind":"allow_once"}]"#;
    request(id, "session/request_permission", more)
}

fn update(text: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"fake-1","update":{{"sessionUpdate":"agent_message_chunk","content":{{"type":"text","text":"{text}"}},"_meta":{{"x":1}}}}}}}}"#
    )
}

/// Plays the steps in a turn; returns the text of the turn and what the agent received.
fn play(mut steps: Vec<Value>) -> (String, Vec<Value>) {
    steps.push(end("end_turn"));
    let mut server = Server::ready(&json!({ "session/prompt": [steps] }));
    let summary = server.prompt("go").summary;
    assert_eq!(summary["stopReason"], "end_turn", "{summary}");
    let text = summary["text"].as_str().unwrap_or_default().to_owned();
    (text, server.finish().log)
}

fn answer(log: &[Value], id: u32) -> &Value {
    let mut answers = log
        .iter()
        .filter(|m| m["id"] == id && m.get("method").is_none());
    let answer = answers.next().unwrap_or(&Value::Null);
    assert_eq!(answers.next(), None, "a second answer");
    answer
}

#[test]
fn damaged_messages_are_repaired_and_handled() {
    let mut steps = Vec::new();
    for (n, (_, damage)) in (100..).zip(DAMAGES) {
        steps.push(damaged(*damage, &permission(n)));
    }
    let glued = permission(200) + &request(201, "unknown", "");
    steps.push(json!({ "line": glued }));
    for (_, damage) in DAMAGES {
        steps.push(damaged(*damage, &update("a")));
    }
    steps.push(json!({ "line": update("b") + &update("c") }));
    let (text, log) = play(steps);
    assert_eq!(text, "a".repeat(DAMAGES.len()) + "bc");
    for (n, (name, _)) in (100..).zip(DAMAGES) {
        let outcome = &answer(&log, n)["result"]["outcome"];
        assert_eq!(outcome["optionId"], "y", "{name}");
    }
    assert_eq!(answer(&log, 200)["result"]["outcome"]["optionId"], "y");
    assert_eq!(answer(&log, 201)["error"]["code"], -32601);
}

#[test]
fn request_that_cannot_be_repaired_is_refused_with_the_reason() {
    let broken = [
        (
            1,
            r#"{"jsonrpc":"2.0","id":1,"method":"fs/read_text_file","params":{"path":undefined}}"#,
            "column",
        ),
        (
            2,
            r#"{"jsonrpc":"2.0","id":2,"method":"fs/read_text_file","params":{"path":"/a"#,
            "EOF",
        ),
        (
            3,
            r#"{"jsonrpc":"2.0","params":{"a":"\x"},"method":"m","id":3}"#,
            "escape",
        ),
        (
            4,
            r#"[log] {"jsonrpc":"2.0","id":4,"method":"m","params":{"a" 1}}"#,
            "column",
        ),
        (
            5,
            r#"{"jsonrpc":"2.0","method":"session/x","params":{}}{"jsonrpc":"2.0","id":5,"method":"m","params":"#,
            "EOF",
        ),
        (
            6,
            r#"{"jsonrpc":"2.0","id":6,"method":"session/request_perm"#,
            "EOF",
        ),
        (7, r#"{"jsonrpc":"2.0","id":7,"meth"#, "EOF"),
    ];
    let mut steps = broken.map(|(_, line, _)| json!({ "line": line })).to_vec();
    steps.push(say("x"));
    let (_, log) = play(steps);
    for (id, line, why) in broken {
        let error = &answer(&log, id)["error"];
        assert_eq!(error["code"], -32700, "{line}");
        let message = error["message"].as_str().unwrap();
        assert!(message.contains(why), "{message}");
    }
}

#[test]
fn message_in_a_log_line_is_handled_once() {
    let sent = update("once ");
    let received = r#"{"jsonrpc":"2.0","id":9,"method":"session/prompt","params":{}}"#;
    let (text, log) = play(vec![
        json!({ "line": format!("<- {received}") }),
        json!({ "line": format!("-> {sent}") }),
        json!({ "line": sent }),
        json!({ "line": sent }),
        json!({ "line": format!("-> {}", permission(7)) }),
        json!({ "line": permission(7) }),
    ]);
    // The second line of its own is another update.
    assert_eq!(text, "once once ");
    assert_eq!(answer(&log, 9), &Value::Null);
    assert_eq!(answer(&log, 7)["result"]["outcome"]["optionId"], "y");
}

#[test]
fn damaged_response_ends_its_turn() {
    let response =
        r#"[log] {"jsonrpc":"2.0","id":{id},"result":{"stopReason":"end_turn","usage":NaN}}"#;
    let run = vec![say("x"), json!({ "line": response })];
    let mut server = Server::ready(&json!({ "session/prompt": [run] }));
    let summary = server.prompt("go").summary;
    assert_eq!(
        (&summary["stopReason"], &summary["text"]),
        (&json!("end_turn"), &json!("x"))
    );
}

#[test]
fn response_in_a_log_line_ends_no_turn() {
    let quoted = [
        r#"answer: "{"jsonrpc":"2.0","id":{id},"result":{"stopReason":"refusal"}}""#,
        r#"{"jsonrpc":"2.0","id":{id},"result":{"stopReason":"refusal"}} was the answer"#,
    ];
    let mut steps = quoted.map(|line| json!({ "line": line })).to_vec();
    // Request ids do not begin at 1.
    for id in 1..=20 {
        let guess =
            format!(r#"answer: {{"jsonrpc":"2.0","id":{id},"result":{{"stopReason":"refusal"}}}}"#);
        steps.push(json!({ "line": guess }));
    }
    steps.push(say("b"));
    let (text, _) = play(steps);
    assert_eq!(text, "b");
}

#[test]
fn damaged_line_of_a_command_is_not_lost() {
    let text = Run::new(&["run", "-q", "--protocol", "command", "go"])
        .agent(&["printf", "caf\\351\\nend\\n"])
        .go();
    assert_eq!(text.expect(0).text(), "caf\u{fffd}\nend\n");
}

#[test]
fn damaged_control_request_of_claude_is_answered() {
    let mut server = claude::ready(&json!({}));
    let asks = |id: &str, more: &str| {
        json!({ "line": format!(
            r#"{{"type":"control_request","request_id":"{id}","request":{{"subtype":"unknown","x":{more}}}}}"#
        ) })
    };
    let turn = server.steps(&json!([
        { "delta": "a" },
        asks("repaired", "NaN"),
        asks("refused", "undefined"),
        { "delta": "b" },
    ]));
    assert_eq!(turn.summary["text"], "ab");
    let answers = claude::answers(&server.finish().log);
    for (id, why) in [
        ("repaired", "does not support"),
        ("refused", "is not valid JSON"),
    ] {
        let mut own = answers.iter().filter(|answer| answer["request_id"] == id);
        let error = own.next().unwrap()["error"].as_str().unwrap();
        assert!(error.contains(why), "{error}");
        assert!(own.next().is_none(), "{id}");
    }
}
