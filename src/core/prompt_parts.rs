//! Conversion of a prompt's message parts to the parts that agents receive.

use super::dialect::PromptPart;
use super::error::{Error, invalid};
use serde_json::{Map, Value, json};

/// Returns the text part with the context of a message; `None` without context.
#[must_use]
pub fn context_part(context: &Map<String, Value>) -> Option<Value> {
    let values = serde_json::to_string_pretty(context).ok()?;
    let text = format!(
        "Context of the message, as JSON:\n\n{values}\n\n(End of the context. The message follows.)"
    );
    (!context.is_empty()).then(|| json!({ "type": "text", "text": text }))
}

/// Returns the parts that can be sent, and the types of those that cannot.
///
/// # Errors
/// `invalidParams` if a part lacks a field, or no part can be sent.
pub fn prompt_parts(
    message: Option<&Vec<Value>>,
) -> Result<(Vec<PromptPart<'_>>, Vec<String>), Error> {
    let mut parts = Vec::new();
    let mut skipped = Vec::new();
    for (n, part) in message.into_iter().flatten().enumerate() {
        let said = |name: &str| part.get(name).and_then(Value::as_str);
        let field = |name: &str| said(name).map(str::to_owned);
        let need = |name: &str| {
            said(name)
                .ok_or_else(|| invalid(&format!("message.parts[{n}].{name}"), "must be a string"))
        };
        match need("type")? {
            "text" => parts.push(PromptPart::Text(need("text")?.into())),
            "file" => parts.push(PromptPart::File {
                url: need("url")?.into(),
                media_type: field("mediaType"),
                name: field("filename"),
            }),
            "source-url" => parts.push(PromptPart::File {
                url: need("url")?.into(),
                media_type: None,
                name: field("title"),
            }),
            "source-document" => parts.push(PromptPart::File {
                url: need("sourceId")?.into(),
                media_type: field("mediaType"),
                name: field("filename").or_else(|| field("title")),
            }),
            other => skipped.push(other.to_owned()),
        }
    }
    if parts.is_empty() {
        return Err(invalid("message.parts", "must have a text or file part"));
    }
    Ok((parts, skipped))
}
