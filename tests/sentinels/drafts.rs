//! Hand-written schemas: the draft kinds, whose types the schema crate has only with its `unstable` features,
//! and the `_meta` that agents send about their own terminals.

use serde_json::{Value, json};

/// Returns `SessionNotification` with the draft kinds; it refers to the definitions of the stable schema.
pub fn updates(stable: &Value) -> Value {
    let text = json!({ "type": "string" });
    let texts = json!({ "type": "array", "items": text });
    let blocks = json!({ "type": "array", "items": { "$ref": "#/$defs/ContentBlock" } });
    let entries = json!({ "type": "array", "items": { "$ref": "#/$defs/PlanEntry" } });
    let variant = |kind: &str, required: &str, mut fields: Value| {
        fields["sessionUpdate"] = json!({ "type": "string", "const": kind });
        fields["_meta"] = json!({});
        json!({ "type": "object", "properties": fields, "required": [required] })
    };
    let shape = |tag: &str, kind: &str, mut fields: Value| {
        fields[tag] = json!({ "type": "string", "const": kind });
        fields["_meta"] = json!({});
        json!({ "type": "object", "properties": fields, "required": [] })
    };
    let plan = json!({ "oneOf": [
        shape("type", "items", json!({ "planId": text, "entries": entries })),
        shape("type", "file", json!({ "planId": text, "uri": text })),
        shape("type", "markdown", json!({ "planId": text, "content": text })),
    ] });
    let error = json!({ "type": "object", "properties": {
        "code": { "type": "integer" }, "message": text, "data": {},
    } });
    let state = json!({ "oneOf": [
        shape("state", "running", json!({})),
        shape("state", "idle", json!({ "stopReason": text, "error": error, "usage": usage() })),
        shape("state", "requires_action", json!({})),
        shape("state", "unknown", json!({})),
    ] });
    let empty = json!({ "type": "object", "properties": { "_meta": {} } });
    let capabilities = json!({ "type": "object", "properties": { "cancel": empty, "_meta": {} } });
    let mut schema = stable.clone();
    schema["properties"]["update"] = json!({ "oneOf": [
        variant("plan_update", "plan", json!({ "plan": plan })),
        variant("plan_removed", "planId", json!({ "planId": text })),
        variant("subagent_update", "sessionId", json!({
            "sessionId": text, "title": text, "description": text, "capabilities": capabilities,
            "state": state, "cwd": text, "additionalDirectories": texts,
        })),
        variant("session_message", "messageId", json!({
            "messageId": text, "senderSessionId": text, "recipientSessionId": text,
            "senderMessageId": text, "recipientMessageId": text, "content": blocks,
        })),
        variant("session_message_chunk", "messageId", json!({
            "messageId": text, "content": { "$ref": "#/$defs/ContentBlock" },
        })),
    ] });
    schema
}

/// Returns `SessionNotification` with tools that show a terminal, one variant for each part.
pub fn terminals(stable: &Value) -> Value {
    let text = json!({ "type": "string" });
    let part = |name: &str, mut fields: Value| {
        fields["terminal_id"] = text.clone();
        let part = json!({ "type": "object", "properties": fields });
        json!({ "type": "object", "properties": { name: part }, "required": [name] })
    };
    let meta = json!({ "oneOf": [
        part("terminal_info", json!({ "cwd": text })),
        part("terminal_output", json!({ "data": text })),
        part("terminal_exit", json!({ "exit_code": { "type": "integer" }, "signal": text })),
    ] });
    let mut schema = stable.clone();
    schema["properties"]["update"] = json!({ "oneOf": [{ "type": "object", "properties": {
        "sessionUpdate": { "type": "string", "const": "tool_call_update" },
        "toolCallId": text, "_meta": meta,
    } }] });
    schema
}

/// Returns `PromptResponse` with `usage`.
pub fn answer(stable: &Value) -> Value {
    let mut schema = stable.clone();
    schema["properties"]["usage"] = usage();
    schema
}

fn usage() -> Value {
    let count = json!({ "type": "integer" });
    json!({ "type": "object", "properties": {
        "totalTokens": count, "inputTokens": count, "outputTokens": count, "thoughtTokens": count,
        "cachedReadTokens": count, "cachedWriteTokens": count, "_meta": {},
    } })
}
