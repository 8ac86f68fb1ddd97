//! Tests of replayed histories and the messages built from them.

use super::*;
use acpipe_dialects::acp::Acp;
use acpipe_json::{JsonStr, Members};
use acpipe_model::dialect::{AgentLine, Child, Dialect as _, Outgoing};
use acpipe_model::event::{AgentEvent, Content};
use serde_json::Value;

/// Returns the messages of a history given as ACP updates.
fn replayed(updates: &[&str]) -> Vec<Value> {
    let mut acp = Acp::default();
    let mut replay = Replay::new("acp", "r".into());
    for update in updates {
        let line = format!(
            r#"{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"s","update":{update}}}}}"#
        );
        let mut events = Vec::new();
        acp.read(
            Child::MAIN,
            AgentLine::Whole(line.as_bytes()),
            &mut events,
            &mut Outgoing::default(),
        )
        .unwrap();
        assert!(!events.is_empty(), "{line}");
        for event in &events {
            let AgentEvent::Update {
                update, original, ..
            } = event
            else {
                panic!("{event:?}");
            };
            replay.update(update, *original);
        }
    }
    replay.finish().values().collect()
}

fn piece(kind: &str, id: &str, content: &str) -> String {
    let id = match id {
        "" => String::new(),
        id => format!(r#","messageId":"{id}""#),
    };
    format!(r#"{{"sessionUpdate":"{kind}_chunk","content":{content}{id}}}"#)
}

fn said(kind: &str, id: &str, text: &str) -> String {
    piece(
        kind,
        id,
        &json!({ "type": "text", "text": text }).to_string(),
    )
}

/// Returns the first part of the one user message that a block makes.
fn user_part(block: &Value) -> Value {
    let update = piece("user_message", "", &block.to_string());
    let [message] = &replayed(&[&update])[..] else {
        panic!("one block, one message: {block}");
    };
    assert_eq!(message["role"], "user");
    message["parts"][0].clone()
}

#[test]
fn messages_alternate_and_pieces_of_one_are_joined() {
    let session = r#"{"sessionUpdate":"current_mode_update","currentModeId":"x"}"#;
    let usage = r#"{"sessionUpdate":"usage_update","used":1,"size":2}"#;
    let messages = replayed(&[
        session,
        usage,
        &said("agent_message", "", "Welcome"),
        &said("user_message", "u1", "a"),
        &said("user_message", "u1", "b"),
        session,
        &said("user_message", "u2", "c"),
        usage,
        &said("agent_thought", "m", "hm"),
        &said("agent_thought", "m", "m"),
        usage,
        &said("agent_message", "m", "d"),
    ]);
    let about = |id: &str| json!({ "acp": { "messageId": id } });
    assert_eq!(
        messages,
        [
            json!({ "id": "r-1", "role": "assistant", "metadata": { "acp": { "replayed": true } }, "parts": [
                { "type": "step-start" },
                { "type": "text", "text": "Welcome", "state": "done" } ] }),
            json!({ "id": "r-2", "role": "user", "metadata": about("u1"),
                "parts": [{ "type": "text", "text": "ab" }] }),
            json!({ "id": "r-3", "role": "user", "metadata": about("u2"),
                "parts": [{ "type": "text", "text": "c" }] }),
            json!({ "id": "r-4", "role": "assistant",
                "metadata": { "acp": { "replayed": true, "context": { "used": 1, "size": 2 } } }, "parts": [
                { "type": "step-start" },
                { "type": "reasoning", "id": "r-4.1", "text": "hmm", "state": "done", "providerMetadata": about("m") },
                { "type": "text", "text": "d", "state": "done", "providerMetadata": about("m") } ] }),
        ]
    );
    assert_eq!(replayed(&[session, usage]), [Value::Null; 0]);
}

#[test]
fn unfinished_tool_is_settled_without_a_stop_reason() {
    let tool = r#"{"sessionUpdate":"tool_call","toolCallId":"t","kind":"read","status":"in_progress","rawInput":{"a":1}}"#;
    for rest in [vec![], vec![said("user_message", "", "next")]] {
        let mut updates = vec![tool];
        updates.extend(rest.iter().map(String::as_str));
        let messages = replayed(&updates);
        assert_eq!(messages.len(), updates.len());
        let tool = &messages[0]["parts"][1];
        assert_eq!(tool["state"], "output-available");
        let note = tool["output"]["note"].as_str().unwrap();
        assert!(note.contains("without reporting a result"), "{note}");
        assert_eq!(
            messages[0]["metadata"],
            json!({ "acp": { "replayed": true } })
        );
    }
}

#[test]
fn user_blocks_convert_back_to_their_message_parts() {
    let cases = [
        (
            json!({ "type": "image", "data": "aWNvbg==", "mimeType": "image/png" }),
            json!({ "type": "file", "mediaType": "image/png", "url": "data:image/png;base64,aWNvbg==" }),
        ),
        (
            json!({ "type": "resource", "resource": { "uri": "attachment:///a/ n%", "mimeType": "text/x", "text": "hi" } }),
            json!({ "type": "file", "mediaType": "text/x", "url": "data:text/x;base64,aGk=", "filename": "a/ n%" }),
        ),
        (
            json!({ "type": "resource", "resource": { "uri": "attachment:///file", "mimeType": "application/x", "blob": "/w==" } }),
            json!({ "type": "file", "mediaType": "application/x", "url": "data:application/x;base64,/w==" }),
        ),
        (
            json!({ "type": "resource_link", "uri": "https://x/y", "name": "n", "mimeType": "text/html" }),
            json!({ "type": "file", "mediaType": "text/html", "url": "https://x/y", "filename": "n" }),
        ),
        (
            json!({ "type": "resource_link", "uri": "file:///a", "name": "file" }),
            json!({ "type": "file", "mediaType": "application/octet-stream", "url": "file:///a" }),
        ),
    ];
    for (block, part) in cases {
        assert_eq!(user_part(&block), part, "{block}");
    }
}

#[test]
fn data_without_a_part_field_is_kept_as_metadata() {
    let about = |part: Value| part["providerMetadata"]["acp"].clone();
    let file = user_part(
        &json!({ "type": "resource", "_meta": { "a": 1 }, "resource": { "uri": "file:///p/a.rs", "text": "x", "_meta": 2 } }),
    );
    assert_eq!(file["filename"], "a.rs");
    assert_eq!(file["url"], "data:text/plain;base64,eA==");
    let want =
        json!({ "contentMeta": { "a": 1 }, "resource": { "uri": "file:///p/a.rs", "_meta": 2 } });
    assert_eq!(about(file), want);
    let image = json!({ "type": "image", "data": "", "mimeType": "image/x", "uri": "u", "annotations": [] });
    let want = json!({ "uri": "u", "annotations": [] });
    assert_eq!(about(user_part(&image)), want);
    let link = json!({ "type": "resource_link", "uri": "u", "name": "n", "size": 5 });
    assert_eq!(about(user_part(&link)), json!({ "size": 5 }));
    let odd = json!({ "type": "smell", "strength": 3 });
    assert_eq!(
        user_part(&odd),
        json!({ "type": "data-user-message", "data": { "sessionUpdate": "user_message_chunk", "content": odd } })
    );
}

#[test]
fn texts_with_different_remarks_stay_apart() {
    let noted = json!({ "type": "text", "text": "b", "annotations": { "priority": 1 } });
    let messages = replayed(&[
        &said("user_message", "", "a"),
        &piece("user_message", "", &noted.to_string()),
        &piece("user_message", "", &noted.to_string()),
        &said("user_message", "", "c"),
    ]);
    assert_eq!(
        messages[0]["parts"],
        json!([
            { "type": "text", "text": "a" },
            { "type": "text", "text": "bb", "providerMetadata": { "acp": { "annotations": { "priority": 1 } } } },
            { "type": "text", "text": "c" },
        ])
    );
}

#[test]
fn surrogate_halves_are_joined_or_replaced() {
    let text = |json: &str| format!(r#"{{"type":"text","text":"{json}"}}"#);
    let messages = replayed(&[
        &piece("user_message", "", &text(r"a \ud83d")),
        &piece("user_message", "", &text(r"\ude00 \ud83d")),
        &piece(
            "user_message",
            "",
            r#"{"type":"image","mimeType":"i/x","data":""}"#,
        ),
        &piece("user_message", "", &text(r"b\ud83d")),
    ]);
    assert_eq!(messages[0]["parts"][0]["text"], "a 😀 \u{fffd}");
    assert_eq!(messages[0]["parts"][2]["text"], "b\u{fffd}");
}

#[test]
fn values_beyond_json_limits_are_kept_as_text() {
    let tool = |input: &str| {
        let tool = format!(
            r#"{{"sessionUpdate":"tool_call","toolCallId":"t","status":"in_progress","rawInput":{input}}}"#
        );
        replayed(&[&tool])[0]["parts"][1].clone()
    };
    assert_eq!(tool(r#"{"a":"\ud83d"}"#)["input"]["a"], "\u{fffd}");
    assert_eq!(tool(r#"{"a":1e999}"#)["input"]["a"], "1e999");
}

#[test]
fn replay_shows_steps_and_subagents_like_a_turn() {
    let line = r#"{"content":"hi"}"#;
    let original = Original {
        line,
        cut: |line| serde_json::from_str(line).ok(),
        fields: |line| serde_json::from_str(line).unwrap(),
    };
    let text = serde_json::value::to_raw_value("hi").unwrap();
    let says = |role| {
        Update::Message(MessagePiece {
            role,
            message_id: None,
            content: Content::Text(JsonStr::new(&text).unwrap()),
            subagent: None,
            about: Members::default(),
        })
    };
    let of = |update| Update::FromSubagent {
        id: "t".into(),
        update: Box::new(update),
    };
    let mut replay = Replay::new("claude", "r".into());
    let updates = [
        Update::Step,
        Update::TransientUpdate,
        says(MessageRole::User),
        Update::Step,
        says(MessageRole::Answer),
        of(says(MessageRole::User)),
        of(says(MessageRole::Answer)),
        Update::Step,
        says(MessageRole::Answer),
        Update::TextEnd { provider: None },
        Update::Step,
    ];
    for update in &updates {
        replay.update(update, original);
    }
    let messages: Vec<Value> = replay.finish().values().collect();
    let kinds = |message: &Value| -> Vec<String> {
        let parts = message["parts"].as_array().unwrap().iter();
        parts
            .map(|p| p["type"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(messages.len(), 2, "{messages:?}");
    assert_eq!(kinds(&messages[0]), ["text"]);
    // The last step is begun, but empty.
    let steps = [
        "step-start",
        "text",
        "data-subagent",
        "step-start",
        "text",
        "step-start",
    ];
    assert_eq!(kinds(&messages[1]), steps);
    let nested = kinds(&messages[1]["parts"][2]["data"]["message"]);
    assert_eq!(nested, ["step-start", "data-user-message", "text"]);
}
