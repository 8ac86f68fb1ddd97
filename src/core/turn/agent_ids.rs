//! The agent's ids of the messages, tool calls and subagents of a turn, to recognise late updates.

use crate::core::event::Update;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, HashMap};

/// The agent's ids of a turn's messages, tool calls and subagents.
#[derive(Debug, Default)]
pub struct AgentIds {
    messages: Vec<String>,
    /// Tool call ids, with the index of the tool name in `tools`.
    calls: HashMap<Box<str>, usize>,
    tools: Vec<String>,
    /// Reported information on subagents, from this turn and earlier ones.
    subagents: BTreeMap<String, Map<String, Value>>,
}

/// Maximum number of subagents whose information is kept.
const SUBAGENTS: usize = 256;

impl AgentIds {
    /// Creates the names of tool calls; `calls` maps each id to an index in `tools`.
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

    /// Adds the information on subagents. Earlier subagents are kept as far as there is room.
    #[must_use]
    pub fn with_subagents(
        mut self,
        earlier: &Self,
        infos: impl Iterator<Item = (String, Map<String, Value>)>,
    ) -> Self {
        self.subagents = infos.take(SUBAGENTS).collect();
        for (id, info) in &earlier.subagents {
            if self.subagents.len() < SUBAGENTS {
                self.subagents
                    .entry(id.clone())
                    .or_insert_with(|| info.clone());
            }
        }
        self
    }

    /// Copies the subagents only. A prompt's turn may reuse the tool call ids of the previous turn.
    #[must_use]
    pub fn of_subagents(&self) -> Self {
        Self {
            subagents: self.subagents.clone(),
            ..Self::default()
        }
    }

    /// Returns the reported information on a subagent; empty if there is none.
    #[must_use]
    pub fn subagent(&self, id: &str) -> Map<String, Value> {
        self.subagents.get(id).cloned().unwrap_or_default()
    }

    /// Returns `true` if a message or tool call of the turn had this id.
    #[must_use]
    pub fn knows(&self, id: &str) -> bool {
        self.calls.contains_key(id) || self.messages.iter().any(|known| known == id)
    }

    /// Returns `true` if an update concerns a tool call of the turn. Message ids are not compared, because
    /// some agents use the same ids in every turn.
    #[must_use]
    pub fn concerns_call(&self, update: &Update<'_>) -> bool {
        match update {
            Update::Tool(tool) => !tool.begins && self.calls.contains_key(tool.id.as_ref()),
            _ => false,
        }
    }

    /// Returns the name of the tool that was called with this id.
    #[must_use]
    pub fn tool(&self, id: &str) -> Option<&str> {
        self.tools.get(*self.calls.get(id)?).map(String::as_str)
    }
}
