//! Index of a log: positions of its messages, turns and chunk numbers, built by reading the file once and
//! updated with each append.

mod encoding;

use super::record::{Identity, LogLine};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

/// Bytes of log between two remembered reading positions.
const MARK_EVERY: u64 = 64 << 10;

/// Largest valid chunk number: JavaScript cannot represent larger integers exactly.
const SEQ_MAX: u64 = (1 << 53) - 1;

/// Positions of everything in a log.
#[derive(Debug, Default)]
pub struct Index {
    pub identity: Option<Identity>,
    pub copies: IdentityCopies,
    /// Number of the last chunk.
    pub seq: u64,
    /// Time of the last record that has one.
    pub updated_at: String,
    pub messages: Vec<Message>,
    /// Number of lines that cannot be read.
    pub corrupt: u64,
    corrupt_since_chunk: u64,
    by_id: HashMap<String, usize>,
    turns: HashMap<String, IndexedTurn>,
    marks: Vec<Mark>,
}

/// Copies of the session's identity in the log.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct IdentityCopies {
    /// Number of readable copies; 0 if the identity differs from the last one.
    pub count: u32,
    /// Range of the line with the last copy.
    pub last: Option<Range<u64>>,
    /// Range of the line with the copy before the last one.
    pub before: Option<Range<u64>>,
    /// `true` if a line after the last copy cannot be read or understood: it may have been a newer copy.
    pub may_be_newer: bool,
}

/// Offset from which a reader finds the chunk of this number, or a later one, next.
#[derive(Debug, Clone, Copy)]
struct Mark {
    seq: u64,
    at: u64,
}

/// A message and its position.
#[derive(Debug, Clone)]
pub struct Message {
    pub id: String,
    pub source: Source,
}

/// Position of a message.
#[derive(Debug, Clone)]
pub enum Source {
    /// One line with the whole message.
    Line(Range<u64>),
    /// The chunks of this turn, from this offset on.
    Chunks { turn: String, begin: u64 },
}

/// A turn and its position.
#[derive(Debug, Clone, Default)]
pub struct IndexedTurn {
    /// Offset of its first line.
    pub begin: u64,
    /// `true` if its last chunk is in the log.
    pub over: bool,
    /// Range of the line with its summary.
    pub summary: Option<Range<u64>>,
    /// `true` if the log has its prompt.
    pub prompted: bool,
    /// Range from its first ACP update to its last one.
    pub updates: Option<Range<u64>>,
}

/// Role of a chunk in its message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChunkRole<'a> {
    /// First chunk of the message with this id.
    Begin(&'a str),
    /// Last chunk of its message.
    End,
    Middle,
}

impl Index {
    /// Indexes a line of the file; a line that cannot be used is counted as corrupt.
    pub fn line(&mut self, text: &[u8], at: Range<u64>) {
        let line = std::str::from_utf8(text).ok();
        let line =
            line.and_then(|text| Some((text, serde_json::from_str::<LogLine<'_>>(text).ok()?)));
        let used = line.is_some_and(|(text, line)| self.record(text, &line, &at));
        if !used {
            self.corrupt += 1;
            self.corrupt_since_chunk += 1;
            self.copies.may_be_newer = true;
        }
    }

    /// Finishes reading: chunks at the end that cannot be read have used up numbers, too.
    pub fn read_all(&mut self) {
        self.seq += std::mem::take(&mut self.corrupt_since_chunk);
    }

    fn record(&mut self, text: &str, line: &LogLine<'_>, at: &Range<u64>) -> bool {
        if let Some(time) = &line.at {
            time.as_ref().clone_into(&mut self.updated_at);
        }
        if line.seq.is_some_and(|seq| seq > SEQ_MAX) {
            return false;
        }
        match (line.record.as_ref(), line.turn_id.as_deref()) {
            ("chunk", turn) => {
                let (Some(seq), Some(chunk)) = (line.seq, line.chunk) else {
                    return false;
                };
                let Ok(head) = serde_json::from_str::<Head<'_>>(chunk.get()) else {
                    return false;
                };
                self.chunk(seq, turn, head.part(), at);
            }
            ("session", _) => {
                let Ok(identity) = serde_json::from_str::<Identity>(text) else {
                    return false;
                };
                self.seq = self.seq.max(identity.seq);
                self.identified(identity, at);
            }
            ("prompt", Some(turn)) => {
                let Some(id) = line
                    .message
                    .and_then(|message| message_id(message.get().as_bytes()))
                else {
                    return false;
                };
                self.prompt(turn, &id, at);
            }
            ("end", Some(turn)) => self.end(turn, at),
            ("message", _) => {
                let Some(id) = line
                    .message
                    .and_then(|message| message_id(message.get().as_bytes()))
                else {
                    return false;
                };
                self.message(&id, at);
            }
            ("prompt" | "end", None) => return false,
            ("update", Some(turn)) => self.update(turn, at),
            // Records that are not in lists of messages.
            ("decision" | "recovery" | "update", _) => {}
            // Records of a later version.
            _ => self.copies.may_be_newer = true,
        }
        true
    }

    pub fn identified(&mut self, identity: Identity, at: &Range<u64>) {
        self.identity = Some(identity);
        self.copies = IdentityCopies {
            count: self.copies.count.saturating_add(1),
            last: Some(at.clone()),
            before: self.copies.last.take(),
            may_be_newer: false,
        };
    }

    pub fn chunk(&mut self, seq: u64, turn: Option<&str>, part: ChunkRole<'_>, at: &Range<u64>) {
        self.seq = self.seq.max(seq);
        self.corrupt_since_chunk = 0;
        let last = self.marks.last().map_or(0, |mark| mark.at + MARK_EVERY);
        if self.marks.is_empty() || at.start >= last {
            self.marks.push(Mark { seq, at: at.start });
        }
        let Some(turn) = turn else { return };
        match part {
            ChunkRole::Middle => {}
            ChunkRole::Begin(message) => {
                let begin = at.start;
                let known = self.turns.entry(turn.to_owned()).or_default();
                if !known.prompted {
                    known.begin = begin;
                }
                known.over = false;
                let turn = turn.to_owned();
                self.put(message, Source::Chunks { turn, begin });
            }
            ChunkRole::End => {
                if let Some(known) = self.turns.get_mut(turn) {
                    known.over = true;
                }
            }
        }
    }

    /// Indexes an ACP update of a turn.
    pub fn update(&mut self, turn: &str, at: &Range<u64>) {
        if let Some(turn) = self.turns.get_mut(turn) {
            match &mut turn.updates {
                Some(updates) => updates.end = at.end,
                None => turn.updates = Some(at.clone()),
            }
        }
    }

    pub fn prompt(&mut self, turn: &str, message: &str, at: &Range<u64>) {
        let begun = IndexedTurn {
            begin: at.start,
            prompted: true,
            ..IndexedTurn::default()
        };
        self.turns.insert(turn.to_owned(), begun);
        self.put(message, Source::Line(at.clone()));
    }

    /// Indexes a summary.
    pub fn end(&mut self, turn: &str, at: &Range<u64>) {
        let known = self.turns.entry(turn.to_owned()).or_default();
        known.over = true;
        known.summary = Some(at.clone());
    }

    /// Indexes a message that belongs to no turn.
    pub fn message(&mut self, id: &str, at: &Range<u64>) {
        self.put(id, Source::Line(at.clone()));
    }

    /// Adds a message; an existing message of that id keeps its position in the order.
    fn put(&mut self, id: &str, source: Source) {
        if let Some(&place) = self.by_id.get(id) {
            self.messages[place].source = source;
            return;
        }
        self.by_id.insert(id.to_owned(), self.messages.len());
        let id = id.to_owned();
        self.messages.push(Message { id, source });
    }

    pub fn position(&self, id: &str) -> Option<usize> {
        self.by_id.get(id).copied()
    }

    pub fn turn(&self, id: &str) -> Option<&IndexedTurn> {
        self.turns.get(id)
    }

    /// Returns the ids of the turns that began and did not end, sorted.
    pub fn open_turns(&self) -> Vec<String> {
        let open = self.turns.iter().filter(|(_, turn)| !turn.over);
        let mut ids: Vec<String> = open.map(|(id, _)| id.clone()).collect();
        ids.sort_unstable();
        ids
    }

    /// Returns the offset at which to start reading for chunks after this number.
    pub fn place_after(&self, seq: u64) -> u64 {
        let later = self
            .marks
            .partition_point(|mark| mark.seq <= seq.saturating_add(1));
        later.checked_sub(1).map_or(0, |mark| self.marks[mark].at)
    }

    /// Removes everything before this offset, which the file no longer has.
    pub fn forget_before(&mut self, place: u64) {
        self.marks.retain(|mark| mark.at >= place);
        self.turns
            .retain(|_, turn| turn.begin >= place || !turn.over);
        self.messages.retain(|message| match &message.source {
            Source::Line(at) => at.start >= place,
            Source::Chunks { begin, .. } => *begin >= place,
        });
        let ids = self.messages.iter().enumerate();
        self.by_id = ids.map(|(n, message)| (message.id.clone(), n)).collect();
    }
}

/// Fields of a stored chunk that the index needs.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Head<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    message_id: Option<&'a RawValue>,
}

impl<'a> Head<'a> {
    fn part(&self) -> ChunkRole<'a> {
        match (self.kind.as_ref(), self.message_id) {
            // Message ids are generated by acpipe and contain nothing that JSON escapes.
            ("start", Some(id)) => ChunkRole::Begin(id.get().trim_matches('"')),
            ("finish" | "abort" | "error", _) => ChunkRole::End,
            _ => ChunkRole::Middle,
        }
    }
}

pub fn message_id(message: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct Identified {
        id: String,
    }
    let identified: Identified = serde_json::from_slice(message).ok()?;
    Some(identified.id)
}
