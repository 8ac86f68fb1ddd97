//! What an agent called the messages and tool calls of a turn: what comes late is told by these names.

use crate::core::event::Update;
use std::collections::HashMap;

/// The agent's ids of a turn's messages and tool calls.
#[derive(Debug, Default)]
pub struct Names {
    messages: Vec<String>,
    /// Tool calls by their ids, and the names of their tools.
    calls: HashMap<Box<str>, usize>,
    tools: Vec<String>,
}

impl Names {
    /// Tool calls by their ids, as places in the list of their tools' names.
    #[must_use]
    pub fn of_tools(calls: HashMap<Box<str>, usize>, tools: Vec<String>) -> Self {
        Self {
            messages: Vec::new(),
            calls,
            tools,
        }
    }

    /// Adds the ids of messages.
    #[must_use]
    pub fn with_messages(mut self, ids: Vec<String>) -> Self {
        self.messages = ids;
        self
    }

    /// Whether something of the turn had this id.
    #[must_use]
    pub fn knows(&self, id: &str) -> bool {
        self.calls.contains_key(id) || self.messages.iter().any(|known| known == id)
    }

    /// Whether an update is about a tool call of the turn. By messages' ids nothing can be told: some agents
    /// use the same in every turn.
    #[must_use]
    pub fn are_meant(&self, update: &Update<'_>) -> bool {
        match update {
            Update::Tool(tool) => !tool.begins && self.calls.contains_key(tool.id.as_ref()),
            _ => false,
        }
    }

    /// The name of the tool that was called with this id.
    #[must_use]
    pub fn tool(&self, id: &str) -> Option<&str> {
        self.tools.get(*self.calls.get(id)?).map(String::as_str)
    }
}
