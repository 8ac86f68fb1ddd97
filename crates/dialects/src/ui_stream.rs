//! Backend of AI SDK endpoints: a server that streams chunks of the UI message stream, in any of the majors 5
//! to 7.
//!
//! The request is that of the SDK's `DefaultChatTransport`. The chunks of the answer are passed on unchanged;
//! acpipe replaces only the frame of the message (`start`, `finish`, `abort`, `error`).

mod answer;

use super::backend::{Backend, BackendPrompt, Exchange};
use super::endpoint::{Endpoint, HttpAnswer};
use acpipe_model::dialect::{DialectTraits, PromptPart, Transport};
use acpipe_model::error::{Error, invalid};
use acpipe_model::event::AgentInfo;
use acpipe_model::prompt_parts::prompt_parts;
use acpipe_protocol::wire::{AgentCapabilities, SessionOptions};
use answer::UiStreamBody;
use serde_json::{Value, json};

/// Name of the protocol.
pub const UI_STREAM: &str = "ui-stream";

pub const TRAITS: DialectTraits = DialectTraits {
    default_command: None,
    identity: None,
    process_per_session: false,
    starts_in_mode: true,
    enforces_tool_lists: false,
    completes_input: false,
    runs_tools: true,
    takes_system_prompt: false,
    takes_output_schema: false,
    remembers: false,
    forks: false,
    logout_hint: "unset the variable of the key",
    may_lack_argument: false,
};

/// An endpoint that streams chunks of the AI SDK.
#[derive(Debug)]
pub struct UiStream {
    endpoint: Endpoint,
}

impl UiStream {
    #[must_use]
    pub fn new(endpoint: Endpoint) -> Self {
        Self { endpoint }
    }
}

impl Backend for UiStream {
    fn name(&self) -> &'static str {
        UI_STREAM
    }

    fn about(&self) -> AgentInfo {
        AgentInfo {
            capabilities: AgentCapabilities {
                resume: true,
                close: true,
                image: true,
                audio: true,
                embedded_context: true,
                ..AgentCapabilities::default()
            },
            auth_methods: self.endpoint.auth_methods(),
            ..AgentInfo::default()
        }
    }

    fn takes_transcript(&self) -> bool {
        true
    }

    fn takes_model(&self) -> bool {
        false
    }

    fn exchange(&self, prompt: &BackendPrompt<'_>) -> Result<Exchange, Error> {
        let body = body(prompt).to_string().into_bytes();
        let url = self.endpoint.url().to_owned();
        let request = self.endpoint.request(url, body, "text/event-stream")?;
        let caller = self.endpoint.caller(None);
        let body = UiStreamBody::new(caller.clone());
        Ok(Exchange {
            transport: Transport::Http(Box::new(request)),
            input: Vec::new(),
            answer: Box::new(HttpAnswer::new(body, caller)),
        })
    }
}

/// Creates the body that `DefaultChatTransport` sends for a new message.
fn body(prompt: &BackendPrompt<'_>) -> Value {
    let mut messages = prompt.transcript.earlier.clone();
    messages.push(whole_message(prompt));
    json!({
        "id": prompt.session.id,
        "messages": messages,
        "trigger": "submit-message",
    })
}

/// Returns the message of the prompt, with the texts that acpipe puts before and after it.
fn whole_message(prompt: &BackendPrompt<'_>) -> Value {
    let mut message = prompt.transcript.message.clone();
    let own = prompt_parts(message["parts"].as_array());
    let own = own.map(|(parts, _)| parts).unwrap_or_default();
    let mut places = prompt.parts.windows(own.len().max(1));
    let begin = places.position(|parts| *parts == *own).unwrap_or(0);
    let end = (begin + own.len()).min(prompt.parts.len());
    let texts = |parts: &[PromptPart<'_>]| -> Vec<Value> {
        let texts = parts.iter().filter_map(|part| match part {
            PromptPart::Text(text) => Some(json!({ "type": "text", "text": text })),
            _ => None,
        });
        texts.collect()
    };
    let (before, after) = (texts(&prompt.parts[..begin]), texts(&prompt.parts[end..]));
    if let Some(parts) = message["parts"].as_array_mut() {
        parts.splice(0..0, before);
        parts.extend(after);
    }
    message
}

/// Checks the options of a session.
///
/// # Errors
/// `invalidParams` for an option: a request cannot contain any. acpipe itself applies an output schema.
pub fn check(options: &SessionOptions) -> Result<(), Error> {
    let own = SessionOptions {
        output_schema: None,
        ..options.clone()
    };
    let given = serde_json::to_value(&own).ok();
    let first = given
        .as_ref()
        .and_then(|given| given.as_object()?.keys().next());
    match first {
        Some(name) => Err(invalid(
            &format!("options.{name}"),
            "agents of the protocol `ui-stream` do not support this option; set it in the endpoint",
        )),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::BackendSession;
    use acpipe_model::dialect::Transcript;

    #[test]
    fn request_is_that_of_the_sdk_with_the_preamble_in_the_message() {
        let message =
            json!({"id": "u2", "role": "user", "parts": [{"type": "text", "text": "go"}]});
        let earlier = vec![json!({"id": "u1", "role": "user", "parts": []})];
        let session = BackendSession {
            id: "s".to_owned(),
            ..BackendSession::default()
        };
        let transcript = Transcript {
            earlier: earlier.clone(),
            message,
            omitted: 0,
        };
        let body = body(&BackendPrompt {
            session: &session,
            parts: &[
                PromptPart::Text("before".into()),
                PromptPart::Text("go".into()),
            ],
            degrade: false,
            transcript: &transcript,
        });
        let want = json!({
            "id": "s",
            "trigger": "submit-message",
            "messages": [earlier[0], {"id": "u2", "role": "user", "parts": [
                {"type": "text", "text": "before"}, {"type": "text", "text": "go"}
            ]}],
        });
        assert_eq!(body, want);
    }
}
