//! Conversion of a prompt's parts to content blocks of the Messages API, each in the best form that the CLI
//! accepts.

use acpipe_model::data_url::DataUrl;
use acpipe_model::dialect::{PromptPart, UNNAMED};
use acpipe_model::error::{Error, ErrorKind};
use acpipe_model::prompt_parts::only_acp;
use serde_json::{Value, json};

/// Image types that the Messages API accepts.
const IMAGES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// Returns the content blocks of a prompt.
///
/// # Errors
/// The CLI does not accept a file, unless `degrade` allows sending only its name.
pub fn blocks(parts: &[PromptPart<'_>], degrade: bool) -> Result<Vec<Value>, Error> {
    parts.iter().map(|part| block(part, degrade)).collect()
}

fn block(part: &PromptPart<'_>, degrade: bool) -> Result<Value, Error> {
    let (url, media_type, name) = match part {
        PromptPart::Text(text) => return Ok(words(text)),
        PromptPart::Block(_) | PromptPart::Params(_) => return Err(only_acp()),
        PromptPart::File {
            url,
            media_type,
            name,
        } => (url, media_type, name.as_deref()),
    };
    let Some(data) = DataUrl::read(url) else {
        return Ok(words(&link(url, name)));
    };
    let media = media_type.as_deref().unwrap_or(data.media_type);
    if IMAGES.contains(&media) {
        let source = json!({ "type": "base64", "media_type": media, "data": data.base64() });
        return Ok(json!({ "type": "image", "source": source }));
    }
    if media == "application/pdf" {
        let source = json!({ "type": "base64", "media_type": media, "data": data.base64() });
        return Ok(json!({ "type": "document", "source": source, "title": name }));
    }
    let text = data.bytes().and_then(|bytes| String::from_utf8(bytes).ok());
    match text {
        Some(text) => Ok(words(&format!(
            "<document name={:?} mediaType={media:?}>\n{text}\n</document>",
            name.unwrap_or(UNNAMED)
        ))),
        None if degrade => Ok(words(&format!("[{} ({media})]", name.unwrap_or(UNNAMED)))),
        None => {
            let which = name.map(|name| format!(" ({name})")).unwrap_or_default();
            let message = format!(
                "message.parts: the agent does not accept {media}{which}; remove the part, or set degrade to send its \
                     name only"
            );
            Err(Error::new(ErrorKind::InvalidParams, message).with("field", "message.parts"))
        }
    }
}

fn words(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

/// Formats a reference: a file as `@` and its path, anything else as a link.
fn link(url: &str, name: Option<&str>) -> String {
    match (url.strip_prefix("file://"), name) {
        (Some(path), _) => format!("@{path}"),
        (None, Some(name)) => format!("[{name}]({url})"),
        (None, None) => url.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claude_files_are_sent_in_the_best_supported_form() {
        let sent = |url: &str, name: Option<&str>, degrade| {
            let part = PromptPart::File {
                url: url.into(),
                media_type: None,
                name: name.map(str::to_owned),
            };
            match blocks(&[part], degrade) {
                Ok(blocks) => blocks[0].clone(),
                Err(error) => error.message.into(),
            }
        };
        let image = json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aWNvbg=="}});
        let cases = [
            ("data:image/png;base64,aWNvbg==", None, image),
            (
                "data:application/pdf;base64,aGk=",
                Some("a.pdf"),
                json!({"type": "document", "title": "a.pdf", "source": {"type": "base64", "media_type": "application/pdf", "data": "aGk="}}),
            ),
            (
                "data:text/x;base64,aGk=",
                Some("a.x"),
                words("<document name=\"a.x\" mediaType=\"text/x\">\nhi\n</document>"),
            ),
            ("file:///w/a b.rs", None, words("@/w/a b.rs")),
            ("https://x/y", Some("y"), words("[y](https://x/y)")),
            ("https://x/y", None, words("https://x/y")),
        ];
        for (url, name, want) in cases {
            assert_eq!(sent(url, name, false), want, "{url}");
        }
        let odd = "data:application/x;base64,/w==";
        assert!(
            sent(odd, Some("n"), false)
                .as_str()
                .unwrap()
                .contains("does not accept application/x (n)")
        );
        assert_eq!(sent(odd, Some("n"), true), words("[n (application/x)]"));
    }
}
