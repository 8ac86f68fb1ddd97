//! Folds the chunks of a stream into the `UIMessage` that they build.
//!
//! The fold follows the AI SDK's own reader (`readUIMessageStream` of `ai` 7) part by part, so that a stored
//! message equals the one that a client built from the stream. It takes chunks as JSON, in any profile.

mod closing;
mod delta;

use super::chunk_sink::ChunkSink;
use acpipe_json::{JsonStr, merge, partial, to_raw, value};
use acpipe_protocol::chunk::Chunk;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

/// An assistant message under construction.
#[derive(Debug, Clone, Default)]
pub struct Fold {
    id: String,
    metadata: Option<Value>,
    parts: Vec<Map<String, Value>>,
    open: OpenBlockIndices,
    /// Indices of tool calls, approvals and named data parts, by kind and id.
    places: BTreeMap<String, HashMap<String, usize>>,
    /// Index of the first part of the open step.
    step: usize,
}

/// Indices of the open blocks, by block id.
#[derive(Debug, Clone, Default)]
struct OpenBlockIndices {
    texts: HashMap<String, usize>,
    reasonings: HashMap<String, usize>,
}

#[derive(Serialize)]
struct MessageSoFar<'a> {
    id: &'a str,
    role: &'static str,
    parts: Vec<Cow<'a, Map<String, Value>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<&'a Value>,
}

/// Chunk sink that folds chunks as they are created.
#[derive(Debug, Default)]
pub struct FoldSink {
    fold: Fold,
    buffer: Vec<u8>,
    size: usize,
}

impl FoldSink {
    pub fn message(&self) -> Value {
        self.fold.message()
    }

    /// Size of all chunks taken, in bytes of JSON.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Folds a plain delta, which is most of a stream, without its JSON; `None` for any other chunk.
    fn delta(&mut self, chunk: &Chunk<'_>) -> Option<()> {
        let (part, id, delta) = match chunk {
            Chunk::TextDelta {
                id,
                delta,
                provider_metadata: None,
            } => ("text", *id, delta),
            Chunk::ReasoningDelta {
                id,
                delta,
                provider_metadata: None,
            } => ("reasoning", *id, delta),
            _ => return None,
        };
        let text = JsonStr::new(delta.0)?;
        // The keys, the quotes and the punctuation.
        let frame = r#"{"type":"-delta","id":"","delta":}"#.len();
        self.size += frame + part.len() + id.len() + delta.0.get().len();
        self.fold.append(part, id, &text.decode());
        Some(())
    }
}

/// Serializes the message so far.
impl Serialize for FoldSink {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.fold.so_far().serialize(serializer)
    }
}

impl ChunkSink for FoldSink {
    fn chunk(&mut self, chunk: &Chunk<'_>) {
        if self.delta(chunk).is_some() {
            return;
        }
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
    pub fn message(&self) -> Value {
        json!(self.so_far())
    }

    fn so_far(&self) -> MessageSoFar<'_> {
        MessageSoFar {
            id: &self.id,
            role: "assistant",
            parts: self.parts.iter().map(with_partial_input).collect(),
            metadata: self.metadata.as_ref(),
        }
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
            "text-delta" => self.append_delta("text", chunk),
            "reasoning-delta" => self.append_delta("reasoning", chunk),
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
        self.open = OpenBlockIndices::default();
        for places in self.places.values_mut() {
            places.retain(|_, at| *at < self.step);
        }
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
        self.open.of(part).insert(id, self.parts.len());
        self.parts.push(new);
    }

    fn block(&mut self, part: &'static str, id: &str) -> Option<&mut Map<String, Value>> {
        let at = *self.open.of(part).get(id)?;
        self.parts.get_mut(at)
    }

    fn append_delta(&mut self, part: &'static str, chunk: &Value) {
        let id = chunk["id"].as_str().unwrap_or_default();
        if let Some(block) = self.block(part, id) {
            copy(chunk, block, &["providerMetadata"]);
        }
        self.append(part, id, chunk["delta"].as_str().unwrap_or_default());
    }

    fn append(&mut self, part: &'static str, id: &str, delta: &str) {
        let text = self.block(part, id).and_then(|block| block.get_mut("text"));
        if let Some(Value::String(text)) = text {
            text.push_str(delta);
        }
    }

    fn end(&mut self, part: &'static str, chunk: &Value) {
        let id = chunk["id"].as_str().unwrap_or_default();
        if let Some(block) = self.block(part, id) {
            block.insert("state".into(), "done".into());
            copy(chunk, block, &["providerMetadata", "citations"]);
        }
        self.open.of(part).remove(id);
    }

    fn tool(&mut self, chunk: &Value) -> Option<&mut Map<String, Value>> {
        let id = chunk["toolCallId"].as_str()?;
        self.at("tool", id)
    }

    /// The AI SDK's reader looks for the call only in the open step.
    fn input(&mut self, chunk: &Value, state: &str) {
        let known = chunk["toolCallId"].as_str().and_then(|id| {
            let at = self.places.get("tool")?.get(id);
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
            let at = self.places.get("tool").and_then(|at| at.get(call)).copied();
            let id = chunk["approvalId"].as_str().unwrap_or_default();
            if let Some(at) = at {
                self.put("approval", id, at);
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
        let at = *self.places.get(kind)?.get(id)?;
        self.parts.get_mut(at)
    }

    /// Registers the next part under this kind and id.
    fn place(&mut self, kind: &str, id: Option<&str>) {
        if let Some(id) = id {
            self.put(kind, id, self.parts.len());
        }
    }

    fn put(&mut self, kind: &str, id: &str, at: usize) {
        if !self.places.contains_key(kind) {
            self.places.insert(kind.to_owned(), HashMap::new());
        }
        if let Some(places) = self.places.get_mut(kind) {
            places.insert(id.to_owned(), at);
        }
    }
}

impl OpenBlockIndices {
    /// Returns the open blocks of a part type: `text` or `reasoning`.
    fn of(&mut self, part: &str) -> &mut HashMap<String, usize> {
        match part {
            "text" => &mut self.texts,
            _ => &mut self.reasonings,
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
