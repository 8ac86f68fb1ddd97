//! Content blocks, and the content of tool calls.

use acpipe_json::{to_raw, value};
use acpipe_model::data_url::DataUrl;
use acpipe_model::dialect::{ATTACHMENT, UNNAMED};
use acpipe_model::event::Content;
use serde_json::value::RawValue;
use serde_json::{Value, json};

const BLOCKS: &[&str] = &["text", "image", "audio", "resource_link", "resource"];

pub fn block(content: &Content<'_>) -> Value {
    match content {
        Content::Text(text) => text_block(&text.decode()),
        Content::Rest(_) | Content::Texts(_) => {
            let text = content.text().map(|text| text.decode().into_owned());
            text_block(&text.unwrap_or_default())
        }
        Content::Data {
            media_type, base64, ..
        } => data_block(media_type, &base64.decode(), None),
        Content::Link {
            uri,
            name,
            media_type,
            ..
        } => link_block(uri, name.as_deref(), media_type.as_deref()),
        Content::Document {
            uri,
            media_type,
            details,
        } => {
            let details = value(details);
            let text = &details["resource"]["text"];
            let text = text.as_str().unwrap_or_default();
            resource_block(uri, media_type.as_deref(), "text", text)
        }
        Content::Other => text_block(""),
    }
}

pub fn text_block(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

/// Returns text as an element of a tool call's content.
pub fn text_output(text: &str) -> Value {
    json!({ "type": "content", "content": text_block(text) })
}

/// Converts a file of a message part to a content block: its data, or a link to it.
pub fn file_block(url: &str, media_type: Option<&str>, name: Option<&str>) -> Value {
    let Some(data) = DataUrl::read(url) else {
        return link_block(url, name, media_type);
    };
    let media_type = media_type.unwrap_or(data.media_type);
    if media_type.starts_with("image/") || media_type.starts_with("audio/") {
        return data_block(media_type, &data.base64(), name);
    }
    let uri = attachment(name);
    // As in a prompt: text is embedded as text.
    match data.bytes().and_then(|bytes| String::from_utf8(bytes).ok()) {
        Some(text) => resource_block(&uri, Some(media_type), "text", &text),
        None => resource_block(&uri, Some(media_type), "blob", &data.base64()),
    }
}

pub fn link_block(uri: &str, name: Option<&str>, media_type: Option<&str>) -> Value {
    let name = name.unwrap_or(UNNAMED);
    let mut block = json!({ "type": "resource_link", "name": name, "uri": uri });
    if let Some(media_type) = media_type {
        block["mimeType"] = media_type.into();
    }
    block
}

fn data_block(media_type: &str, base64: &str, name: Option<&str>) -> Value {
    let kind = media_type.split('/').next().unwrap_or_default();
    match kind {
        "image" | "audio" => json!({ "type": kind, "mimeType": media_type, "data": base64 }),
        _ => resource_block(&attachment(name), Some(media_type), "blob", base64),
    }
}

/// Returns a block with an embedded resource; `member` names the kind of its contents.
pub fn resource_block(
    uri: &str,
    media_type: Option<&str>,
    member: &'static str,
    contents: &str,
) -> Value {
    let mut resource = json!({ "uri": uri, member: contents });
    if let Some(media_type) = media_type {
        resource["mimeType"] = media_type.into();
    }
    json!({ "type": "resource", "resource": resource })
}

fn attachment(name: Option<&str>) -> String {
    format!("{ATTACHMENT}{}", name.unwrap_or(UNNAMED))
}

/// Converts the output of a tool that is not ACP content.
pub fn output(output: &Value) -> Vec<Value> {
    match output {
        Value::Null => Vec::new(),
        Value::String(text) => vec![text_output(text)],
        other => vec![text_output(&other.to_string())],
    }
}

/// Converts the result of a tool of Claude Code as its ACP adapter does, for clients that show text as Markdown:
/// output of commands, files and errors are code blocks. A block that ACP does not define becomes text. `None` if
/// nothing changes.
pub fn presented(name: Option<&str>, failed: bool, content: &RawValue) -> Option<Box<RawValue>> {
    let Value::Array(mut items) = value(content) else {
        return None;
    };
    let language = match name {
        _ if failed => Some(""),
        Some("Bash" | "PowerShell" | "BashOutput" | "Monitor") => Some("console"),
        Some("Read") => Some(""),
        _ => None,
    };
    let mut changed = false;
    for item in items.iter_mut().filter(|item| item["type"] == "content") {
        let block = &mut item["content"];
        let is_known = block["type"]
            .as_str()
            .is_some_and(|kind| BLOCKS.contains(&kind));
        if !is_known {
            *block = text_block(&block.to_string());
            changed = true;
        } else if let (Some(language), Some(text)) = (language, block["text"].as_str())
            && !text.is_empty()
        {
            block["text"] = code_block(language, text).into();
            changed = true;
        }
    }
    changed.then(|| to_raw(&items))
}

/// Returns the text as a code block, with a fence that the text does not have.
fn code_block(language: &str, text: &str) -> String {
    let ticks = |line: &str| line.trim_start().bytes().take_while(|b| *b == b'`').count();
    let longest = text.lines().map(ticks).max().unwrap_or_default();
    let fence = "`".repeat(longest.max(2) + 1);
    let text = text.trim_end_matches('\n');
    format!("{fence}{language}\n{text}\n{fence}")
}

/// Converts a file or source of a `UIMessage`, as a part or as a chunk, to a content block.
pub fn part_block(part: &Value) -> Value {
    let said = |name: &str| part[name].as_str();
    match said("type") {
        Some("source-url") => link_block(
            said("url").unwrap_or_default(),
            said("title").or(said("url")),
            None,
        ),
        Some("source-document") => link_block(
            said("sourceId").unwrap_or_default(),
            said("filename").or(said("title")),
            said("mediaType"),
        ),
        _ => file_block(
            said("url").unwrap_or_default(),
            said("mediaType"),
            said("filename"),
        ),
    }
}
