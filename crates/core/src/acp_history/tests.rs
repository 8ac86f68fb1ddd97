//! Tests of stored messages as updates, and of all ACP recordings: stored, converted and read again, they give
//! equal messages.

mod recordings;

use super::*;
use crate::acp_updates::tests::parse;

fn updates(message: &Value) -> Vec<Value> {
    let mut got = Vec::new();
    updates_of(message, &mut |update| got.push(parse(update)));
    got
}

/// Updates of a message with one part.
fn of_part(role: &str, part: &Value) -> Vec<Value> {
    updates(&json!({ "id": "m", "role": role, "parts": [part] }))
}

#[test]
fn parts_of_the_user_become_blocks() {
    let block = json!({ "type": "resource_link", "name": "n", "uri": "file:///n", "annotations": { "priority": 1.0 } });
    let png = "data:image/png;base64,aA==";
    let cases = [
        (
            json!({ "type": "text", "text": "hi" }),
            json!({ "type": "text", "text": "hi" }),
        ),
        (json!({ "type": "data-acp", "data": block }), block.clone()),
        (
            json!({ "type": "file", "url": png, "mediaType": "image/png", "filename": "n" }),
            json!({ "type": "image", "mimeType": "image/png", "data": "aA==" }),
        ),
        (
            json!({ "type": "file", "url": "data:text/x;base64,aGk=", "mediaType": "text/x", "filename": "n" }),
            json!({ "type": "resource", "resource": { "uri": "attachment:///n", "mimeType": "text/x", "text": "hi" } }),
        ),
        (
            json!({ "type": "file", "url": "file:///a", "mediaType": "text/x", "filename": "a" }),
            json!({ "type": "resource_link", "name": "a", "uri": "file:///a", "mimeType": "text/x" }),
        ),
    ];
    for (part, block) in cases {
        let want = json!({ "sessionUpdate": "user_message_chunk", "content": block });
        assert_eq!(of_part("user", &part), [want], "{part}");
    }
}

#[test]
fn metadata_stands_in_the_first_update() {
    let metadata = json!({ "acp": { "messageId": "a", "usage": 1 } });
    let text = json!({ "type": "text", "text": "t" });
    let message =
        |parts| json!({ "id": "m", "role": "user", "metadata": metadata, "parts": parts });
    let got = updates(&message(json!([text, text])));
    assert_eq!(got[0]["_meta"]["acpipe"]["metadata"], metadata);
    assert_eq!(got[0]["messageId"], "a");
    assert_eq!(got[1].get("_meta"), None);
    let got = updates(&message(json!([])));
    assert_eq!(got[0]["sessionUpdate"], "session_info_update");
    assert_eq!(got[0]["_meta"]["acpipe"]["metadata"], metadata);
}

#[test]
fn tool_call_is_sent_in_its_final_state() {
    let bash = json!({
        "type": "dynamic-tool", "toolCallId": "t", "toolName": "Bash", "state": "output-available", "title": "ls",
        "input": { "command": "ls" },
        "output": { "content": [{ "type": "content", "content": { "type": "text", "text": "a" } }], "rawOutput": 1 },
        "toolMetadata": { "claude": { "kind": "execute", "status": "completed", "other": { "x": 1 } } },
    });
    let want = json!({
        "sessionUpdate": "tool_call", "toolCallId": "t", "title": "ls", "name": "Bash", "kind": "execute",
        "status": "completed", "rawInput": { "command": "ls" }, "rawOutput": 1,
        "content": [{ "type": "content", "content": { "type": "text", "text": "```console\na\n```" } }],
        "_meta": { "claudeCode": { "toolName": "Bash", "x": 1 } },
    });
    assert_eq!(of_part("assistant", &bash), [want]);
    let failed = json!({
        "type": "tool-get", "toolCallId": "t", "state": "output-error", "input": { "x": 1 }, "errorText": "bad",
    });
    let want = json!({
        "sessionUpdate": "tool_call", "toolCallId": "t", "title": "get", "name": "get", "kind": "other",
        "status": "failed", "rawInput": { "x": 1 },
        "content": [{ "type": "content", "content": { "type": "text", "text": "bad" } }],
    });
    assert_eq!(of_part("assistant", &failed), [want]);
    let of_endpoint = json!({
        "type": "tool-get", "toolCallId": "t", "state": "output-available", "input": {}, "output": { "y": 2 },
    });
    let got = of_part("assistant", &of_endpoint);
    assert_eq!(got[0]["rawOutput"], json!({ "y": 2 }));
    assert_eq!(got[0]["content"][0]["content"]["text"], "{\"y\":2}");
    let denied = json!({
        "type": "dynamic-tool", "toolCallId": "t", "toolName": "other", "state": "output-denied", "input": {},
        "approval": { "id": "q", "approved": false, "reason": "no" },
        "toolMetadata": { "acp": { "noInput": true, "status": "pending" } },
    });
    let got = of_part("assistant", &denied);
    assert_eq!(
        (&got[0]["status"], &got[0]["rawInput"]),
        (&json!("failed"), &Value::Null)
    );
    assert_eq!(got[0]["content"][0]["content"]["text"], "no");
}

#[test]
fn data_parts_become_their_updates() {
    let plan = json!({ "entries": [{ "content": "a", "priority": "high", "status": "pending" }] });
    let chunk = json!({ "sessionUpdate": "user_message_chunk", "content": { "type": "text", "text": "x" } });
    let steering =
        json!({ "steering": true, "message": { "parts": [{ "type": "text", "text": "x" }] } });
    let inner = json!({
        "type": "dynamic-tool", "toolCallId": "i", "toolName": "get", "state": "output-available", "input": {},
        "toolMetadata": { "claude": {} },
    });
    for (kind, data, want) in [
        ("data-plan", plan, vec!["plan"]),
        ("data-plan", json!({ "removed": true }), vec!["plan"]),
        (
            "data-acp",
            json!({ "update": chunk }),
            vec!["user_message_chunk"],
        ),
        ("data-user-message", steering, vec!["user_message_chunk"]),
        (
            "data-tool-call",
            json!({ "status": "failed" }),
            vec!["tool_call_update"],
        ),
        (
            "data-terminal",
            json!({ "toolCallId": "t", "output": "o" }),
            vec!["tool_call_update"],
        ),
        (
            "data-subagent",
            json!({ "message": { "parts": [inner] } }),
            vec!["session_info_update", "tool_call"],
        ),
        (
            "data-compaction",
            json!({ "compact_metadata": {} }),
            vec!["compaction_update"],
        ),
        (
            "data-recovery",
            json!({ "rung": "new" }),
            vec!["session_info_update"],
        ),
        (
            "data-claude",
            json!({ "update": 1 }),
            vec!["session_info_update"],
        ),
    ] {
        let part = json!({ "type": kind, "id": if kind == "data-plan" { "plan" } else { "i" }, "data": data });
        let got = of_part("assistant", &part);
        let kinds: Vec<&str> = got
            .iter()
            .map(|u| u["sessionUpdate"].as_str().unwrap())
            .collect();
        assert_eq!(kinds, want, "{kind}");
    }
    assert!(of_part("assistant", &json!({ "type": "step-start" })).is_empty());
}
