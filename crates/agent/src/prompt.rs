//! Prompt of a turn.

use super::content::File;
use super::error::{AgentError, FailureKind};
use serde_json::Value;

/// Prompt of a turn: its text and files, in the order in which the user wrote them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Prompt {
    parts: Vec<PromptPart>,
}

/// Part of a [`Prompt`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PromptPart {
    /// Text.
    Text(String),
    /// An attached file.
    File(File),
}

impl Prompt {
    /// Returns the text of the prompt: the text of all parts, joined by newlines.
    #[must_use]
    pub fn text(&self) -> String {
        let texts = self.parts.iter().filter_map(|part| match part {
            PromptPart::Text(text) => Some(text.as_str()),
            PromptPart::File(_) => None,
        });
        texts.collect::<Vec<_>>().join("\n")
    }

    /// Iterates over the attached files.
    pub fn files(&self) -> impl Iterator<Item = &File> {
        self.parts.iter().filter_map(|part| match part {
            PromptPart::File(file) => Some(file),
            PromptPart::Text(_) => None,
        })
    }

    /// Returns all parts in order.
    #[must_use]
    pub fn parts(&self) -> &[PromptPart] {
        &self.parts
    }

    /// Parses the content blocks of `session/prompt`.
    pub(super) fn of_blocks(blocks: &Value) -> Result<Self, AgentError> {
        let invalid = |field: &str, why: &str| {
            AgentError::new(FailureKind::InvalidParams, format!("`{field}` {why}"))
        };
        let Some(blocks) = blocks.as_array() else {
            return Err(invalid("prompt", "must be a list of content blocks"));
        };
        let mut parts = Vec::with_capacity(blocks.len());
        for (index, block) in blocks.iter().enumerate() {
            let part = match (block["type"].as_str(), block["text"].as_str()) {
                (Some("text"), Some(text)) => Some(PromptPart::Text(text.to_owned())),
                _ => File::of_block(block).map(PromptPart::File),
            };
            let field = format!("prompt[{index}]");
            parts.push(part.ok_or_else(|| invalid(&field, "is not a valid content block"))?);
        }
        Ok(Self { parts })
    }
}

impl From<&str> for Prompt {
    fn from(text: &str) -> Self {
        let parts = vec![PromptPart::Text(text.to_owned())];
        Self { parts }
    }
}
