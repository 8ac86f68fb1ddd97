//! Body of a request: the conversation as messages of chat completions.
//!
//! Earlier messages contribute their text, and those of the user also their files. Reasoning, tool calls and
//! data of earlier answers are left out: servers accept results of tools only together with definitions of
//! the tools, which acpipe does not have.

use crate::backend::BackendPrompt;
use acpipe_model::data_url::DataUrl;
use acpipe_model::dialect::{PromptPart, UNNAMED};
use acpipe_model::error::{Error, ErrorKind};
use acpipe_model::prompt_parts::only_acp;
use serde_json::{Value, json};

/// Creates the body of a request.
///
/// # Errors
/// The prompt has a file that chat completions cannot contain.
pub fn body(prompt: &BackendPrompt<'_>, streams: bool) -> Result<Value, Error> {
    let options = &prompt.session.options;
    let mut messages = Vec::new();
    if let Some(instructions) = &options.append_system_prompt {
        messages.push(json!({ "role": "system", "content": instructions }));
    }
    messages.extend(prompt.transcript.earlier.iter().filter_map(earlier));
    let parts: Result<Vec<Value>, Error> = prompt
        .parts
        .iter()
        .map(|part| part_of_prompt(part, prompt.degrade))
        .collect();
    messages.push(json!({ "role": "user", "content": content(&parts?) }));
    let mut body = json!({ "messages": messages });
    if let Some(model) = &options.model {
        body["model"] = json!(model);
    }
    if let Some(effort) = &options.effort {
        body["reasoning_effort"] = json!(effort);
    }
    if let Some(schema) = &options.output_schema {
        body["response_format"] = json!({
            "type": "json_schema",
            "json_schema": { "name": "answer", "schema": schema },
        });
    }
    if streams {
        body["stream"] = json!(true);
        body["stream_options"] = json!({ "include_usage": true });
    }
    Ok(body)
}

/// Converts an earlier message; `None` if nothing of it can be sent.
fn earlier(message: &Value) -> Option<Value> {
    let role = message["role"].as_str()?;
    let parts = message["parts"].as_array()?.iter();
    let parts: Vec<Value> = parts
        .filter_map(|part| match part["type"].as_str()? {
            "text" => Some(text(part["text"].as_str()?)),
            // A file that cannot be sent was refused, or replaced by its name, when it was new.
            "file" if role == "user" => {
                let name = part["filename"].as_str();
                let media_type = part["mediaType"].as_str();
                Some(
                    file(part["url"].as_str()?, media_type, name)
                        .unwrap_or_else(|name| missing(&name)),
                )
            }
            _ => None,
        })
        .filter(|part| part["text"] != "")
        .collect();
    (!parts.is_empty()).then(|| json!({ "role": role, "content": content(&parts) }))
}

fn part_of_prompt(part: &PromptPart<'_>, degrade: bool) -> Result<Value, Error> {
    let (url, media_type, name) = match part {
        PromptPart::Text(said) => return Ok(text(said)),
        PromptPart::Block(_) | PromptPart::Params(_) => return Err(only_acp()),
        PromptPart::File {
            url,
            media_type,
            name,
        } => (url, media_type.as_deref(), name.as_deref()),
    };
    file(url, media_type, name).or_else(|name| {
        if degrade {
            return Ok(missing(&name));
        }
        let message = format!(
            "message.parts: chat completions cannot contain the file {name:?}; send text, an image, wav, mp3 or PDF, or \
             set degrade to send only its name"
        );
        Err(Error::new(ErrorKind::InvalidParams, message).with("field", "message.parts"))
    })
}

/// Converts a file; the error is its name.
fn file(url: &str, media_type: Option<&str>, name: Option<&str>) -> Result<Value, String> {
    let data = DataUrl::read(url);
    let media_type = match (&data, media_type) {
        (_, Some(media_type)) => media_type,
        (Some(data), None) => data.media_type,
        (None, None) => "",
    };
    let unsupported = || name.unwrap_or(UNNAMED).to_owned();
    let Some(data) = data else {
        let is_web = url.starts_with("https://") || url.starts_with("http://");
        return Ok(if is_web && media_type.starts_with("image/") {
            json!({ "type": "image_url", "image_url": { "url": url } })
        } else {
            text(url)
        });
    };
    Ok(match media_type {
        _ if media_type.starts_with("image/") => {
            json!({ "type": "image_url", "image_url": { "url": url } })
        }
        "audio/wav" | "audio/x-wav" | "audio/wave" => audio(&data, "wav"),
        "audio/mpeg" | "audio/mp3" => audio(&data, "mp3"),
        "application/pdf" => json!({
            "type": "file",
            "file": { "filename": name.unwrap_or("file.pdf"), "file_data": url },
        }),
        _ => {
            let bytes = data.bytes().ok_or_else(unsupported)?;
            let content = String::from_utf8(bytes).map_err(|_| unsupported())?;
            let name = name.unwrap_or(UNNAMED);
            text(&format!("File {name}:\n\n{content}"))
        }
    })
}

fn audio(data: &DataUrl<'_>, format: &str) -> Value {
    json!({
        "type": "input_audio",
        "input_audio": { "data": data.base64(), "format": format },
    })
}

fn text(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

fn missing(name: &str) -> Value {
    text(&format!("(file {name}, not sent)"))
}

/// Joins texts to one string, since not every server accepts a list of parts.
fn content(parts: &[Value]) -> Value {
    let texts: Option<Vec<&str>> = parts.iter().map(|part| part["text"].as_str()).collect();
    match texts {
        Some(texts) => json!(texts.join("\n\n")),
        None => json!(parts),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::BackendSession;
    use acpipe_model::dialect::Transcript;
    use acpipe_protocol::wire::SessionOptions;
    use std::borrow::Cow;

    fn file_part(url: &str, name: &str) -> PromptPart<'static> {
        PromptPart::File {
            url: Cow::Owned(url.to_owned()),
            media_type: None,
            name: Some(name.to_owned()),
        }
    }

    fn body_of(
        parts: &[PromptPart<'_>],
        earlier: Vec<Value>,
        degrade: bool,
    ) -> Result<Value, Error> {
        let session = BackendSession {
            options: SessionOptions {
                model: Some("m".to_owned()),
                append_system_prompt: Some("be brief".to_owned()),
                ..SessionOptions::default()
            },
            ..BackendSession::default()
        };
        let transcript = Transcript {
            earlier,
            ..Transcript::default()
        };
        body(
            &BackendPrompt {
                session: &session,
                parts,
                degrade,
                transcript: &transcript,
            },
            true,
        )
    }

    #[test]
    fn conversation_becomes_messages() {
        let earlier = vec![
            json!({"role": "user", "parts": [{"type": "text", "text": "hi"}, {"type": "data-x", "data": 1}]}),
            json!({"role": "assistant", "parts": [
                {"type": "step-start"},
                {"type": "reasoning", "text": "hm"},
                {"type": "text", "text": "a"},
                {"type": "dynamic-tool", "toolName": "t", "state": "output-available"},
                {"type": "text", "text": ""},
                {"type": "text", "text": "b"}
            ]}),
            json!({"role": "assistant", "parts": [{"type": "reasoning", "text": "only"}]}),
        ];
        let body = body_of(&[PromptPart::Text("go".into())], earlier, false).unwrap();
        let want = json!({
            "model": "m",
            "stream": true,
            "stream_options": {"include_usage": true},
            "messages": [
                {"role": "system", "content": "be brief"},
                {"role": "user", "content": "hi"},
                {"role": "assistant", "content": "a\n\nb"},
                {"role": "user", "content": "go"},
            ],
        });
        assert_eq!(body, want);
    }

    #[test]
    fn files_are_sent_in_the_form_that_servers_accept() {
        let cases = [
            (
                "data:image/png;base64,AAAA",
                json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}),
            ),
            (
                "data:audio/wav;base64,AAAA",
                json!({"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}),
            ),
            (
                "data:application/pdf;base64,AAAA",
                json!({"type": "file", "file": {"filename": "n", "file_data": "data:application/pdf;base64,AAAA"}}),
            ),
            (
                "data:text/plain,hello%20you",
                json!({"type": "text", "text": "File n:\n\nhello you"}),
            ),
            (
                "https://h/x.bin",
                json!({"type": "text", "text": "https://h/x.bin"}),
            ),
        ];
        for (url, want) in cases {
            // The image keeps the content a list.
            let parts = [
                file_part("data:image/gif;base64,AAAA", "i"),
                file_part(url, "n"),
            ];
            let body = body_of(&parts, Vec::new(), false).unwrap();
            assert_eq!(body["messages"][1]["content"][1], want, "{url}");
        }
    }

    #[test]
    fn file_that_cannot_be_sent_is_refused_unless_its_name_suffices() {
        let parts = [file_part("data:application/zip;base64,/w==", "a.zip")];
        let error = body_of(&parts, Vec::new(), false).unwrap_err();
        assert!(error.message.contains("a.zip"), "{error}");
        let body = body_of(&parts, Vec::new(), true).unwrap();
        assert_eq!(body["messages"][1]["content"], "(file a.zip, not sent)");
    }
}
