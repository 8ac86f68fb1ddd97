//! Labels of ACP updates.

use super::label::{Label, brief, text_of, words};
use super::row::RowKind;
use serde_json::Value;

/// Returns the label of a session update.
pub fn label(update: &Value) -> Label {
    let text = |name: &str| update[name].as_str().unwrap_or_default();
    let kind = match text("sessionUpdate") {
        "" => "update",
        kind => kind,
    };
    let is_call = kind.starts_with("tool_call");
    let detail = match kind {
        _ if kind.ends_with("_chunk") => text_of(&update["content"]),
        _ if is_call => words([text("title"), text("status"), text("toolCallId")]),
        "usage_update" => format!("{} of {}", update["used"], update["size"]),
        "current_mode_update" => text("currentModeId").to_owned(),
        "session_info_update" => text("title").to_owned(),
        _ => rest(update),
    };
    let label = Label::new(RowKind::Notification, kind, &detail);
    // The end of a tool call must not disappear in a fold.
    if is_call && !(kind == "tool_call_update" && ["", "in_progress"].contains(&text("status"))) {
        return label;
    }
    let stream = words([kind, text("messageId"), text("toolCallId")]);
    let text = if kind.ends_with("_chunk") {
        &detail
    } else {
        ""
    };
    label.of_stream(&stream, text)
}

/// Formats the members of an update, without its type.
fn rest(update: &Value) -> String {
    let mut update = update.clone();
    if let Some(members) = update.as_object_mut() {
        members.remove("sessionUpdate");
    }
    brief(&update)
}
