//! Backend of chat completions: the API of OpenAI, and the servers that imitate it.
//!
//! Each prompt is one request with the stored conversation. Tools that the model calls are shown, but
//! not run.

mod answer;
mod pieces;
mod request;

use super::backend::{Backend, BackendPrompt, Exchange};
use super::endpoint::{Endpoint, HttpAnswer};
use acpipe_model::dialect::{DialectTraits, Transport};
use acpipe_model::error::{Error, invalid};
use acpipe_model::event::AgentInfo;
use acpipe_protocol::wire::{AgentCapabilities, SessionOptions};
use answer::CompletionBody;

pub const OPENAI: &str = "openai";

/// Variable of the key if the configuration names none.
pub const DEFAULT_KEY: &str = "OPENAI_API_KEY";

pub const TRAITS: DialectTraits = DialectTraits {
    default_command: None,
    identity: None,
    process_per_session: false,
    starts_in_mode: true,
    enforces_tool_lists: false,
    completes_input: true,
    runs_tools: false,
    takes_system_prompt: true,
    // Requests contain the schema, but not every server obeys it.
    takes_output_schema: false,
    remembers: false,
    forks: false,
    logout_hint: "unset the variable of the key",
    may_lack_argument: false,
};

/// Path of the completions below the base address.
const PATH: &str = "/chat/completions";

/// An endpoint for chat completions.
#[derive(Debug)]
pub struct OpenAi {
    endpoint: Endpoint,
    streams: bool,
}

impl OpenAi {
    #[must_use]
    pub fn new(endpoint: Endpoint, streams: bool) -> Self {
        Self { endpoint, streams }
    }
}

impl Backend for OpenAi {
    fn name(&self) -> &'static str {
        OPENAI
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
        true
    }

    fn exchange(&self, prompt: &BackendPrompt<'_>) -> Result<Exchange, Error> {
        let body = request::body(prompt, self.streams)?;
        let accept = if self.streams {
            "text/event-stream"
        } else {
            "application/json"
        };
        let url = completions(self.endpoint.url());
        let body = body.to_string().into_bytes();
        let request = self.endpoint.request(url, body, accept)?;
        let options = &prompt.session.options;
        let caller = self.endpoint.caller(options.model.as_deref());
        let body = CompletionBody::new(caller.clone(), options.output_schema.is_some());
        Ok(Exchange {
            transport: Transport::Http(Box::new(request)),
            input: Vec::new(),
            answer: Box::new(HttpAnswer::new(body, caller)),
        })
    }
}

/// Returns the address of the completions. The user gives it, or the base address.
fn completions(url: &str) -> String {
    let end = url.find(['?', '#']).unwrap_or(url.len());
    let (path, query) = url.split_at(end);
    let path = path.trim_end_matches('/');
    if path.ends_with(PATH) {
        return url.to_owned();
    }
    format!("{path}{PATH}{query}")
}

/// Checks the options of a session.
///
/// # Errors
/// `invalidParams` for an option that a request cannot contain.
pub fn check(options: &SessionOptions) -> Result<(), Error> {
    let own = SessionOptions {
        model: None,
        effort: None,
        append_system_prompt: None,
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
            "agents of the protocol `openai` do not support this option; use only model, effort, appendSystemPrompt \
             and outputSchema",
        )),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base_address_and_full_address_lead_to_the_same_endpoint() {
        for url in [
            "http://h/v1",
            "http://h/v1/",
            "http://h/v1/chat/completions",
        ] {
            assert_eq!(completions(url), "http://h/v1/chat/completions");
        }
        assert_eq!(
            completions("https://h/d?api-version=1"),
            "https://h/d/chat/completions?api-version=1"
        );
    }
}
