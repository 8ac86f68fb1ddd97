//! Chunks that close what a broken-off stream left open.

use super::{Fold, object};
use crate::chunk_sink::ChunkSink;
use acpipe_json::{Raw, to_raw};
use acpipe_model::decision::DecisionSource;
use acpipe_protocol::chunk::Chunk;
use acpipe_protocol::wire::QuestionAction;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use std::collections::HashMap;

impl Fold {
    /// Writes the chunks that close the open parts of the message: the blocks end, questions are cancelled, and tool calls
    /// fail. `reason` is the text for people.
    pub fn close_open(&self, reason: &str, sink: &mut impl ChunkSink) {
        for id in in_order(&self.open.texts) {
            sink.chunk(&Chunk::TextEnd {
                id,
                provider_metadata: None,
            });
        }
        for id in in_order(&self.open.reasonings) {
            sink.chunk(&Chunk::ReasoningEnd {
                id,
                provider_metadata: None,
            });
        }
        for part in &self.parts {
            match text(part, "type") {
                Some("data-permission") => cancel_permission(part, reason, sink),
                Some("data-question") => cancel_question(part, reason, sink),
                _ => close_call(part, reason, sink),
            }
        }
    }
}

/// Returns the ids of open blocks, in the order of their parts.
fn in_order(open: &HashMap<String, usize>) -> Vec<&str> {
    let mut blocks: Vec<(usize, &str)> = open.iter().map(|(id, at)| (*at, id.as_str())).collect();
    blocks.sort_unstable();
    blocks.into_iter().map(|(_, id)| id).collect()
}

/// Closes a tool call that has no result; any other part is left as it is.
fn close_call(part: &Map<String, Value>, reason: &str, sink: &mut impl ChunkSink) {
    let Some(call) = text(part, "toolCallId") else {
        return;
    };
    let approval = part.get("approval").and_then(Value::as_object);
    let is_preliminary = part.get("preliminary") == Some(&Value::Bool(true));
    match (text(part, "state"), approval) {
        (Some("approval-requested"), Some(approval)) => {
            sink.chunk(&Chunk::ToolApprovalResponse {
                approval_id: text(approval, "id").unwrap_or_default(),
                approved: false,
                reason,
            });
            sink.chunk(&Chunk::ToolOutputDenied {
                tool_call_id: call,
                asked: !approval.contains_key("isAutomatic"),
            });
        }
        (Some("output-error" | "output-denied"), _) => {}
        (Some("output-available"), _) if !is_preliminary => {}
        _ => sink.chunk(&Chunk::ToolOutputError {
            tool_call_id: call,
            error_text: reason,
            dynamic: true,
            provider_executed: true,
            tool_metadata: None,
        }),
    }
}

fn cancel_permission(part: &Map<String, Value>, reason: &str, sink: &mut impl ChunkSink) {
    let decision = json!({ "outcome": { "outcome": "cancelled" }, "approved": false });
    if let Some((id, data)) = cancelled(part, "approved", decision, reason) {
        let data = Raw(&data);
        sink.chunk(&Chunk::DataPermission { id, data });
    }
}

fn cancel_question(part: &Map<String, Value>, reason: &str, sink: &mut impl ChunkSink) {
    let decision = json!({ "action": QuestionAction::Cancel });
    if let Some((id, data)) = cancelled(part, "action", decision, reason) {
        let data = Raw(&data);
        sink.chunk(&Chunk::DataQuestion { id, data });
    }
}

/// Returns the id of a question and its data with the members of the decision; `None` if it is already decided,
/// which shows in the member `decided`.
fn cancelled<'p>(
    part: &'p Map<String, Value>,
    decided: &str,
    decision: Value,
    reason: &str,
) -> Option<(&'p str, Box<RawValue>)> {
    let data = part.get("data")?.as_object()?;
    if data.contains_key(decided) {
        return None;
    }
    let mut data = data.clone();
    data.extend(object(decision));
    data.insert("reason".into(), reason.into());
    data.insert("by".into(), DecisionSource::End.word().into());
    Some((text(part, "id")?, to_raw(&data)))
}

fn text<'p>(part: &'p Map<String, Value>, name: &str) -> Option<&'p str> {
    part.get(name)?.as_str()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fold::FoldSink;

    /// Returns the parts that a reader of the stream has after the closing chunks.
    fn closed(chunks: &[Value]) -> Value {
        let mut fold = Fold::default();
        for chunk in chunks {
            fold.push(chunk);
        }
        let mut all = FoldSink {
            fold: fold.clone(),
            ..FoldSink::default()
        };
        fold.close_open("it broke off", &mut all);
        all.message()["parts"].clone()
    }

    #[test]
    fn open_blocks_calls_and_questions_are_closed() {
        let parts = closed(&[
            json!({"type": "text-start", "id": "m.1"}),
            json!({"type": "reasoning-start", "id": "m.2"}),
            json!({"type": "tool-input-start", "toolCallId": "streams", "toolName": "n", "dynamic": true}),
            json!({"type": "tool-input-available", "toolCallId": "runs", "toolName": "n", "input": {}, "dynamic": true}),
            json!({"type": "tool-output-available", "toolCallId": "runs", "output": 1, "preliminary": true}),
            json!({"type": "tool-input-available", "toolCallId": "asks", "toolName": "n", "input": {}, "dynamic": true}),
            json!({"type": "data-permission", "id": "q", "data": {"toolCallId": "asks", "options": []}}),
            json!({"type": "tool-approval-request", "approvalId": "q", "toolCallId": "asks"}),
            json!({"type": "data-question", "id": "w", "data": {"kind": "form"}}),
        ]);
        let states = parts.as_array().unwrap().iter().map(|part| &part["state"]);
        let states: Vec<_> = states.filter_map(Value::as_str).collect();
        assert_eq!(
            states,
            [
                "done",
                "done",
                "output-error",
                "output-error",
                "output-denied"
            ]
        );
        assert_eq!(parts[2]["errorText"], "it broke off");
        assert_eq!(
            parts[4]["approval"],
            json!({"id": "q", "approved": false, "reason": "it broke off"})
        );
        let permission = json!({
            "toolCallId": "asks", "options": [], "outcome": {"outcome": "cancelled"}, "approved": false,
            "reason": "it broke off", "by": "end",
        });
        assert_eq!(parts[5]["data"], permission);
        let question =
            json!({"kind": "form", "action": "cancel", "reason": "it broke off", "by": "end"});
        assert_eq!(parts[6]["data"], question);
    }

    #[test]
    fn results_and_decisions_are_kept() {
        let chunks = [
            json!({"type": "text-start", "id": "m.1"}),
            json!({"type": "text-end", "id": "m.1"}),
            json!({"type": "tool-input-available", "toolCallId": "t", "toolName": "n", "input": {}, "dynamic": true}),
            json!({"type": "tool-output-available", "toolCallId": "t", "output": 1}),
            json!({"type": "data-permission", "id": "q", "data": {"approved": true}}),
            json!({"type": "data-question", "id": "w", "data": {"action": "accept"}}),
            json!({"type": "data-plan", "id": "plan", "data": 1}),
        ];
        let mut fold = Fold::default();
        for chunk in &chunks {
            fold.push(chunk);
        }
        assert_eq!(closed(&chunks), fold.message()["parts"]);
    }
}
