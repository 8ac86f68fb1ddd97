//! Options of agents that are not processes with a conversation: commands that answer one prompt, and HTTP
//! endpoints.

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// Options of an agent that is not a process with a conversation. Each protocol uses only some of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackendOptions {
    pub history: HistoryLimit,
    pub input: CommandInput,
    pub output: CommandOutput,
    /// Path of the text in a JSON answer: keys and numbers of array elements, joined by dots. Default: `text`.
    pub answer: Option<String>,
    pub api_key_env: Option<String>,
    pub headers: Headers,
    pub stream: bool,
}

impl Default for BackendOptions {
    fn default() -> Self {
        Self {
            history: HistoryLimit::default(),
            input: CommandInput::default(),
            output: CommandOutput::default(),
            answer: None,
            api_key_env: None,
            headers: Headers::default(),
            stream: true,
        }
    }
}

/// Headers by name. Values may contain `${NAME}` for a variable; they are not printed, since they may be
/// secrets.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Headers(pub BTreeMap<String, String>);

impl fmt::Debug for Headers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.keys()).finish()
    }
}

/// Limit on the earlier messages that an agent receives with a prompt. The newest messages are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HistoryLimit {
    pub messages: usize,
    /// Maximum number of tokens, estimated as four bytes of JSON for each.
    pub tokens: usize,
}

impl Default for HistoryLimit {
    fn default() -> Self {
        Self {
            messages: 100,
            tokens: 64_000,
        }
    }
}

/// How a command receives the prompt.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum CommandInput {
    /// As text: in place of `{prompt}` in the arguments, or on stdin if no argument contains it.
    #[default]
    Text,
    /// As one line of JSON on stdin: the message, the messages before it, and the session.
    Json,
}

/// How a command writes its answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum CommandOutput {
    /// As text, which is shown line by line.
    #[default]
    Text,
    /// As one JSON value that contains the text.
    Json,
    /// As lines of JSON that contain pieces of the text.
    JsonLines,
}
