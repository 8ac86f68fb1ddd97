//! The agent's ids of the messages, tool calls and subagents of a turn, to recognise late updates.

use super::call_ids::hash;
use super::tools::Judgement;
use acpipe_model::event::{ToolUpdate, Update};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// The agent's ids of a turn's messages, tool calls and subagents.
#[derive(Debug, Default)]
pub struct AgentIds {
    messages: Vec<String>,
    /// Tool call ids, with the index in `tools`.
    calls: HashMap<Box<str>, usize>,
    tools: Vec<EndedCall>,
    /// Calls whose end was not reported although there was a decision on them: of this turn, of its subagents, and of
    /// earlier turns.
    decided: Arc<DecidedCalls>,
    /// Reported information on subagents, from this turn and earlier ones.
    subagents: BTreeMap<String, Map<String, Value>>,
}

/// Decided calls without an end, oldest first.
type DecidedCalls = Vec<(Box<str>, EndedCall)>;

/// Maximum number of decided calls without an end that are kept. Older ones count as not asked about.
const MAX_DECIDED: usize = 256;

/// Record of a call of an ended turn.
#[derive(Debug, Clone)]
pub struct EndedCall {
    pub name: String,
    /// `true` if the agent requested permission for it, or it was judged otherwise.
    pub asked: bool,
    /// `true` if it was found to have run without permission.
    pub noted: bool,
    /// Facts by which it was judged.
    pub facts: CallFacts,
    /// Judgement of a call for which there was a request.
    pub judgement: Option<Box<Judgement>>,
    /// `true` if the agent reported its end.
    pub has_ended: bool,
}

impl EndedCall {
    /// Returns `true` if a run of the call needs no judgement as long as nothing of it changes.
    pub fn is_settled(&self) -> bool {
        let judgement = self.judgement.as_deref();
        self.noted || judgement.is_some_and(Judgement::is_approved)
    }
}

/// Hashes of what a call is judged by: name, title, kind and input, as far as they are known.
#[derive(Debug, Clone, Copy, Default)]
pub struct CallFacts([Option<u64>; 4]);

impl CallFacts {
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

    /// Adds the decided calls without an end: those of earlier turns and of the subagents, and its own.
    #[must_use]
    pub fn with_decided(mut self, earlier: &Self, subagents: impl Iterator<Item = Self>) -> Self {
        let is_decided = |call: &EndedCall| call.asked && !call.has_ended;
        let of = |ids: &Self| {
            if !ids.tools.iter().any(is_decided) {
                return DecidedCalls::new();
            }
            let calls = ids.calls.iter().map(|(id, at)| (id, &ids.tools[*at]));
            let calls = calls.filter(|(_, call)| is_decided(call));
            let calls = calls.map(|(id, call)| (id.clone(), call.clone()));
            calls.collect::<DecidedCalls>()
        };
        let subagents: Vec<Self> = subagents.collect();
        let is_later = |id: &str| {
            std::iter::once(&self)
                .chain(&subagents)
                .any(|ids| ids.calls.contains_key(id))
        };
        let earlier = earlier.decided.iter().filter(|(id, _)| !is_later(id));
        let mut decided: DecidedCalls = earlier.cloned().collect();
        decided.extend(subagents.iter().flat_map(of));
        decided.extend(of(&self));
        decided.drain(..decided.len().saturating_sub(MAX_DECIDED));
        self.decided = Arc::new(decided);
        self
    }

    /// Returns the ids for the turn of a prompt: the agent may use those of its last turn again.
    #[must_use]
    pub fn for_prompt(&self) -> Self {
        Self {
            subagents: self.subagents.clone(),
            ..self.for_subagent()
        }
    }

    #[must_use]
    pub fn for_subagent(&self) -> Self {
        Self {
            decided: Arc::clone(&self.decided),
            ..Self::default()
        }
    }

    /// Returns the reported information on a subagent; empty if there is none.
    pub fn subagent(&self, id: &str) -> Map<String, Value> {
        self.subagents.get(id).cloned().unwrap_or_default()
    }

    /// Returns `true` if a message or tool call of the turn had this id.
    pub fn knows(&self, id: &str) -> bool {
        self.calls.contains_key(id) || self.messages.iter().any(|known| known == id)
    }

    /// Returns `true` if an update concerns a tool call of the turn. Message ids are not compared, because
    /// some agents use the same ids in every turn.
    pub fn concerns_call(&self, update: &Update<'_>) -> bool {
        match update {
            Update::Tool(tool) => !tool.begins && self.calls.contains_key(tool.id.as_ref()),
            _ => false,
        }
    }

    pub fn call(&self, id: &str) -> Option<&EndedCall> {
        let decided = || {
            let mut decided = self.decided.iter();
            decided.find_map(|(known, call)| (**known == *id).then_some(call))
        };
        let own = self.calls.get(id).and_then(|at| self.tools.get(*at));
        own.or_else(decided)
    }

    pub fn tool(&self, id: &str) -> Option<&str> {
        let call = self.tools.get(*self.calls.get(id)?);
        call.map(|call| call.name.as_str())
    }
}
