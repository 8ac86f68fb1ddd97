//! Short words for an agent's updates, for chunks and for cases.

use serde_json::{Value, json};

/// What an agent says, what the earlier system made of it, and what acpipe makes of it.
pub struct Case {
    /// The rows of the requirements that it stands for.
    pub rows: &'static [&'static str],
    pub what: &'static str,
    pub updates: Vec<Value>,
    /// The agent's answer to the prompt.
    pub answer: Value,
    pub seed: Vec<Value>,
    /// Where acpipe differs: why, by the names of `tests/seeds/seeds.md`, and its chunks.
    pub differs: Option<(&'static [&'static str], Vec<Value>)>,
}

/// A case in which acpipe gives the seed's chunks.
pub fn same(
    rows: &'static [&'static str],
    what: &'static str,
    updates: impl Into<Vec<Value>>,
    chunks: impl Into<Vec<Value>>,
) -> Case {
    Case {
        rows,
        what,
        updates: updates.into(),
        answer: json!({ "result": { "stopReason": "end_turn" } }),
        seed: chunks.into(),
        differs: None,
    }
}

impl Case {
    /// The agent's answer, where it is not `end_turn`.
    pub fn answer(mut self, answer: Value) -> Self {
        self.answer = answer;
        self
    }

    /// For these reasons acpipe gives these chunks instead.
    pub fn but(mut self, reasons: &'static [&'static str], chunks: impl Into<Vec<Value>>) -> Self {
        self.differs = Some((reasons, chunks.into()));
        self
    }
}

/// `fields` with the members of `more`.
fn with(mut fields: Value, more: Value) -> Value {
    if let (Value::Object(fields), Value::Object(more)) = (&mut fields, more) {
        fields.extend(more);
    }
    fields
}

pub fn say(text: &str) -> Value {
    json!({
        "sessionUpdate": "agent_message_chunk",
        "content": { "type": "text", "text": text },
    })
}

pub fn think(text: &str) -> Value {
    json!({
        "sessionUpdate": "agent_thought_chunk",
        "content": { "type": "text", "text": text },
    })
}

/// `tool_call` of the call `t`.
pub fn call(fields: Value) -> Value {
    with(
        json!({ "sessionUpdate": "tool_call", "toolCallId": "t" }),
        fields,
    )
}

/// `tool_call_update` of the call `t`.
pub fn change(fields: Value) -> Value {
    with(
        json!({ "sessionUpdate": "tool_call_update", "toolCallId": "t" }),
        fields,
    )
}

/// `tool_call_update` of the call `t` with nothing but a status.
pub fn status(status: &str) -> Value {
    change(json!({ "status": status }))
}

/// The three chunks of a text block with one delta.
pub fn text(id: &str, delta: &str) -> [Value; 3] {
    block("text", id, delta)
}

/// The three chunks of a reasoning block with one delta.
pub fn reasoning(id: &str, delta: &str) -> [Value; 3] {
    block("reasoning", id, delta)
}

fn block(voice: &str, id: &str, delta: &str) -> [Value; 3] {
    [
        json!({ "type": format!("{voice}-start"), "id": id }),
        json!({ "type": format!("{voice}-delta"), "id": id, "delta": delta }),
        json!({ "type": format!("{voice}-end"), "id": id }),
    ]
}

/// `tool-input-start` of the call `t`.
pub fn begun(fields: Value) -> Value {
    of_tool("tool-input-start", fields)
}

/// `tool-input-available` of the call `t`.
pub fn input(fields: Value) -> Value {
    of_tool("tool-input-available", fields)
}

/// `tool-output-available` of the call `t`.
pub fn output(fields: Value) -> Value {
    let fields = with(json!({ "preliminary": null }), fields);
    of_tool("tool-output-available", fields)
}

/// `tool-output-error` of the call `t`.
pub fn failed(text: &str) -> Value {
    of_tool("tool-output-error", json!({ "errorText": text }))
}

fn of_tool(kind: &str, fields: Value) -> Value {
    with(
        json!({ "type": kind, "toolCallId": "t", "dynamic": true }),
        fields,
    )
}

/// No fields.
pub fn none() -> Value {
    json!({})
}
