//! Labels of AI SDK chunks.

use super::label::{Label, brief};
use super::row::RowKind;
use serde_json::Value;

/// Types of chunks without a hyphen. Types of the Claude Code CLI have underscores, or are other words.
const PLAIN: [&str; 5] = ["start", "finish", "error", "abort", "file"];

/// Returns `true` if this is the type of a chunk.
pub fn is_chunk(kind: &str) -> bool {
    kind.contains('-') || PLAIN.contains(&kind)
}

/// Returns the label of a chunk.
pub fn label(chunk: &Value) -> Label {
    let text = |name: &str| chunk[name].as_str().unwrap_or_default();
    let kind = text("type");
    let title = format!("chunk {kind}");
    let delta = ["delta", "inputTextDelta"].map(text).concat();
    if kind.ends_with("-delta") {
        let stream = [&title, text("id"), text("toolCallId")].join(" ");
        return Label::new(RowKind::Notification, &title, &delta).of_stream(&stream, &delta);
    }
    let mut rest = chunk.clone();
    if let Some(members) = rest.as_object_mut() {
        members.remove("type");
    }
    match kind {
        "error" => Label::new(RowKind::Error, &title, text("errorText")),
        _ => Label::new(RowKind::Notification, &title, &brief(&rest)),
    }
}
