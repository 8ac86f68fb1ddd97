//! What an agent called the messages and tool calls of a turn: what comes late is told by these names.

use crate::core::event::Update;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, HashMap};

/// The agent's ids of a turn's messages and tool calls.
#[derive(Debug, Default)]
pub struct Names {
    messages: Vec<String>,
    /// Tool calls by their ids, and the names of their tools.
    calls: HashMap<Box<str>, usize>,
    tools: Vec<String>,
    /// What was told of subagents, in this turn or before.
    subagents: BTreeMap<String, Map<String, Value>>,
}

/// Of how many subagents is remembered what was told of them.
const SUBAGENTS: usize = 256;

impl Names {
    /// Tool calls by their ids, as places in the list of their tools' names.
    #[must_use]
    pub fn of_tools(calls: HashMap<Box<str>, usize>, tools: Vec<String>) -> Self {
        Self {
            calls,
            tools,
            ..Self::default()
        }
    }

    /// Adds the ids of messages.
    #[must_use]
    pub fn with_messages(mut self, ids: Vec<String>) -> Self {
        self.messages = ids;
        self
    }

    /// Adds what was told of subagents, to what was known of others before.
    #[must_use]
    pub fn with_subagents(
        mut self,
        earlier: &Self,
        told: impl Iterator<Item = (String, Map<String, Value>)>,
    ) -> Self {
        self.subagents = told.take(SUBAGENTS).collect();
        for (id, info) in &earlier.subagents {
            if self.subagents.len() < SUBAGENTS {
                self.subagents
                    .entry(id.clone())
                    .or_insert_with(|| info.clone());
            }
        }
        self
    }

    /// The names of subagents alone: a prompt's turn may call its tools as the last one did.
    #[must_use]
    pub fn of_subagents(&self) -> Self {
        Self {
            subagents: self.subagents.clone(),
            ..Self::default()
        }
    }

    /// What was told of a subagent.
    #[must_use]
    pub fn subagent(&self, id: &str) -> Map<String, Value> {
        self.subagents.get(id).cloned().unwrap_or_default()
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
