//! `user` frames: tool results, and messages that the CLI sends to the model in the user's name. Results of tools that the model's
//! provider ran stand in other frames.

use super::LineSink;
use super::block_updates::{object, tool};
use crate::claude::tools;
use acpipe_json::{JsonStr, Members, non_null, text, to_raw};
use acpipe_model::event::{
    Content, MessagePiece, MessageRole, ToolStatus, ToolUpdate, Update, call_id,
};
use acpipe_protocol::claude;
use acpipe_protocol::claude::{Frame, is_true, word};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::HashSet;

/// Handles a frame; a result whose call is not known begins the call.
pub(super) fn user<'a>(calls: &mut HashSet<String>, frame: &Frame<'a>, out: &mut LineSink<'a, '_>) {
    let message: claude::Message<'a> = object(frame.message).unwrap_or_default();
    let blocks: Vec<&'a RawValue> = object(message.content).unwrap_or_default();
    let mut result = frame.tool_use_result;
    let mut others = blocks.is_empty();
    for raw in blocks {
        let block: claude::Block<'a> = object(Some(raw)).unwrap_or_default();
        if word(block.kind) == "tool_result" {
            let mut update = tool_result(calls, &block, result.take());
            if let Some(meta) = meta_of(frame.tool_result_meta, &update.id) {
                update.other.set("tool_result_meta", meta);
            }
            update.other.extend(frame.rest.clone());
            out.push(Update::Tool(Box::new(update)));
        } else {
            others = true;
        }
    }
    if others && let Some(update) = in_the_users_name(frame, &message, out) {
        out.push(update);
    }
}

/// Converts a tool result, with the data that the CLI has about it in addition to the text for the model.
pub(super) fn tool_result<'a>(
    calls: &mut HashSet<String>,
    block: &claude::Block<'a>,
    result: Option<&'a RawValue>,
) -> ToolUpdate<'a> {
    let id = call_id(block.tool_use_id);
    let is_error = is_true(block.is_error) || is_error_block(block.content);
    let status = if is_error {
        ToolStatus::Failed
    } else {
        ToolStatus::Completed
    };
    let mut content = if is_error {
        Vec::new()
    } else {
        tools::diffs(result)
    };
    content.extend(contents(block.content));
    let output = non_null(result).or(match word(block.kind) {
        // Results from the model's provider are not formatted for the model only.
        "tool_result" => None,
        _ => block.content,
    });
    let mut other = block.rest.clone();
    if word(block.kind) != "tool_result" {
        other.set_some("result_type", block.kind);
    }
    let begins = !calls.contains(id.as_ref());
    if begins {
        calls.insert(id.to_string());
    }
    ToolUpdate {
        begins,
        status: Some(status.as_str().into()),
        content: Some(Cow::Owned(to_raw(&content))),
        locations: tools::changed(result).map(Cow::Owned),
        output,
        other,
        id,
        ..ToolUpdate::default()
    }
}

/// Reports a block that is neither text nor a tool call: the result of a call that the model's provider
/// ran itself, or an unknown block.
pub(super) fn other_block<'a>(
    calls: &mut HashSet<String>,
    block: &claude::Block<'a>,
    out: &mut LineSink<'a, '_>,
) {
    if block.tool_use_id.is_some() && word(block.kind).ends_with("_tool_result") {
        let result = tool_result(calls, block, None);
        return out.push(tool(result));
    }
    out.push(Update::Other);
}

/// Converts the content of a `user` frame that is not a tool result.
fn in_the_users_name<'a>(
    frame: &Frame<'a>,
    message: &claude::Message<'a>,
    out: &LineSink<'a, '_>,
) -> Option<Update<'a>> {
    let said = words(message.content);
    let said = said.map(JsonStr::decode).unwrap_or_default();
    // acpipe's own prompt, or output of a control request in addition to its response.
    if is_true(frame.is_replay) {
        return None;
    }
    let is_marker = said.starts_with("[Request interrupted by user")
        || said.starts_with("<task-notification>")
        || is_true(frame.is_synthetic);
    if is_marker {
        return Some(Update::TransientUpdate);
    }
    if out.parent.is_some()
        && let Some(said) = words(message.content)
    {
        return Some(Update::Message(MessagePiece {
            role: MessageRole::User,
            message_id: None,
            content: Content::Text(said),
            subagent: None,
            about: Members::default(),
        }));
    }
    Some(Update::Other)
}

/// Returns the text of a message that consists of a single text.
fn words(content: Option<&RawValue>) -> Option<JsonStr<'_>> {
    if let Some(text) = content.and_then(JsonStr::new) {
        return Some(text);
    }
    let blocks: Vec<claude::Block<'_>> = object(content)?;
    match blocks.as_slice() {
        [block] if word(block.kind) == "text" => block.text.and_then(JsonStr::new),
        _ => None,
    }
}

fn meta_of<'a>(all: Option<&'a RawValue>, call: &str) -> Option<&'a RawValue> {
    let all: Vec<&'a RawValue> = object(all)?;
    all.into_iter().find(|raw| {
        let meta: claude::Block<'_> = object(Some(raw)).unwrap_or_default();
        text(meta.id).is_some_and(|id| id == call)
    })
}

/// Returns `true` for an error of a tool that the model's provider ran, which is a kind of content.
fn is_error_block(content: Option<&RawValue>) -> bool {
    let block: Option<claude::Block<'_>> = object(content);
    block.is_some_and(|block| word(block.kind).ends_with("_error"))
}

/// Converts the content of a result to ACP's form, so that clients have one form for both dialects.
fn contents(content: Option<&RawValue>) -> Vec<Value> {
    let wrapped = |content: Value| json!({"type": "content", "content": content});
    let as_text = |text: &str| wrapped(json!({"type": "text", "text": text}));
    let Some(content) = non_null(content) else {
        return Vec::new();
    };
    if let Some(said) = JsonStr::new(content) {
        return vec![as_text(&said.decode())];
    }
    let blocks: Vec<&RawValue> = object(Some(content)).unwrap_or_else(|| vec![content]);
    let block = |raw: &RawValue| {
        let whole = acpipe_json::value(raw);
        let source = &whole["source"];
        wrapped(match (whole["type"].as_str(), source["type"].as_str()) {
            (Some("image"), Some("base64")) => json!({
                "type": "image", "mimeType": source["media_type"], "data": source["data"],
            }),
            (Some("image"), Some("url")) => json!({
                "type": "resource_link", "uri": source["url"], "name": source["url"],
            }),
            _ => whole,
        })
    };
    blocks.into_iter().map(block).collect()
}
