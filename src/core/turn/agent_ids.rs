//! The agent's ids of the messages, tool calls and subagents of a turn, to recognise late updates.

use super::call_ids::hash;
use super::tools::Judgement;
use crate::core::event::{ToolUpdate, Update};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, HashMap};

/// The agent's ids of a turn's messages, tool calls and subagents.
#[derive(Debug, Default)]
pub struct AgentIds {
    messages: Vec<String>,
    /// Tool call ids, with the index in `tools`.
    calls: HashMap<Box<str>, usize>,
    tools: Vec<EndedCall>,
    /// Reported information on subagents, from this turn and earlier ones.
    subagents: BTreeMap<String, Map<String, Value>>,
}

/// Record of a call of an ended turn.
#[derive(Debug)]
pub struct EndedCall {
    /// Name of the tool.
    pub name: String,
    /// `true` if the agent requested permission for it, or it was judged otherwise.
    pub asked: bool,
    /// `true` if it was found to have run without permission.
    pub noted: bool,
    /// Facts by which it was judged.
    pub facts: CallFacts,
    /// Judgement of a call for which there was a request.
    pub judgement: Option<Box<Judgement>>,
}

/// Hashes of what a call is judged by: name, title, kind and input, as far as they are known.
#[derive(Debug, Clone, Copy, Default)]
pub struct CallFacts([Option<u64>; 4]);

impl CallFacts {
    /// Creates the facts of a call.
    #[must_use]
    pub fn new(facts: [Option<&str>; 4]) -> Self {
        Self(facts.map(|fact| fact.map(hash)))
    }

    /// Adds earlier facts where none are known.
    #[must_use]
    pub fn or(self, earlier: Self) -> Self {
        let mut both = self.0;
        for (fact, earlier) in both.iter_mut().zip(earlier.0) {
            *fact = fact.or(earlier);
        }
        Self(both)
    }

    /// Returns `true` if an update reports a fact that is not known.
    #[must_use]
    pub fn are_changed_by(self, update: &ToolUpdate<'_>) -> bool {
        let said = Self::new([
            update.name.as_deref(),
            update.title.as_deref(),
            update.kind.as_deref(),
            update.input.as_deref().map(RawValue::get),
        ]);
        let mut both = said.0.into_iter().zip(self.0);
        both.any(|(said, known)| said.is_some() && said != known)
    }
}

/// Maximum number of subagents whose information is kept.
const SUBAGENTS: usize = 256;

impl AgentIds {
    /// Creates the ids of tool calls; `calls` maps each id to an index in `tools`.
    #[must_use]
    pub fn of_tools(calls: HashMap<Box<str>, usize>, tools: Vec<EndedCall>) -> Self {
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

    /// Returns the call with this id.
    #[must_use]
    pub fn call(&self, id: &str) -> Option<&EndedCall> {
        self.tools.get(*self.calls.get(id)?)
    }

    /// Returns the name of the tool that was called with this id.
    #[must_use]
    pub fn tool(&self, id: &str) -> Option<&str> {
        self.call(id).map(|call| call.name.as_str())
    }
}
