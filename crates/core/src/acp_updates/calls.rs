//! Tool calls that were reported: which of them are open.

use acpipe_model::event::ToolUpdate;
use std::collections::{HashMap, HashSet};

/// A tool call of the turn.
#[derive(Debug)]
pub struct Call {
    pub id: Box<str>,
    pub name: Option<Box<str>>,
    /// Tool call that started the subagent which made this call.
    pub parent: Option<Box<str>>,
    is_open: bool,
}

/// Tool calls of the running turn and of the turn before.
#[derive(Debug, Default)]
pub struct Calls {
    of_turn: Vec<Call>,
    by_id: HashMap<Box<str>, usize>,
    /// Ids of the previous turn, whose calls can change in the background.
    earlier: HashSet<Box<str>>,
}

impl Calls {
    /// Records an update; returns the call, and `true` if the client does not know it.
    pub fn follow(&mut self, update: &ToolUpdate<'_>, parent: Option<&str>) -> (&Call, bool) {
        let id = update.id.as_ref();
        let known = self.by_id.get(id).copied();
        let is_new = known.is_none() && (update.begins || !self.earlier.contains(id));
        let at = known.unwrap_or_else(|| {
            self.by_id.insert(id.into(), self.of_turn.len());
            self.of_turn.push(Call {
                id: id.into(),
                name: None,
                parent: parent.map(Into::into),
                is_open: true,
            });
            self.of_turn.len() - 1
        });
        let call = &mut self.of_turn[at];
        if let Some(name) = update.name.as_deref().filter(|name| !name.is_empty())
            && call.name.as_deref() != Some(name)
        {
            call.name = Some(name.into());
        }
        call.is_open = (call.is_open || update.begins) && !update.ends();
        (call, is_new)
    }

    pub fn close(&mut self, id: &str) {
        if let Some(&at) = self.by_id.get(id) {
            self.of_turn[at].is_open = false;
        }
    }

    pub fn knows(&self, id: &str) -> bool {
        self.by_id.contains_key(id) || self.earlier.contains(id)
    }

    /// Iterates over the calls that have not ended, in the order of their first update.
    pub fn open(&self) -> impl Iterator<Item = &Call> {
        self.of_turn.iter().filter(|call| call.is_open)
    }

    pub fn end_turn(&mut self) {
        let calls = self.of_turn.drain(..);
        self.earlier = calls.map(|call| call.id).collect();
        self.by_id.clear();
    }
}
