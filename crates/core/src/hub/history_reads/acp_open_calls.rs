//! Tool calls that an interrupted turn left open.

use crate::acp_updates::Put;
use acpipe_model::acp_notification::AcpNotification;
use serde_json::{Value, json};

/// Tool calls without a final status, in the order of their starts.
#[derive(Debug, Default)]
pub(super) struct OpenCalls(Vec<String>);

impl OpenCalls {
    /// Records the tool call of an update.
    pub(super) fn follow(&mut self, update: AcpNotification<'_>) {
        let (json, at) = match update {
            AcpNotification::Update(json) => (json, ""),
            AcpNotification::Line {
                line,
                session: Some(_),
            } => (line.as_bytes(), "/params/update"),
            // The session of a subagent is not the client's.
            AcpNotification::Line { session: None, .. } => return,
        };
        if memchr::memmem::find(json, b"\"toolCallId\"").is_none() {
            return;
        }
        let Ok(message) = serde_json::from_slice::<Value>(json) else {
            return;
        };
        let update = message.pointer(at).unwrap_or(&Value::Null);
        let kind = update["sessionUpdate"].as_str();
        let (Some("tool_call" | "tool_call_update"), Some(id)) =
            (kind, update["toolCallId"].as_str())
        else {
            return;
        };
        match update["status"].as_str() {
            Some("completed" | "failed" | "cancelled") => self.0.retain(|open| open != id),
            _ if kind == Some("tool_call") && !self.0.iter().any(|open| open == id) => {
                self.0.push(id.to_owned());
            }
            _ => {}
        }
    }

    /// Reports that the open tool calls have failed.
    pub(super) fn fail(&self, put: &mut Put<'_>) {
        for id in &self.0 {
            let update = json!({
                "sessionUpdate": "tool_call_update", "toolCallId": id, "status": "failed",
            });
            put(update.to_string().as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_without_a_final_status_fail() {
        let mut calls = OpenCalls::default();
        for update in [
            json!({"sessionUpdate": "tool_call", "toolCallId": "done", "status": "pending"}),
            json!({"sessionUpdate": "tool_call", "toolCallId": "open"}),
            json!({"sessionUpdate": "tool_call", "toolCallId": "at once", "status": "completed"}),
            json!({"sessionUpdate": "tool_call_update", "toolCallId": "done", "status": "completed"}),
            json!({"sessionUpdate": "tool_call_update", "toolCallId": "open", "status": "in_progress"}),
            json!({"sessionUpdate": "other", "toolCallId": "x"}),
        ] {
            calls.follow(AcpNotification::Update(update.to_string().as_bytes()));
        }
        let line =
            r#"{"params":{"update":{"sessionUpdate":"tool_call","toolCallId":"of the agent"}}}"#;
        let session = Some("");
        calls.follow(AcpNotification::Line { line, session });
        calls.follow(AcpNotification::Line {
            line: &line.replace("agent", "subagent"),
            session: None,
        });
        let mut failed = Vec::new();
        calls.fail(&mut |json| {
            let update: Value = serde_json::from_slice(json).unwrap();
            failed.push(update["toolCallId"].as_str().unwrap().to_owned());
        });
        assert_eq!(failed, ["open", "of the agent"]);
    }
}
