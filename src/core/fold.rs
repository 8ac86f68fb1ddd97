//! Folds the chunks of a stream into the `UIMessage` that they build.
//!
//! The fold follows the AI SDK's own reader (`readUIMessageStream` of `ai` 7) part by part, so that a stored
//! message equals the one that a client built from the stream. It takes chunks as JSON, in any profile.

use super::chunk_sink::ChunkSink;
use crate::proto::chunk::Chunk;
use crate::proto::json::{merge, partial, to_raw, value};
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::collections::HashMap;

/// An assistant message under construction.
#[derive(Debug, Clone, Default)]
pub struct Fold {
    id: String,
    metadata: Option<Value>,
    parts: Vec<Map<String, Value>>,
    /// Indices of open text and reasoning blocks, by part type and block id.
    open: HashMap<(&'static str, String), usize>,
    /// Indices of tool calls, approvals and named data parts, by kind and id.
    places: HashMap<(String, String), usize>,
    /// Index of the first part of the open step.
    step: usize,
}

/// Chunk sink that folds chunks as they are created.
#[derive(Debug, Default)]
pub struct FoldSink {
    fold: Fold,
    buffer: Vec<u8>,
    size: usize,
}

impl FoldSink {
    /// Returns the message so far.
    #[must_use]
    pub fn message(&self) -> Value {
        self.fold.message()
    }

    /// Size of all chunks taken, in bytes of JSON.
    #[must_use]
    pub fn size(&self) -> usize {
        self.size
    }
}

impl ChunkSink for FoldSink {
    fn chunk(&mut self, chunk: &Chunk<'_>) {
        self.buffer.clear();
        chunk.write(&mut self.buffer);
        self.size += self.buffer.len();
        if let Ok(chunk) = serde_json::from_slice(&self.buffer) {
            self.fold.push(&chunk);
            return;
        }
        self.fold.push(&value(&to_raw(chunk)));
    }
}

impl Fold {
    /// Returns the message so far.
    #[must_use]
    pub fn message(&self) -> Value {
        let parts: Vec<_> = self.parts.iter().map(with_partial_input).collect();
        let mut message = json!({ "id": self.id, "role": "assistant", "parts": parts });
        if let Some(metadata) = &self.metadata {
            message["metadata"] = metadata.clone();
        }
        message
    }

    /// Applies the next chunk. A chunk for a part that does not exist changes nothing.
    pub fn push(&mut self, chunk: &Value) {
        let kind = chunk["type"].as_str().unwrap_or_default();
        match kind {
            "start" => {
                if let Some(id) = chunk["messageId"].as_str() {
                    id.clone_into(&mut self.id);
                }
                self.merge_metadata(&chunk["messageMetadata"]);
            }
            "finish" | "message-metadata" => self.merge_metadata(&chunk["messageMetadata"]),
            "start-step" => {
                self.parts.push(object(json!({ "type": "step-start" })));
                self.step = self.parts.len();
            }
            "text-start" => self.begin("text", chunk, &[]),
            "reasoning-start" => self.begin("reasoning", chunk, &["id"]),
            "text-delta" => self.append("text", chunk),
            "reasoning-delta" => self.append("reasoning", chunk),
            "text-end" => self.end("text", chunk),
            "reasoning-end" => self.end("reasoning", chunk),
            "file" | "reasoning-file" | "source-url" | "source-document" | "custom"
            | "steering-message" => self.parts.push(object(chunk.clone())),
            "reset-step" => self.reset_step(),
            "tool-input-start" => self.input(chunk, "input-streaming"),
            "tool-input-available" => self.input(chunk, "input-available"),
            "tool-input-delta" => self.input_delta(chunk),
            "tool-input-error" => self.input(chunk, "output-error"),
            "tool-output-available" => self.output(chunk, "output-available"),
            "tool-output-error" => self.output(chunk, "output-error"),
            "tool-output-denied" => {
                if let Some(part) = self.tool(chunk) {
                    part.insert("state".into(), "output-denied".into());
                }
            }
            "tool-approval-request" => self.approval_request(chunk),
            "tool-approval-response" => self.approval_response(chunk),
            _ if kind.starts_with("data-") => self.data(chunk),
            // Step ends and stream ends leave no trace in a message.
            _ => {}
        }
    }

    /// Removes the parts of the open step.
    fn reset_step(&mut self) {
        self.parts.truncate(self.step);
        self.open.clear();
        self.places.retain(|_, at| *at < self.step);
    }

    fn merge_metadata(&mut self, more: &Value) {
        if more.is_null() {
            return;
        }
        match &mut self.metadata {
            Some(metadata) => {
                merge(metadata, more.clone());
            }
            None => self.metadata = Some(more.clone()),
        }
    }

    fn begin(&mut self, part: &'static str, chunk: &Value, kept: &[&str]) {
        let mut new = object(json!({ "type": part, "text": "", "state": "streaming" }));
        copy(chunk, &mut new, kept);
        copy(chunk, &mut new, &["providerMetadata"]);
        let id = chunk["id"].as_str().unwrap_or_default().to_owned();
        self.open.insert((part, id), self.parts.len());
        self.parts.push(new);
    }

    fn block(&mut self, part: &'static str, chunk: &Value) -> Option<&mut Map<String, Value>> {
        let id = chunk["id"].as_str().unwrap_or_default().to_owned();
        let at = *self.open.get(&(part, id))?;
        let block = self.parts.get_mut(at)?;
        copy(chunk, block, &["providerMetadata"]);
        Some(block)
    }

    fn append(&mut self, part: &'static str, chunk: &Value) {
        let delta = chunk["delta"].as_str().unwrap_or_default();
        if let Some(Value::String(text)) = self.block(part, chunk).and_then(|b| b.get_mut("text")) {
            text.push_str(delta);
        }
    }

    fn end(&mut self, part: &'static str, chunk: &Value) {
        if let Some(block) = self.block(part, chunk) {
            block.insert("state".into(), "done".into());
            copy(chunk, block, &["citations"]);
        }
        let id = chunk["id"].as_str().unwrap_or_default().to_owned();
        self.open.remove(&(part, id));
    }

    fn tool(&mut self, chunk: &Value) -> Option<&mut Map<String, Value>> {
        let id = chunk["toolCallId"].as_str()?;
        self.at("tool", id)
    }

    /// The AI SDK's reader looks for the call only in the open step.
    fn input(&mut self, chunk: &Value, state: &str) {
        let known = chunk["toolCallId"].as_str().and_then(|id| {
            let at = self.places.get(&("tool".to_owned(), id.to_owned()));
            at.filter(|at| **at >= self.step)
        });
        if known.is_none() {
            // Tools of acpipe's agents are dynamic; an endpoint that streams chunks itself may know its tools.
            let mut part = if chunk["dynamic"] == true {
                object(json!({ "type": "dynamic-tool" }))
            } else {
                let name = chunk["toolName"].as_str().unwrap_or_default();
                object(json!({ "type": format!("tool-{name}") }))
            };
            copy(chunk, &mut part, &["toolCallId"]);
            self.place("tool", chunk["toolCallId"].as_str());
            self.parts.push(part);
        }
        if let Some(part) = self.tool(chunk) {
            for gone in [
                "input",
                "rawInput",
                "inputEncoding",
                "output",
                "errorText",
                "preliminary",
            ] {
                part.remove(gone);
            }
            part.insert("state".into(), state.into());
            if part.get("type").is_some_and(|kind| kind == "dynamic-tool") {
                copy(chunk, part, &["toolName"]);
            }
            let fields = [
                "input",
                "inputEncoding",
                "errorText",
                "title",
                "toolMetadata",
                "providerExecuted",
            ];
            copy(chunk, part, &fields);
            provider_metadata(chunk, part, state);
        }
    }

    fn input_delta(&mut self, chunk: &Value) {
        let delta = chunk["inputTextDelta"].as_str().unwrap_or_default();
        if let Some(part) = self.tool(chunk)
            && let Value::String(text) = part.entry("rawInput").or_insert_with(|| "".into())
        {
            text.push_str(delta);
        }
    }

    fn output(&mut self, chunk: &Value, state: &str) {
        if let Some(part) = self.tool(chunk) {
            for gone in ["rawInput", "output", "errorText", "preliminary"] {
                part.remove(gone);
            }
            part.insert("state".into(), state.into());
            let fields = [
                "output",
                "errorText",
                "preliminary",
                "toolMetadata",
                "providerExecuted",
            ];
            copy(chunk, part, &fields);
            provider_metadata(chunk, part, state);
        }
    }

    fn approval_request(&mut self, chunk: &Value) {
        if let Some(part) = self.tool(chunk) {
            let mut approval = object(json!({ "id": chunk["approvalId"] }));
            if let Some(descriptor) = chunk.get("approvalDescriptor") {
                approval.insert("descriptor".into(), descriptor.clone());
            }
            if let Some(reason) = chunk.get("reason") {
                approval.insert("requestReason".into(), reason.clone());
            }
            copy(chunk, &mut approval, &["inputSchemaInput", "signature"]);
            if chunk["isAutomatic"] == true {
                approval.insert("isAutomatic".into(), true.into());
            }
            part.insert("state".into(), "approval-requested".into());
            part.insert("approval".into(), Value::Object(approval));
            let call = chunk["toolCallId"].as_str().unwrap_or_default();
            let at = self
                .places
                .get(&("tool".to_owned(), call.to_owned()))
                .copied();
            let id = chunk["approvalId"].as_str().unwrap_or_default();
            if let Some(at) = at {
                self.places
                    .insert(("approval".to_owned(), id.to_owned()), at);
            }
        }
    }

    fn approval_response(&mut self, chunk: &Value) {
        let id = chunk["approvalId"].as_str().unwrap_or_default();
        if let Some(part) = self.at("approval", id) {
            part.insert("state".into(), "approval-responded".into());
            if let Some(Value::Object(approval)) = part.get_mut("approval") {
                copy(chunk, approval, &["approved", "reason"]);
            }
            copy(chunk, part, &["providerExecuted"]);
            provider_metadata(chunk, part, "approval-responded");
        }
    }

    fn data(&mut self, chunk: &Value) {
        if chunk["transient"] == true {
            return;
        }
        let kind = chunk["type"].as_str().unwrap_or_default();
        let id = chunk["id"].as_str();
        if let Some(part) = id.and_then(|id| self.at(kind, id)) {
            part.insert("data".into(), chunk["data"].clone());
            return;
        }
        self.place(kind, id);
        self.parts.push(object(chunk.clone()));
    }

    /// Returns the part that was registered under this kind and id.
    fn at(&mut self, kind: &str, id: &str) -> Option<&mut Map<String, Value>> {
        let at = *self.places.get(&(kind.to_owned(), id.to_owned()))?;
        self.parts.get_mut(at)
    }

    /// Registers the next part under this kind and id.
    fn place(&mut self, kind: &str, id: Option<&str>) {
        if let Some(id) = id {
            let next = self.parts.len();
            self.places.insert((kind.to_owned(), id.to_owned()), next);
        }
    }
}

/// Returns a part. For a tool call whose input is still streaming, `input` is the readable prefix of it.
fn with_partial_input(part: &Map<String, Value>) -> Cow<'_, Map<String, Value>> {
    let input = part.get("rawInput").and_then(Value::as_str);
    let Some(input) = input.and_then(partial) else {
        return Cow::Borrowed(part);
    };
    let mut part = part.clone();
    part.insert("input".into(), input);
    Cow::Owned(part)
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(object) => object,
        _ => Map::new(),
    }
}

fn copy(from: &Value, to: &mut Map<String, Value>, names: &[&str]) {
    for name in names {
        if let Some(value) = from.get(name) {
            to.insert((*name).to_owned(), value.clone());
        }
    }
}

/// Copies the metadata of a provider to a tool call: that of a result stands beside that of the call.
fn provider_metadata(chunk: &Value, part: &mut Map<String, Value>, state: &str) {
    let name = match state {
        "output-available" | "output-error" => "resultProviderMetadata",
        _ => "callProviderMetadata",
    };
    if let Some(metadata) = chunk.get("providerMetadata") {
        part.insert(name.into(), metadata.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fold(chunks: &[Value]) -> Value {
        let mut fold = Fold::default();
        for chunk in chunks {
            fold.push(chunk);
        }
        fold.message()
    }

    #[test]
    fn blocks_tools_and_metadata_become_one_message() {
        let message = fold(&[
            json!({"type": "start", "messageId": "m", "messageMetadata": {"acp": {"a": 1, "l": [1]}}}),
            json!({"type": "start-step"}),
            json!({"type": "text-start", "id": "m.1"}),
            json!({"type": "text-delta", "id": "m.1", "delta": "Hel"}),
            json!({"type": "text-delta", "id": "m.1", "delta": "lo", "providerMetadata": {"acp": {"x": 1}}}),
            json!({"type": "text-end", "id": "m.1"}),
            json!({"type": "tool-input-start", "toolCallId": "t", "toolName": "n", "dynamic": true, "providerExecuted": true}),
            json!({"type": "tool-input-available", "toolCallId": "t", "toolName": "n", "input": {}, "dynamic": true, "providerExecuted": true, "title": "T"}),
            json!({"type": "tool-approval-request", "approvalId": "q", "toolCallId": "t", "approvalDescriptor": {"options": []}, "isAutomatic": true}),
            json!({"type": "tool-approval-response", "approvalId": "q", "approved": true, "reason": "r"}),
            json!({"type": "tool-output-available", "toolCallId": "t", "output": 1, "preliminary": true, "dynamic": true, "providerExecuted": true}),
            json!({"type": "tool-output-error", "toolCallId": "t", "errorText": "no", "dynamic": true, "providerExecuted": true}),
            json!({"type": "data-plan", "id": "plan", "data": 1}),
            json!({"type": "data-session", "id": "session", "data": 1, "transient": true}),
            json!({"type": "data-plan", "id": "plan", "data": 2}),
            json!({"type": "finish-step"}),
            json!({"type": "finish", "finishReason": "stop", "messageMetadata": {"acp": {"l": [2], "b": null}}}),
        ]);
        let want = json!({
            "id": "m", "role": "assistant",
            "metadata": {"acp": {"a": 1, "l": [2], "b": null}},
            "parts": [
                {"type": "step-start"},
                {"type": "text", "text": "Hello", "state": "done", "providerMetadata": {"acp": {"x": 1}}},
                {"type": "dynamic-tool", "toolCallId": "t", "toolName": "n", "state": "output-error", "input": {},
                 "title": "T", "errorText": "no", "providerExecuted": true,
                 "approval": {"id": "q", "descriptor": {"options": []}, "isAutomatic": true, "approved": true, "reason": "r"}},
                {"type": "data-plan", "id": "plan", "data": 2}
            ]
        });
        assert_eq!(message, want);
    }

    #[test]
    fn chunks_for_missing_parts_are_ignored() {
        let message = fold(&[
            json!({"type": "text-delta", "id": "x", "delta": "?"}),
            json!({"type": "tool-output-available", "toolCallId": "x", "output": 1}),
            json!({"type": "tool-approval-response", "approvalId": "x", "approved": true}),
            json!(7),
        ]);
        assert_eq!(message, json!({"id": "", "role": "assistant", "parts": []}));
    }
}
