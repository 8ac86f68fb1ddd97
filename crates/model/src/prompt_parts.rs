//! Conversion of a prompt's message parts to the parts that agents receive.

use super::dialect::PromptPart;
use super::error::{Error, ErrorKind, invalid};
use acpipe_json::{InputFault, MOST_PARTS};
use acpipe_protocol::wire::Protocol;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

/// Returns `true` if a text begins with a slash command. A path, such as `/usr/bin`, is not a command.
#[must_use]
pub fn is_slash_command(text: &str) -> bool {
    let word = text.split_whitespace().next();
    let name = word.filter(|word| text.starts_with(*word));
    let name = name.and_then(|word| word.strip_prefix('/'));
    let is_of_name = |c: char| c.is_alphanumeric() || "_-:.".contains(c);
    name.is_some_and(|name| !name.is_empty() && name.chars().all(is_of_name))
}

/// Returns the part with the values of a prompt's context. `follows` if it comes after the prompt.
pub fn context_part(context: &Map<String, Value>, follows: bool) -> Option<Value> {
    let values = serde_json::to_string_pretty(context).ok()?;
    let next = if follows { "" } else { " The message follows." };
    let text =
        format!("Context of the message, as JSON:\n\n{values}\n\n(End of the context.{next})");
    (!context.is_empty()).then(|| json!({ "type": "text", "text": text }))
}

/// Returns the parts of a message that an agent gets, and the types of those that cannot be sent.
///
/// # Errors
/// As [`prompt_parts`].
pub fn parts_for(
    protocol: Protocol,
    message: &Value,
) -> Result<(Vec<PromptPart<'_>>, Vec<String>), Error> {
    let (mut parts, skipped) = prompt_parts(message["parts"].as_array())?;
    if protocol != Protocol::Acp {
        parts = parts.into_iter().map(without_acp).collect();
    } else if let Some(params) = message["metadata"]["acp"].as_object() {
        parts.push(PromptPart::Params(params));
    }
    Ok((parts, skipped))
}

/// Creates the error for a part that only ACP agents get; [`parts_for`] converts such parts for other agents.
pub fn only_acp() -> Error {
    invalid(
        "message.parts",
        "only ACP agents take content blocks of ACP",
    )
}

/// Converts a content block of ACP for agents of other protocols.
fn without_acp(part: PromptPart<'_>) -> PromptPart<'_> {
    let PromptPart::Block(block) = part else {
        return part;
    };
    let text = |at: &str| block.pointer(at).and_then(Value::as_str);
    let file = |url: String, media_type: Option<&str>, name: Option<&str>| PromptPart::File {
        url: url.into(),
        media_type: media_type.map(str::to_owned),
        name: name.map(str::to_owned),
    };
    let data = |at: &str| Some(text(at)?.to_owned());
    let of_uri = |uri: &str| uri.rsplit('/').next().map(str::to_owned);
    let media_type = text("/mimeType").or_else(|| text("/resource/mimeType"));
    let known = match block["type"].as_str() {
        Some("text") => text("/text").map(|text| PromptPart::Text(text.into())),
        Some("image" | "audio") => data("/data").map(|data| {
            let media = media_type.unwrap_or("application/octet-stream");
            file(format!("data:{media};base64,{data}"), media_type, None)
        }),
        Some("resource_link") => {
            text("/uri").map(|uri| file(uri.to_owned(), media_type, text("/name")))
        }
        Some("resource") => {
            let name = text("/resource/uri").and_then(of_uri);
            let base64 =
                data("/resource/blob").or_else(|| Some(STANDARD.encode(text("/resource/text")?)));
            base64.map(|base64| {
                let media = media_type.unwrap_or("text/plain");
                file(
                    format!("data:{media};base64,{base64}"),
                    Some(media),
                    name.as_deref(),
                )
            })
        }
        _ => None,
    };
    known.unwrap_or_else(|| PromptPart::Text(block.to_string().into()))
}

pub fn too_many(method: &str, fault: InputFault) -> Error {
    let message = format!("the parameters of {method} have {fault}");
    Error::new(ErrorKind::InvalidParams, message).with("limit", fault.limit())
}

/// Returns the parts that can be sent, and the types of those that cannot.
///
/// # Errors
/// `invalidParams` if there are too many parts, a part lacks a field, or no part can be sent.
pub fn prompt_parts(
    message: Option<&Vec<Value>>,
) -> Result<(Vec<PromptPart<'_>>, Vec<String>), Error> {
    if message.is_some_and(|parts| parts.len() > MOST_PARTS) {
        return Err(too_many("a prompt", InputFault::LongList("parts")));
    }
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
            "data-acp" => match part.get("data") {
                Some(block @ Value::Object(_)) => parts.push(PromptPart::Block(block)),
                _ => {
                    return Err(invalid(
                        &format!("message.parts[{n}].data"),
                        "must be an ACP content block",
                    ));
                }
            },
            other => skipped.push(other.to_owned()),
        }
    }
    if parts.is_empty() {
        return Err(invalid("message.parts", "must have a text or file part"));
    }
    Ok((parts, skipped))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_prompt_are_counted_before_they_are_converted() {
        // None of them has a type, which the conversion would report.
        let parts = vec![Value::Null; MOST_PARTS + 1];
        let error = prompt_parts(Some(&parts)).unwrap_err();
        assert_eq!(error.data()["limit"], "parts");
        let error = prompt_parts(Some(&parts[1..].to_vec())).unwrap_err();
        assert!(error.message.contains("message.parts[0].type"), "{error}");
    }
}
