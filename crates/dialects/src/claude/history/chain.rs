//! Selection of the records of a file that belong to the history: those that lead to the last one.
//!
//! Every record names its predecessor. A rewind continues from an earlier record and abandons a branch. Tools
//! that ran in parallel create a branch, too, but that one belongs to the history.

use super::{History, Id, id};
use acpipe_json::repair::Faults;
use acpipe_json::{non_null, raw_object, text};
use acpipe_model::line_repair::{LostLine, UnusableLine, count_repaired};
use acpipe_protocol::claude::{Block, Message, is_true, word};
use acpipe_protocol::wire::LineFaults;
use serde_json::value::RawValue;
use std::collections::{HashMap, HashSet};
use tracing::warn;

raw_object! {
    /// Fields that link a record to others.
    struct Link {
        uuid = "uuid",
        parent = "parentUuid",
        logical_parent = "logicalParentUuid",
        sidechain = "isSidechain",
        team = "teamName",
        kind = "type",
        message = "message",
    }
}

/// First pass over a file, which stores a few numbers of each record.
#[derive(Debug, Default)]
pub struct Chain {
    links: Vec<Node>,
    /// Positions of records in `links`, by id.
    places: HashMap<Id, usize>,
    faults: LineFaults,
}

/// Record of the main thread.
#[derive(Debug)]
struct Node {
    id: Id,
    parent: Option<Id>,
    kind: RecordKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RecordKind {
    /// Part of the model's message with this id.
    Answer(Id),
    /// Result of a tool.
    Result,
    /// Progress report, which other records may follow but which is no end of the history.
    Progress,
    Other,
}

impl Chain {
    /// Reads the next line.
    ///
    /// # Errors
    /// The line is not a record.
    pub fn line(&mut self, line: &str) -> Result<(), UnusableLine> {
        if line.trim().is_empty() {
            self.faults.blank += 1;
            return Ok(());
        }
        let links: Link<'_> = serde_json::from_str(line).map_err(|_| UnusableLine)?;
        let Some(uuid) = text(links.uuid) else {
            return Ok(());
        };
        // Subagents and teammates have their own threads.
        if is_true(links.sidechain) || non_null(links.team).is_some() {
            return Ok(());
        }
        let parent = text(links.parent).or_else(|| text(links.logical_parent));
        let node = Node {
            id: id(&uuid),
            parent: parent.map(|parent| id(&parent)),
            kind: kind(&links),
        };
        self.places.insert(node.id, self.links.len());
        self.links.push(node);
        Ok(())
    }

    pub fn count_repaired(&mut self, faults: Faults) {
        count_repaired(faults, &mut self.faults);
    }

    pub fn count_lost(&mut self, line: &LostLine<'_>) {
        line.count(&mut self.faults);
    }

    /// Returns the records that belong to the history, for the second pass.
    #[must_use]
    pub fn finish(self) -> History {
        if self.faults != LineFaults::default() {
            warn!(faults = ?self.faults, "repaired or skipped unreadable lines of a session's file");
        }
        let mut live = self.branch();
        let answers = |live: &HashSet<Id>| -> HashSet<Id> {
            let counting = self.links.iter().filter(|node| live.contains(&node.id));
            let messages = counting.filter_map(|node| match node.kind {
                RecordKind::Answer(message) => Some(message),
                _ => None,
            });
            messages.collect()
        };
        // The calls of a message follow each other, and each result follows its call: only one of them is in
        // the branch.
        let messages = answers(&live);
        for node in &self.links {
            let of_message = matches!(node.kind, RecordKind::Answer(id) if messages.contains(&id));
            let of_call = node.kind == RecordKind::Result
                && node.parent.is_some_and(|parent| {
                    let call = self.places.get(&parent).map(|at| self.links[*at].kind);
                    matches!(call, Some(RecordKind::Answer(id)) if messages.contains(&id))
                });
            if of_message || of_call {
                live.insert(node.id);
            }
        }
        History::of(live, self.faults)
    }

    /// Returns the last record and all that lead to it.
    fn branch(&self) -> HashSet<Id> {
        let mut live = HashSet::new();
        let counts = |node: &Node| node.kind != RecordKind::Progress;
        let mut at = self.links.iter().rposition(counts);
        while let Some(node) = at.map(|at| &self.links[at]) {
            if !live.insert(node.id) {
                break;
            }
            at = node.parent.and_then(|parent| {
                // If the predecessor is missing, the order in the file is the best guess.
                let missing = || self.places.get(&node.id)?.checked_sub(1);
                self.places.get(&parent).copied().or_else(missing)
            });
        }
        live
    }
}

fn kind(link: &Link<'_>) -> RecordKind {
    let message = || -> Option<Message<'_>> { serde_json::from_str(link.message?.get()).ok() };
    match word(link.kind) {
        "assistant" => message()
            .and_then(|message| text(message.id))
            .map_or(RecordKind::Other, |of| RecordKind::Answer(id(&of))),
        "user" => {
            let content = message().and_then(|message| message.content);
            let results = content.is_some_and(has_results);
            if results {
                RecordKind::Result
            } else {
                RecordKind::Other
            }
        }
        "progress" => RecordKind::Progress,
        _ => RecordKind::Other,
    }
}

pub fn has_results(content: &RawValue) -> bool {
    let blocks: Vec<Block<'_>> = serde_json::from_str(content.get()).unwrap_or_default();
    blocks.iter().any(|block| word(block.kind) == "tool_result")
}
