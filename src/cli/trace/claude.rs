//! Labels of messages of the Claude Code CLI, and of other JSON with a type.

use super::label::{CallFrame, Label, brief, text_of, words};
use super::row::RowKind;
use serde_json::Value;

/// Returns the label of a message.
pub fn label(frame: &Value) -> Label {
    let text = |name: &str| frame[name].as_str().unwrap_or_default();
    let label = match text("type") {
        "control_request" => request(frame),
        "control_response" => response(&frame["response"]),
        "stream_event" => stream_event(&frame["event"], text("parent_tool_use_id")),
        kind @ ("user" | "assistant") => Label::new(
            RowKind::Notification,
            kind,
            &blocks(&frame["message"]["content"]),
        ),
        "result" => {
            let kind = if frame["is_error"] == true {
                RowKind::Error
            } else {
                RowKind::Response
            };
            let detail = match text("result") {
                "" => brief(&frame["errors"]),
                result => result.to_owned(),
            };
            Label::new(kind, &words(["result", text("subtype")]), &detail)
        }
        kind => {
            let mut rest = frame.clone();
            if let Some(members) = rest.as_object_mut() {
                for shown in ["type", "subtype", "session_id", "uuid"] {
                    members.remove(shown);
                }
            }
            let title = words([kind, text("subtype")]);
            Label::new(RowKind::Notification, &title, &brief(&rest))
        }
    };
    label.in_session(&frame["session_id"])
}

fn request(frame: &Value) -> Label {
    let request = &frame["request"];
    let subtype = request["subtype"].as_str().unwrap_or("control_request");
    let tool = request["tool_name"].as_str().unwrap_or_default();
    let detail = words([tool, &brief(&request["input"])]);
    Label::new(RowKind::Request, subtype, &detail)
        .with_call(CallFrame::Request(frame["request_id"].to_string()))
}

fn response(response: &Value) -> Label {
    let label = match response["subtype"].as_str() {
        Some("error") => Label::new(RowKind::Error, "", &brief(&response["error"])),
        _ => Label::new(RowKind::Response, "", &brief(&response["response"])),
    };
    label.with_call(CallFrame::Response(response["request_id"].to_string()))
}

fn stream_event(event: &Value, parent: &str) -> Label {
    let kind = event["type"].as_str().unwrap_or("stream_event");
    if kind != "content_block_delta" {
        let detail = match kind {
            "content_block_start" => blocks(&event["content_block"]),
            _ => brief(&event["delta"]),
        };
        return Label::new(RowKind::Notification, kind, &detail);
    }
    let delta = &event["delta"];
    let texts = ["text", "thinking", "partial_json"].map(|name| delta[name].as_str());
    let text = texts.into_iter().flatten().next().unwrap_or_default();
    let title = delta["type"].as_str().unwrap_or(kind);
    let stream = format!("{title} {} {parent}", event["index"]);
    Label::new(RowKind::Notification, title, text).of_stream(&stream, text)
}

/// Formats content blocks: texts, and the names of tools.
fn blocks(content: &Value) -> String {
    match content {
        Value::Array(all) => {
            let all: Vec<String> = all.iter().map(blocks).collect();
            all.join(" ")
        }
        block => match (block["type"].as_str(), block["name"].as_str()) {
            (Some("tool_use"), Some(name)) => format!("[tool_use {name}]"),
            (Some("tool_result"), _) => format!("[tool_result] {}", text_of(&block["content"])),
            _ => text_of(block),
        },
    }
}
