//! Tests of single updates, and of all recordings of the Claude Code CLI.

pub(crate) mod recordings;
mod twins;

use super::*;
use acpipe_model::event::{ToolStatus, ToolUpdate};
use agent_client_protocol_schema::v1::SessionUpdate;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// Parses an update, and checks that its type in the schema has every member with the same value.
pub fn parse(update: &[u8]) -> Value {
    let value: Value = serde_json::from_slice(update).unwrap();
    let typed: SessionUpdate =
        serde_json::from_value(value.clone()).unwrap_or_else(|error| panic!("{error}: {value}"));
    let typed = serde_json::to_value(typed).unwrap();
    assert!(holds(&typed, &value), "{value}\nbecame {typed}");
    value
}

/// Whether `typed` has all members of `raw`, apart from those with the default of their field.
fn holds(typed: &Value, raw: &Value) -> bool {
    match (typed, raw) {
        (Value::Object(typed), Value::Object(raw)) => raw.iter().all(|(name, raw)| {
            let is_default = raw.is_null()
                || *raw == json!([])
                || (name == "kind" && raw == "other")
                || (name == "status" && raw == "pending");
            match typed.get(name) {
                Some(typed) => holds(typed, raw),
                None => is_default,
            }
        }),
        (Value::Array(typed), Value::Array(raw)) => {
            typed.len() == raw.len() && typed.iter().zip(raw).all(|(typed, raw)| holds(typed, raw))
        }
        _ => typed == raw,
    }
}

fn raw(json: &str) -> &RawValue {
    serde_json::from_str(json).unwrap()
}

fn original(line: &str) -> Original<'_> {
    Original {
        line,
        cut: |line| serde_json::from_str(line).ok(),
        fields: |line| serde_json::from_str(line).unwrap_or_default(),
    }
}

fn convert(updates: &mut AcpUpdates, update: &Update<'_>) -> Vec<Value> {
    convert_line(updates, update, "{}")
}

fn convert_line(updates: &mut AcpUpdates, update: &Update<'_>, line: &str) -> Vec<Value> {
    let mut got = Vec::new();
    updates.update(update, original(line), &mut |update| {
        got.push(parse(update));
    });
    got
}

fn finish(updates: &mut AcpUpdates) -> Vec<Value> {
    let mut got = Vec::new();
    updates.finish(&mut |update| got.push(parse(update)));
    got
}

fn text(json: &str, role: MessageRole) -> Update<'_> {
    Update::Message(MessagePiece {
        role,
        message_id: Some("m\"1".into()),
        content: Content::Text(JsonStr::new(raw(json)).unwrap()),
        subagent: None,
        about: Members::default(),
    })
}

fn tool(id: &str, status: Option<ToolStatus>) -> ToolUpdate<'_> {
    ToolUpdate {
        id: id.into(),
        status: status.map(|status| status.as_str().into()),
        ..ToolUpdate::default()
    }
}

fn of_tool(tool: ToolUpdate<'_>) -> Update<'_> {
    Update::Tool(Box::new(tool))
}

fn session(json: &str) -> Update<'_> {
    Update::Session(Members::of(raw(json)))
}

#[test]
fn text_keeps_its_escapes_and_message_id() {
    let mut updates = AcpUpdates::new("command");
    let mut line = Vec::new();
    let update = text(r#""a\u00e9\n😀""#, MessageRole::Thought);
    updates.update(&update, original("{}"), &mut |update| {
        line.extend_from_slice(update);
    });
    let want = r#"{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"a\u00e9\n😀"},"messageId":"m\"1"}"#;
    assert_eq!(String::from_utf8(line).unwrap(), want);
}

#[test]
fn characters_split_between_pieces_are_joined() {
    let mut updates = AcpUpdates::new("command");
    let said = |got: &[Value]| -> String {
        let texts = got.iter().map(|update| update["content"]["text"].as_str());
        texts.map(Option::unwrap).collect()
    };
    let answer =
        |updates: &mut AcpUpdates, json| said(&convert(updates, &text(json, MessageRole::Answer)));
    assert_eq!(answer(&mut updates, r#""a\ud83d""#), "a");
    assert_eq!(answer(&mut updates, r#""\ude00b\ud83d""#), "😀b");
    // Another kind of update follows the half of a character.
    let got = convert(&mut updates, &of_tool(tool("t", None)));
    assert_eq!(got[0]["content"]["text"], "\u{fffd}");
    assert_eq!(got[0]["messageId"], "m\"1");
    assert_eq!(got[1]["sessionUpdate"], "tool_call");
}

#[test]
fn first_update_of_a_call_begins_it() {
    let mut updates = AcpUpdates::new("openai");
    let first = ToolUpdate {
        name: Some("get".into()),
        kind: Some("odd".into()),
        input_delta: JsonStr::new(raw(r#""{""#)),
        ..tool("t", None)
    };
    assert_eq!(
        convert(&mut updates, &of_tool(first)),
        [json!({
            "sessionUpdate": "tool_call", "toolCallId": "t", "title": "get", "name": "get", "kind": "other",
            "status": "pending", "_meta": { "acpipe": { "kind": "odd" } },
        })]
    );
    // The complete input follows.
    let delta = ToolUpdate {
        input_delta: JsonStr::new(raw(r#""}""#)),
        ..tool("t", None)
    };
    assert!(convert(&mut updates, &of_tool(delta)).is_empty());
    let end = ToolUpdate {
        output: Some(raw("7")),
        input: Some(std::borrow::Cow::Borrowed(raw(r#"{"x":1}"#))),
        ..tool("t", Some(ToolStatus::Completed))
    };
    assert_eq!(
        convert(&mut updates, &of_tool(end)),
        [json!({
            "sessionUpdate": "tool_call_update", "toolCallId": "t", "status": "completed", "rawInput": { "x": 1 },
            "rawOutput": 7,
        })]
    );
    assert!(finish(&mut updates).is_empty());
}

#[test]
fn open_calls_fail_when_a_turn_does_not_complete() {
    let mut updates = AcpUpdates::new("acp");
    let reports = [
        ("a", Some(ToolStatus::InProgress)),
        ("b", Some(ToolStatus::Completed)),
        ("c", None),
        ("d", None),
        // An ended call does not start again.
        ("b", Some(ToolStatus::InProgress)),
    ];
    for (id, status) in reports {
        updates.note(&of_tool(tool(id, status)));
    }
    updates.note(&Update::Refused {
        tool: "d".into(),
        reason: "no".into(),
    });
    let failed = |id: &str| json!({ "sessionUpdate": "tool_call_update", "toolCallId": id, "status": "failed" });
    assert_eq!(finish(&mut updates), [failed("a"), failed("c")]);
    assert!(finish(&mut updates).is_empty());
    // Calls of a completed turn stay as they are.
    updates.note(&of_tool(tool("e", None)));
    updates.completed(&mut |_| panic!("nothing to send"));
    assert!(finish(&mut updates).is_empty());
}

#[test]
fn call_of_the_previous_turn_changes_without_beginning_again() {
    let mut updates = AcpUpdates::new("claude");
    convert(&mut updates, &of_tool(tool("t", None)));
    updates.completed(&mut |_| {});
    let late = of_tool(tool("t", Some(ToolStatus::Completed)));
    let got = convert(&mut updates, &late);
    assert_eq!(got[0]["sessionUpdate"], "tool_call_update");
    updates.completed(&mut |_| {});
    let again = ToolUpdate {
        begins: true,
        ..tool("t", None)
    };
    let got = convert(&mut updates, &of_tool(again));
    assert_eq!(got[0]["sessionUpdate"], "tool_call");
}

#[test]
fn subagent_text_stays_out_of_the_answer() {
    let mut updates = AcpUpdates::new("claude");
    convert(&mut updates, &of_tool(tool("agent", None)));
    let from = |update| Update::FromSubagent {
        id: "agent".into(),
        update: Box::new(update),
    };
    let got = convert(&mut updates, &from(text(r#""hi""#, MessageRole::Answer)));
    let chunk = json!({
        "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": "hi" }, "messageId": "m\"1",
    });
    let want = json!({
        "sessionUpdate": "tool_call_update", "toolCallId": "agent",
        "_meta": { "claudeCode": { "subagentUpdate": chunk } },
    });
    assert_eq!(got, [want]);
    let named = ToolUpdate {
        name: Some("Bash".into()),
        ..tool("inner", None)
    };
    let got = convert(&mut updates, &from(of_tool(named)));
    assert_eq!(
        got[0]["_meta"]["claudeCode"],
        json!({ "toolName": "Bash", "parentToolUseId": "agent" })
    );
}

#[test]
fn results_of_claude_are_shown_as_code() {
    let content =
        |text: &str| json!([{ "type": "content", "content": { "type": "text", "text": text } }]);
    let cases = [
        (Some("Bash"), false, "a\n", "```console\na\n```"),
        (Some("Read"), false, "```\nx", "````\n```\nx\n````"),
        (Some("Task"), true, "no", "```\nno\n```"),
        (None, false, "plain", "plain"),
        (Some("Bash"), false, "", ""),
    ];
    for (name, failed, said, want) in cases {
        let given = to_raw(&content(said));
        let got = content::presented(name, failed, &given);
        let got = got.unwrap_or(given);
        assert_eq!(serde_json::to_value(&got).unwrap(), content(want), "{said}");
    }
    // A block that ACP does not define would be dropped by a strict client.
    let odd = r#"[{"type":"content","content":{"type":"tool_reference","tool_name":"x"}}]"#;
    let got = content::presented(None, false, raw(odd)).unwrap();
    assert!(
        got.get()
            .contains(r#""text":"{\"type\":\"tool_reference\""#),
        "{got}"
    );
}

#[test]
fn repeated_session_state_is_sent_once() {
    let mut updates = AcpUpdates::new("claude");
    let first = r#"{"modes":{"currentModeId":"plan","availableModes":[{"id":"plan","name":"Plan"}]},
        "availableCommands":[{"name":"a","description":"b"}],"title":"T","claude":{"tools":["Bash"]}}"#;
    let kinds = |got: &[Value]| -> Vec<String> {
        let kinds = got.iter().map(|update| update["sessionUpdate"].as_str());
        kinds.map(|kind| kind.unwrap().to_owned()).collect()
    };
    let got = convert(&mut updates, &session(first));
    let want = [
        "current_mode_update",
        "available_commands_update",
        "session_info_update",
    ];
    assert_eq!(kinds(&got), want);
    assert_eq!(got[2]["title"], "T");
    let meta = &got[2]["_meta"]["claudeCode"];
    assert_eq!(meta["claude"]["tools"][0], "Bash");
    let init = r#"{"currentModeId":"plan","claude":{"tools":["Bash"]}}"#;
    let got = convert(&mut updates, &session(init));
    assert_eq!(kinds(&got), ["session_info_update"], "the modes are gone");
    assert!(convert(&mut updates, &session(init)).is_empty());
    let got = convert(&mut updates, &session(r#"{"currentModeId":"auto"}"#));
    assert_eq!(got[0]["currentModeId"], "auto");
    let options = r#"{"configOptions":[]}"#;
    let got = convert(&mut updates, &session(options));
    assert_eq!(kinds(&got), ["config_option_update"]);
}

#[test]
fn plans_have_the_entries_of_acp() {
    let mut updates = AcpUpdates::new("claude");
    let plan = |json| Update::Plan {
        id: "plan".into(),
        data: Members::of(raw(json)),
    };
    let entries = r#"{"entries":[{"content":"a","priority":"low","status":"completed","activeForm":"b"},{"content":"c","status":"odd"}]}"#;
    assert_eq!(
        convert(&mut updates, &plan(entries)),
        [json!({ "sessionUpdate": "plan", "entries": [
            { "content": "a", "priority": "low", "status": "completed", "_meta": { "claudeCode": { "activeForm": "b" } } },
            { "content": "c", "priority": "medium", "status": "pending", "_meta": { "claudeCode": { "status": "odd" } } },
        ] })]
    );
    let removed = convert(&mut updates, &plan(r#"{"removed":true}"#));
    assert_eq!(removed, [json!({ "sessionUpdate": "plan", "entries": [] })]);
}

#[test]
fn usage_notices_and_compactions_have_the_fields_of_acp() {
    let mut updates = AcpUpdates::new("claude");
    let context = |json, cost| Update::Context {
        cost,
        figures: Some(Members::of(raw(json))),
    };
    let got = convert(&mut updates, &context(r#"{"used":1,"size":2}"#, Some(0.5)));
    let cost = json!({ "amount": 0.5, "currency": "USD" });
    let want = json!({ "sessionUpdate": "usage_update", "used": 1, "size": 2, "cost": cost });
    assert_eq!(got, [want]);
    let got = convert(&mut updates, &context("{}", Some(0.5)));
    assert_eq!(got[0]["sessionUpdate"], "session_info_update");
    let notices = [
        (r#"{"content":"c","level":"warning"}"#, "c", "warning"),
        (
            r#"{"title":"t","severity":"error","description":"d"}"#,
            "t",
            "error",
        ),
        (r#"{"content":"c","level":"notice"}"#, "c", "info"),
    ];
    for (line, title, severity) in notices {
        let got = convert_line(&mut updates, &Update::Notice, line);
        assert_eq!(
            (&got[0]["title"], &got[0]["severity"]),
            (&json!(title), &json!(severity))
        );
    }
    let got = convert_line(&mut updates, &Update::Notice, r#"{"odd":1}"#);
    assert_eq!(got[0]["_meta"]["claudeCode"]["notice"], json!({ "odd": 1 }));
    let compactions = [
        (r#"{"status":"compacting"}"#, "in_progress"),
        (r#"{"status":null,"compact_result":"success"}"#, "completed"),
        (
            r#"{"compact_result":"failed","compact_error":"e"}"#,
            "failed",
        ),
        (r#"{"compact_metadata":{"trigger":"manual"}}"#, "completed"),
    ];
    for (line, status) in compactions {
        let update = Update::Compaction { id: "c".into() };
        let got = convert_line(&mut updates, &update, line);
        assert_eq!(got[0]["status"], status, "{line}");
        assert_eq!(got[0]["error"] == "e", status == "failed");
    }
}

#[test]
fn data_without_an_update_is_kept() {
    let mut updates = AcpUpdates::new("openai");
    let structured = Update::StructuredOutput(raw(r#"{"a":1}"#));
    let metadata = Update::MessageMetadata(raw("2"));
    for (update, name, value) in [
        (structured, "structuredOutput", json!({ "a": 1 })),
        (metadata, "messageMetadata", json!(2)),
        (Update::Other, "update", json!({ "odd": true })),
    ] {
        let got = convert_line(&mut updates, &update, r#"{"odd":true}"#);
        let want = json!({ "sessionUpdate": "session_info_update", "_meta": { "acpipe": { name: value } } });
        assert_eq!(got, [want]);
    }
}

#[test]
fn chunks_of_the_ai_sdk_become_updates() {
    let mut updates = AcpUpdates::new("ui-stream");
    let mut got = Vec::new();
    for line in [
        r#"{"type":"text-start","id":"1"}"#,
        r#"{"type":"text-delta","id":"1","delta":"hi"}"#,
        r#"{"type":"reasoning-delta","id":"2","delta":"hm"}"#,
        r#"{"type":"tool-input-start","toolCallId":"t","toolName":"get"}"#,
        r#"{"type":"tool-input-delta","toolCallId":"t","inputTextDelta":"{"}"#,
        r#"{"type":"tool-input-available","toolCallId":"t","toolName":"get","input":{"x":1}}"#,
        r#"{"type":"tool-output-available","toolCallId":"t","output":"half","preliminary":true}"#,
        r#"{"type":"tool-output-available","toolCallId":"t","output":{"y":2}}"#,
        r#"{"type":"tool-output-error","toolCallId":"u","errorText":"bad"}"#,
        r#"{"type":"file","url":"data:image/png;base64,aA==","mediaType":"image/png"}"#,
        r#"{"type":"source-url","sourceId":"s","url":"https://x","title":"X"}"#,
        r#"{"type":"data-plan","data":{"entries":[]}}"#,
        r#"{"type":"data-odd","data":1}"#,
        r#"{"type":"data-odd","data":1,"transient":true}"#,
    ] {
        let chunk = Box::new(serde_json::from_str(line).unwrap());
        let json = raw(line);
        got.extend(convert_line(
            &mut updates,
            &Update::Chunk { json, chunk },
            line,
        ));
    }
    let short: Vec<Value> = got
        .iter()
        .map(|update| {
            let kind = update["sessionUpdate"].as_str().unwrap();
            let block = &update["content"];
            json!([
                kind,
                update["status"],
                block["text"],
                block[0]["content"]["text"],
                update["rawInput"]
            ])
        })
        .collect();
    let want = [
        json!(["agent_message_chunk", null, "hi", null, null]),
        json!(["agent_thought_chunk", null, "hm", null, null]),
        json!(["tool_call", "pending", null, null, null]),
        json!(["tool_call_update", null, null, null, { "x": 1 }]),
        json!(["tool_call_update", "in_progress", null, "half", null]),
        json!(["tool_call_update", "completed", null, "{\"y\":2}", null]),
        json!(["tool_call", "failed", null, "bad", null]),
        json!(["agent_message_chunk", null, null, null, null]),
        json!(["agent_message_chunk", null, null, null, null]),
        json!(["plan", null, null, null, null]),
        json!(["session_info_update", null, null, null, null]),
    ];
    assert_eq!(short, want);
    assert_eq!(
        got[7]["content"],
        json!({ "type": "image", "mimeType": "image/png", "data": "aA==" })
    );
    assert_eq!(
        got[8]["content"],
        json!({ "type": "resource_link", "name": "X", "uri": "https://x" })
    );
    assert!(finish(&mut updates).is_empty());
}
