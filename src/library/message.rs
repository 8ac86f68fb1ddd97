//! Messages of a conversation.

use acpipe_protocol::wire::UserMessage;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

/// Message of a conversation: a `UIMessage` of the AI SDK.
///
/// A prompt is a message of the user: text, and files for agents that accept them. A string is a message of
/// one text part.
///
/// ```
/// let message = acpipe::Message::user("What is in this picture?").file("image/png", b"\x89PNG...");
/// assert_eq!(message.text(), "What is in this picture?");
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Message(Map<String, Value>);

impl Message {
    /// Creates a message of the user with one text part.
    #[must_use]
    pub fn user(text: impl Into<String>) -> Self {
        let part = json!({ "type": "text", "text": text.into() });
        let mut message = Map::new();
        message.insert("role".into(), "user".into());
        message.insert("parts".into(), json!([part]));
        Self(message)
    }

    /// Adds a file, such as an image.
    #[must_use]
    pub fn file(self, media_type: &str, content: &[u8]) -> Self {
        let url = format!("data:{media_type};base64,{}", STANDARD.encode(content));
        self.part(json!({ "type": "file", "mediaType": media_type, "url": url }))
    }

    /// Adds any part of the AI SDK's `UIMessage`.
    #[must_use]
    pub fn part(mut self, part: Value) -> Self {
        if let Some(Value::Array(parts)) = self.0.get_mut("parts") {
            parts.push(part);
        }
        self
    }

    /// Returns the id of the message. Empty for a message that was not stored yet.
    #[must_use]
    pub fn id(&self) -> &str {
        self.field("id")
    }

    /// Returns the role: `user`, `assistant` or `system`.
    #[must_use]
    pub fn role(&self) -> &str {
        self.field("role")
    }

    /// Returns the parts: texts, reasoning, tool calls, files and data, as the AI SDK has them.
    #[must_use]
    pub fn parts(&self) -> &[Value] {
        let parts = self.0.get("parts").and_then(Value::as_array);
        parts.map_or(&[], Vec::as_slice)
    }

    /// Returns the text of the message: all text parts, joined.
    #[must_use]
    pub fn text(&self) -> String {
        let is_text = |part: &&Value| part["type"] == "text";
        let parts = self.parts().iter().filter(is_text);
        parts.filter_map(|part| part["text"].as_str()).collect()
    }

    /// Returns the message as a `UIMessage` of the AI SDK.
    #[must_use]
    pub fn json(&self) -> &Map<String, Value> {
        &self.0
    }

    fn field(&self, name: &str) -> &str {
        let value = self.0.get(name).and_then(Value::as_str);
        value.unwrap_or_default()
    }

    /// Converts a stored message; `None` unless it is an object.
    pub(super) fn stored(value: Value) -> Option<Self> {
        match value {
            Value::Object(message) => Some(Self(message)),
            _ => None,
        }
    }

    /// Converts the message to a prompt.
    pub(super) fn into_prompt(mut self) -> UserMessage {
        self.0.remove("role");
        let parts = match self.0.remove("parts") {
            Some(Value::Array(parts)) => parts,
            _ => Vec::new(),
        };
        UserMessage {
            parts,
            other: self.0,
        }
    }
}

impl From<&str> for Message {
    fn from(text: &str) -> Self {
        Self::user(text)
    }
}

impl From<String> for Message {
    fn from(text: String) -> Self {
        Self::user(text)
    }
}

impl From<&String> for Message {
    fn from(text: &String) -> Self {
        Self::user(text)
    }
}
