//! Short constructors for an agent's updates, for chunks and for cases.

use serde_json::{Value, json};

/// An agent's messages, the chunks that the earlier system made of them, and acpipe's chunks.
pub struct Case {
    /// Rows of the requirements that the case covers.
    pub rows: &'static [&'static str],
    pub what: &'static str,
    pub updates: Vec<Value>,
    /// The agent's response to the prompt.
    pub answer: Value,
    pub seed: Vec<Value>,
    /// If acpipe differs: the reasons, by their names in `tests/seeds/seeds.md`, and acpipe's chunks.
    pub differs: Option<(&'static [&'static str], Vec<Value>)>,
}

/// A case in which acpipe sends the chunks of the earlier system.
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
    /// Sets the agent's response, if it is not `end_turn`.
    pub fn answer(mut self, answer: Value) -> Self {
        self.answer = answer;
        self
    }

    /// Sets acpipe's chunks, which differ for these reasons.
    pub fn but(mut self, reasons: &'static [&'static str], chunks: impl Into<Vec<Value>>) -> Self {
        self.differs = Some((reasons, chunks.into()));
        self
    }
}

/// Adds the members of `more` to `fields`.
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

/// `tool_call_update` of the call `t` with only a status.
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

fn block(role: &str, id: &str, delta: &str) -> [Value; 3] {
    [
        json!({ "type": format!("{role}-start"), "id": id }),
        json!({ "type": format!("{role}-delta"), "id": id, "delta": delta }),
        json!({ "type": format!("{role}-end"), "id": id }),
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

pub fn none() -> Value {
    json!({})
}
