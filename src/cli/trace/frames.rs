//! Labels of frames of any protocol.

use super::label::{Label, brief};
use super::row::RowKind;
use super::{chunks, claude, rpc};
use serde_json::Value;

/// Returns the label of a frame: JSON-RPC, a message of the Claude Code CLI, a chunk, or any other JSON.
pub fn label(frame: &Value) -> Label {
    if frame.is_array()
        || ["method", "jsonrpc"]
            .iter()
            .any(|name| frame.get(name).is_some())
    {
        return rpc::label(frame);
    }
    if frame.get("choices").is_some() {
        return completion(frame);
    }
    match frame["type"].as_str() {
        Some(kind) if chunks::is_chunk(kind) => chunks::label(frame),
        Some(_) => claude::label(frame),
        None if frame.get("error").is_some() => {
            Label::new(RowKind::Error, "error", &brief(&frame["error"]))
        }
        None => Label::new(RowKind::Notification, "frame", &brief(frame)),
    }
}

/// Label of a part of a streamed chat completion.
fn completion(frame: &Value) -> Label {
    let choice = &frame["choices"][0];
    let text = choice["delta"]["content"].as_str().unwrap_or_default();
    if text.is_empty() {
        return Label::new(RowKind::Notification, "completion", &brief(choice));
    }
    Label::new(RowKind::Notification, "completion", text).of_stream("completion", text)
}

#[cfg(test)]
mod tests {
    use super::super::label::{CallFrame, StreamDelta};
    use super::*;
    use serde_json::json;

    #[test]
    fn frames_of_each_protocol_have_a_kind_a_title_and_a_detail() {
        let cases = [
            (
                json!({"jsonrpc": "2.0", "id": 1, "method": "session/prompt", "params": {"sessionId": "s", "prompt": [{"type": "text", "text": "hi\nyou"}]}}),
                (RowKind::Request, "session/prompt", "hi you"),
            ),
            (
                json!({"jsonrpc": "2.0", "id": 1, "result": {"stopReason": "end_turn"}}),
                (RowKind::Response, "", "end_turn"),
            ),
            (
                json!({"jsonrpc": "2.0", "id": 1, "error": {"code": -32603, "message": "no"}}),
                (RowKind::Error, "", "-32603 no"),
            ),
            (
                json!({"jsonrpc": "2.0", "method": "session/update", "params": {"update": {"sessionUpdate": "tool_call", "title": "ls", "status": "pending", "toolCallId": "t1"}}}),
                (RowKind::Notification, "tool_call", "ls pending t1"),
            ),
            (
                json!({"jsonrpc": "2.0", "method": "_x/y", "params": {"a": 1}}),
                (RowKind::Notification, "_x/y", r#"{"a":1}"#),
            ),
            (
                json!({"type": "control_request", "request_id": "r", "request": {"subtype": "can_use_tool", "tool_name": "Bash", "input": {"command": "ls"}}}),
                (RowKind::Request, "can_use_tool", r#"Bash {"command":"ls"}"#),
            ),
            (
                json!({"type": "control_response", "response": {"subtype": "error", "request_id": "r", "error": "bad"}}),
                (RowKind::Error, "", "bad"),
            ),
            (
                json!({"type": "result", "subtype": "success", "is_error": true, "result": "API Error"}),
                (RowKind::Error, "result success", "API Error"),
            ),
            (
                json!({"type": "assistant", "message": {"content": [{"type": "tool_use", "name": "Bash"}]}}),
                (RowKind::Notification, "assistant", "[tool_use Bash]"),
            ),
            (
                json!({"type": "error", "errorText": "lost"}),
                (RowKind::Error, "chunk error", "lost"),
            ),
            (
                json!({"choices": [{"delta": {"content": "a"}}]}),
                (RowKind::Notification, "completion", "a"),
            ),
            (
                json!([{"jsonrpc": "2.0", "id": 1, "method": "a"}, {"jsonrpc": "2.0", "id": 2, "result": 1}]),
                (RowKind::Notification, "batch", "2 messages"),
            ),
            (json!(7), (RowKind::Notification, "frame", "7")),
        ];
        for (frame, (kind, title, detail)) in cases {
            let label = label(&frame);
            let found = (label.kind, label.title.as_str(), label.detail.as_str());
            assert_eq!(found, (kind, title, detail), "{frame}");
        }
    }

    #[test]
    fn calls_of_a_batch_are_found() {
        let batch = json!([{"jsonrpc": "2.0", "id": "1", "method": "a"}, {"jsonrpc": "2.0", "id": 1, "result": 1}]);
        let calls = [
            CallFrame::Request("\"1\"".into()),
            CallFrame::Response("1".into()),
        ];
        assert_eq!(label(&batch).calls, calls);
        let control = json!({"type": "control_response", "response": {"subtype": "success", "request_id": "r"}});
        assert_eq!(label(&control).calls, [CallFrame::Response("\"r\"".into())]);
    }

    #[test]
    fn streamed_text_is_a_delta_and_a_finished_tool_call_is_not() {
        let acp = |update| json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": update}});
        let cases = [
            (
                acp(
                    json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "a"}}),
                ),
                Some("a"),
            ),
            (
                acp(
                    json!({"sessionUpdate": "tool_call_update", "toolCallId": "t", "status": "in_progress"}),
                ),
                Some(""),
            ),
            (
                acp(
                    json!({"sessionUpdate": "tool_call_update", "toolCallId": "t", "status": "failed"}),
                ),
                None,
            ),
            (
                json!({"type": "stream_event", "event": {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "b"}}}),
                Some("b"),
            ),
            (
                json!({"type": "stream_event", "event": {"type": "message_stop"}}),
                None,
            ),
            (
                json!({"jsonrpc": "2.0", "method": "session/chunk", "params": {"chunk": {"type": "text-delta", "id": "1", "delta": "c"}}}),
                Some("c"),
            ),
            (json!({"type": "finish", "finishReason": "stop"}), None),
        ];
        for (frame, text) in cases {
            let delta: Option<StreamDelta> = label(&frame).delta;
            assert_eq!(delta.map(|d| d.text).as_deref(), text, "{frame}");
        }
    }
}
