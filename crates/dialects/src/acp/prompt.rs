//! Conversion of a prompt's parts to content blocks, each in the best form that the agent supports.

use acpipe_model::data_url::DataUrl;
use acpipe_model::dialect::{ATTACHMENT, PromptPart, UNNAMED};
use acpipe_model::error::{Error, ErrorKind};
use acpipe_protocol::wire::AgentCapabilities;
use serde::Serialize;
use serde_json::{Map, Value, json};

/// Converts the parts of a prompt to content blocks.
///
/// # Errors
/// A part that the agent does not support, unless `degrade` allows a link instead.
pub fn blocks<'a>(
    parts: &'a [PromptPart<'_>],
    can: AgentCapabilities,
    degrade: bool,
) -> Result<Vec<Block<'a>>, Error> {
    let block = |part: &'a PromptPart<'_>| match part {
        PromptPart::Text(text) => Some(Ok(Block::Text { kind: "text", text })),
        PromptPart::File {
            url,
            media_type,
            name,
        } => {
            Some(file(url, media_type.as_deref(), name.as_deref(), can, degrade).map(Block::Other))
        }
        PromptPart::Block(block) => Some(Ok(Block::Own(block))),
        PromptPart::Params(_) => None,
    };
    parts.iter().filter_map(block).collect()
}

/// Returns the members that the client adds to the parameters of a prompt.
pub fn params<'a>(parts: &'a [PromptPart<'_>]) -> Option<&'a Map<String, Value>> {
    parts.iter().find_map(|part| match part {
        PromptPart::Params(params) => Some(*params),
        _ => None,
    })
}

/// A content block with borrowed text.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum Block<'a> {
    Text {
        #[serde(rename = "type")]
        kind: &'static str,
        text: &'a str,
    },
    Other(Value),
    Own(&'a Value),
}

fn file(
    url: &str,
    media_type: Option<&str>,
    name: Option<&str>,
    can: AgentCapabilities,
    degrade: bool,
) -> Result<Value, Error> {
    let Some(data) = DataUrl::read(url) else {
        return Ok(link(url, name, media_type));
    };
    let media = media_type.unwrap_or(data.media_type);
    let kind = media.split('/').next().unwrap_or_default();
    match kind {
        "image" if can.image => Ok(media_block(kind, &data, media)),
        "audio" if can.audio => Ok(media_block(kind, &data, media)),
        "image" | "audio" if !degrade => Err(refused(kind, name)),
        "image" | "audio" => Ok(link(url, name, Some(media))),
        _ if can.embedded_context => Ok(embedded(&data, media, name)),
        _ => Ok(link(url, name, Some(media))),
    }
}

fn refused(kind: &str, name: Option<&str>) -> Error {
    let which = name.map(|n| format!(" ({n})")).unwrap_or_default();
    let message = format!(
        "message.parts: the agent does not accept {kind}{which}; remove the part, or set degrade to send a link \
             instead"
    );
    Error::new(ErrorKind::InvalidParams, message).with("field", "message.parts")
}

fn media_block(kind: &str, data: &DataUrl<'_>, media: &str) -> Value {
    json!({ "type": kind, "data": data.base64(), "mimeType": media })
}

fn link(url: &str, name: Option<&str>, media_type: Option<&str>) -> Value {
    let mut link = json!({ "type": "resource_link" });
    if let Some(media_type) = media_type {
        link["mimeType"] = media_type.into();
    }
    link["name"] = name.unwrap_or(UNNAMED).into();
    link["uri"] = url.into();
    link
}

/// Embeds data as text if it is valid UTF-8, otherwise as bytes.
fn embedded(data: &DataUrl<'_>, media: &str, name: Option<&str>) -> Value {
    let uri = format!("{ATTACHMENT}{}", name.unwrap_or(UNNAMED));
    // Data that cannot be decoded is forwarded unchanged, since the agent may be able to use it.
    let text = data.bytes().and_then(|bytes| String::from_utf8(bytes).ok());
    let resource = match text {
        Some(text) => json!({ "mimeType": media, "text": text, "uri": uri }),
        None => json!({ "blob": data.base64(), "mimeType": media, "uri": uri }),
    };
    json!({ "type": "resource", "resource": resource })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn sent(url: &str, name: Option<&str>, can: AgentCapabilities, degrade: bool) -> Value {
        let part = PromptPart::File {
            url: url.into(),
            media_type: None,
            name: name.map(str::to_owned),
        };
        match blocks(&[part], can, degrade) {
            Ok(blocks) => serde_json::to_value(&blocks[0]).unwrap(),
            Err(error) => error.message.into(),
        }
    }

    #[test]
    fn acp_files_are_sent_in_the_best_supported_form() {
        let none = AgentCapabilities::default();
        let all = AgentCapabilities {
            image: true,
            audio: true,
            embedded_context: true,
            ..none
        };
        let (png, wav) = (
            "data:image/png;base64,aWNvbg==",
            "data:audio/wav;base64,aGk=",
        );
        let (text, blob) = ("data:text/x;base64,aGk=", "data:application/x;base64,/w==");
        let cases = [
            (
                png,
                all,
                json!({"type": "image", "data": "aWNvbg==", "mimeType": "image/png"}),
            ),
            (
                wav,
                all,
                json!({"type": "audio", "data": "aGk=", "mimeType": "audio/wav"}),
            ),
            (
                text,
                all,
                json!({"type": "resource", "resource": {"uri": "attachment:///n", "mimeType": "text/x", "text": "hi"}}),
            ),
            (
                "data:,a%20b%",
                all,
                json!({"type": "resource", "resource": {"uri": "attachment:///n", "mimeType": "text/plain", "text": "a b%"}}),
            ),
            (
                blob,
                all,
                json!({"type": "resource", "resource": {"uri": "attachment:///n", "mimeType": "application/x", "blob": "/w=="}}),
            ),
            (
                "data:text/x;base64,aGk",
                all,
                json!({"type": "resource", "resource": {"uri": "attachment:///n", "mimeType": "text/x", "text": "hi"}}),
            ),
            (
                "data:text/x;base64,a-_!",
                all,
                json!({"type": "resource", "resource": {"uri": "attachment:///n", "mimeType": "text/x", "blob": "a-_!"}}),
            ),
            (
                text,
                none,
                json!({"type": "resource_link", "name": "n", "uri": text, "mimeType": "text/x"}),
            ),
            (
                "https://x/y",
                all,
                json!({"type": "resource_link", "name": "n", "uri": "https://x/y"}),
            ),
        ];
        for (url, can, want) in cases {
            assert_eq!(sent(url, Some("n"), can, false), want, "{url}");
        }
        assert_eq!(sent("file:///a", None, none, false)["name"], "file");
        for url in [png, wav] {
            assert!(
                sent(url, None, none, false)
                    .as_str()
                    .unwrap()
                    .contains("does not accept")
            );
            assert_eq!(sent(url, None, none, true)["type"], "resource_link");
        }
    }
}
