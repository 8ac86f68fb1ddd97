//! What a log holds and where: its messages, its turns, its numbers. Made by reading it once, kept up with
//! what is appended.

use super::record::{Identity, Line};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

/// A place every so many bytes is remembered, to begin reading at.
const MARK_EVERY: u64 = 64 << 10;

/// Numbers beyond are no chunks': JavaScript cannot tell them apart.
const SEQ_MAX: u64 = (1 << 53) - 1;

/// Where things are in a log.
#[derive(Debug, Default)]
pub struct Index {
    pub identity: Option<Identity>,
    pub copies: Copies,
    /// The number of the last chunk.
    pub seq: u64,
    /// When the last record with a time was written.
    pub updated_at: String,
    /// The messages, in order.
    pub messages: Vec<Message>,
    /// How many lines cannot be read.
    pub corrupt: u64,
    corrupt_since_chunk: u64,
    by_id: HashMap<String, usize>,
    turns: HashMap<String, Turn>,
    marks: Vec<Mark>,
}

/// The lines that say who the session is.
#[derive(Debug, Default)]
pub struct Copies {
    /// How many of them can be read.
    pub count: u32,
    /// Where the last of them ends.
    pub end: u64,
    /// Who the session is by the one before the last.
    pub before: Option<Identity>,
    /// Whether a line after the last of them cannot be read, or not be understood: it may have been one.
    pub may_be_newer: bool,
}

/// A place at which the chunk of this number, or a later one, is the next.
#[derive(Debug, Clone, Copy)]
struct Mark {
    seq: u64,
    at: u64,
}

/// A message and where it is.
#[derive(Debug, Clone)]
pub struct Message {
    pub id: String,
    pub source: Source,
}

/// Where a message is.
#[derive(Debug, Clone)]
pub enum Source {
    /// In one line, whole.
    Line(Range<u64>),
    /// In the chunks of this turn, from this place on.
    Chunks { turn: String, begin: u64 },
}

/// A turn and where it is.
#[derive(Debug, Clone, Default)]
pub struct Turn {
    /// Its first line.
    pub begin: u64,
    /// Whether its last chunk is there.
    pub over: bool,
    /// The line with its summary.
    pub summary: Option<Range<u64>>,
    /// Whether it was prompted.
    pub prompted: bool,
}

/// What a chunk is to the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part<'a> {
    /// It begins the message of this id.
    Begin(&'a str),
    /// It is the last of its message.
    End,
    Middle,
}

impl Index {
    /// Takes a line that was read; one that cannot be used is counted.
    pub fn line(&mut self, text: &[u8], at: Range<u64>) {
        let line = std::str::from_utf8(text).ok();
        let line = line.and_then(|text| Some((text, serde_json::from_str::<Line<'_>>(text).ok()?)));
        let used = line.is_some_and(|(text, line)| self.record(text, &line, &at));
        if !used {
            self.corrupt += 1;
            self.corrupt_since_chunk += 1;
            self.copies.may_be_newer = true;
        }
    }

    /// All was read: chunks that cannot be read any more have had numbers too.
    pub fn read_all(&mut self) {
        self.seq += std::mem::take(&mut self.corrupt_since_chunk);
    }

    fn record(&mut self, text: &str, line: &Line<'_>, at: &Range<u64>) -> bool {
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
                let Some(id) = line.message.and_then(message_id) else {
                    return false;
                };
                self.prompt(turn, &id, at);
            }
            ("end", Some(turn)) => self.end(turn, at),
            ("message", _) => {
                let Some(id) = line.message.and_then(message_id) else {
                    return false;
                };
                self.message(&id, at);
            }
            ("prompt" | "end", None) => return false,
            // Those that lists of messages do not show.
            ("decision" | "recovery", _) => {}
            // Records of a later version.
            _ => self.copies.may_be_newer = true,
        }
        true
    }

    /// A line that says who the session is is in the log.
    pub fn identified(&mut self, identity: Identity, at: &Range<u64>) {
        self.copies = Copies {
            count: self.copies.count.saturating_add(1),
            end: at.end,
            before: self.identity.replace(identity),
            may_be_newer: false,
        };
    }

    /// A chunk is in the log.
    pub fn chunk(&mut self, seq: u64, turn: Option<&str>, part: Part<'_>, at: &Range<u64>) {
        self.seq = self.seq.max(seq);
        self.corrupt_since_chunk = 0;
        let last = self.marks.last().map_or(0, |mark| mark.at + MARK_EVERY);
        if self.marks.is_empty() || at.start >= last {
            self.marks.push(Mark { seq, at: at.start });
        }
        let Some(turn) = turn else { return };
        match part {
            Part::Middle => {}
            Part::Begin(message) => {
                let begin = at.start;
                let known = self.turns.entry(turn.to_owned()).or_default();
                if !known.prompted {
                    known.begin = begin;
                }
                known.over = false;
                let turn = turn.to_owned();
                self.put(message, Source::Chunks { turn, begin });
            }
            Part::End => {
                if let Some(known) = self.turns.get_mut(turn) {
                    known.over = true;
                }
            }
        }
    }

    /// A prompt is in the log.
    pub fn prompt(&mut self, turn: &str, message: &str, at: &Range<u64>) {
        let begun = Turn {
            begin: at.start,
            prompted: true,
            ..Turn::default()
        };
        self.turns.insert(turn.to_owned(), begun);
        self.put(message, Source::Line(at.clone()));
    }

    /// A summary is in the log.
    pub fn end(&mut self, turn: &str, at: &Range<u64>) {
        let known = self.turns.entry(turn.to_owned()).or_default();
        known.over = true;
        known.summary = Some(at.clone());
    }

    /// A message is in the log that is of no turn.
    pub fn message(&mut self, id: &str, at: &Range<u64>) {
        self.put(id, Source::Line(at.clone()));
    }

    /// A message that is there keeps its place.
    fn put(&mut self, id: &str, source: Source) {
        if let Some(&place) = self.by_id.get(id) {
            self.messages[place].source = source;
            return;
        }
        self.by_id.insert(id.to_owned(), self.messages.len());
        let id = id.to_owned();
        self.messages.push(Message { id, source });
    }

    /// The place of a message in their order.
    #[must_use]
    pub fn position(&self, id: &str) -> Option<usize> {
        self.by_id.get(id).copied()
    }

    #[must_use]
    pub fn turn(&self, id: &str) -> Option<&Turn> {
        self.turns.get(id)
    }

    /// The turns that began and did not end, in the order of their ids.
    #[must_use]
    pub fn open_turns(&self) -> Vec<String> {
        let open = self.turns.iter().filter(|(_, turn)| !turn.over);
        let mut ids: Vec<String> = open.map(|(id, _)| id.clone()).collect();
        ids.sort_unstable();
        ids
    }

    /// Where to begin reading for chunks after this number.
    #[must_use]
    pub fn place_after(&self, seq: u64) -> u64 {
        let later = self
            .marks
            .partition_point(|mark| mark.seq <= seq.saturating_add(1));
        later.checked_sub(1).map_or(0, |mark| self.marks[mark].at)
    }

    /// What was before this place is no more.
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

/// What the index needs of a stored chunk.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Head<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    message_id: Option<&'a RawValue>,
}

impl<'a> Head<'a> {
    fn part(&self) -> Part<'a> {
        match (self.kind.as_ref(), self.message_id) {
            // Message ids are acpipe's own: nothing in them is escaped.
            ("start", Some(id)) => Part::Begin(id.get().trim_matches('"')),
            ("finish" | "abort" | "error", _) => Part::End,
            _ => Part::Middle,
        }
    }
}

/// The id of a stored message.
fn message_id(message: &RawValue) -> Option<String> {
    #[derive(Deserialize)]
    struct Identified {
        id: String,
    }
    let identified: Identified = serde_json::from_str(message.get()).ok()?;
    Some(identified.id)
}
