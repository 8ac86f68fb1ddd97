//! What an agent called the messages and tool calls of a turn: what comes late is told by these names.

use std::collections::{HashMap, HashSet};

/// The agent's ids of a turn's messages and tool calls.
#[derive(Debug, Default, Clone)]
pub struct Names {
    messages: HashSet<String>,
    /// Tool calls by their ids, with the names of their tools.
    tools: HashMap<String, String>,
}

impl Names {
    /// Names tool calls: id and name of the tool.
    pub fn of_tools(tools: impl Iterator<Item = (String, String)>) -> Self {
        Self {
            messages: HashSet::new(),
            tools: tools.collect(),
        }
    }

    /// Adds the ids of messages.
    pub fn add_messages(&mut self, ids: Vec<String>) {
        self.messages.extend(ids);
    }

    /// Whether something of the turn had this id.
    #[must_use]
    pub fn knows(&self, id: &str) -> bool {
        self.messages.contains(id) || self.tools.contains_key(id)
    }

    /// The name of the tool that was called with this id.
    #[must_use]
    pub fn tool(&self, id: &str) -> Option<&str> {
        self.tools.get(id).map(String::as_str)
    }
}
