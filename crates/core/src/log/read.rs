//! Reading of a log: pages of chunks, messages and turns.

use super::index::{Message, Source};
use super::record::{LogLine, chunk_prefix};
use super::{Log, TurnState, storage_error};
use crate::fold::Fold;
use crate::profile::Profile;
use acpipe_json::{shallow_stored, string_len, value};
use acpipe_model::error::Error;
use acpipe_protocol::wire::LedgerEntry;
use memchr::memmem::Finder;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// Maximum size of a page, in bytes of the log; the first entry may exceed it.
pub const PAGE_BYTES: usize = 1 << 20;

#[derive(Debug, Clone)]
pub struct StoredChunk {
    pub seq: u64,
    /// Turn of the chunk; `None` if it belongs to no turn.
    pub turn_id: Option<String>,
    pub chunk: Box<RawValue>,
}

impl StoredChunk {
    /// Returns `true` for the last chunk of a message.
    fn is_last(&self) -> bool {
        let chunk = self.chunk.get();
        let kinds = [
            r#"{"type":"finish""#,
            r#"{"type":"abort""#,
            r#"{"type":"error""#,
        ];
        kinds.iter().any(|kind| chunk.starts_with(kind))
    }
}

/// Consecutive chunks of a log.
#[derive(Debug, Default)]
pub struct Page {
    /// The chunks, in ascending order of their numbers.
    pub chunks: Vec<StoredChunk>,
    pub more: bool,
}

impl Page {
    /// Removes the chunks after `last`, which clients may not receive yet.
    #[must_use]
    pub fn until(mut self, last: u64) -> Self {
        self.chunks.retain(|chunk| chunk.seq <= last);
        self.more &= self.chunks.last().is_some_and(|chunk| chunk.seq < last);
        self
    }
}

/// Size of the end of a log that is searched, in bytes. The search happens once for an opened session.
const SEARCHED: u64 = 8 << 20;

#[derive(Debug, Default)]
pub struct MessageFacts {
    /// Time of the message, RFC 3339: of a prompt when it was sent, of an answer when its turn ended. `None` while the
    /// turn runs.
    pub at: Option<String>,
    /// Summary of the turn that the message answers in; `null` for other messages.
    pub summary: Value,
}

/// First bytes of a decision's line.
const DECISION: &[u8] = br#"{"record":"decision","#;

/// A decision with its time and turn.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StoredDecision {
    /// Time of the decision, RFC 3339.
    pub at: String,
    pub turn_id: String,
    pub decision: LedgerEntry,
}

impl Log {
    /// Returns at most `limit` chunks after a number, in ascending order: repeated and moved lines of a
    /// damaged log are left out.
    ///
    /// # Errors
    /// The disk fails.
    pub fn page(&self, after: u64, limit: usize) -> Result<Page, Error> {
        let mut page = Page::default();
        let (mut size, mut last) = (0, after);
        let from = self
            .index
            .place_after(after)
            .max(self.storage.file().begin());
        let read = self.storage.lines(from..self.storage.end(), |line, _| {
            let Some(stored) = chunk(line).filter(|stored| stored.seq > last) else {
                return true;
            };
            size += line.len();
            page.more =
                page.chunks.len() == limit || (size > PAGE_BYTES && !page.chunks.is_empty());
            if page.more {
                return false;
            }
            last = stored.seq;
            page.chunks.push(stored);
            true
        });
        read.map_err(|e| storage_error("read", &e))?;
        Ok(page)
    }

    /// Passes the chunks of a turn to `take`, in order, until it returns `false`; returns the offset at which
    /// to continue, or `None` after the last chunk.
    ///
    /// # Errors
    /// The disk fails.
    pub fn turn_chunks(
        &self,
        turn: &str,
        from: Option<u64>,
        mut take: impl FnMut(&StoredChunk) -> bool,
    ) -> Result<Option<u64>, Error> {
        let Some(known) = self.index.turn(turn) else {
            return Ok(None);
        };
        let mut over = true;
        let next = self.chunks_from(turn, from.unwrap_or(known.begin), |stored| {
            over = take(stored);
            over
        })?;
        Ok((!over).then_some(next))
    }

    /// Passes the chunks of one message of a turn to `take` until it returns `false`; returns the end of the
    /// last line read.
    fn chunks_from(
        &self,
        turn: &str,
        begin: u64,
        mut take: impl FnMut(&StoredChunk) -> bool,
    ) -> Result<u64, Error> {
        let range = begin.max(self.storage.file().begin())..self.storage.end();
        let read = self.storage.lines(range, |line, _| {
            let of_turn = |stored: &StoredChunk| stored.turn_id.as_deref() == Some(turn);
            let Some(stored) = chunk(line).filter(of_turn) else {
                return true;
            };
            take(&stored) && !stored.is_last()
        });
        read.map_err(|e| storage_error("read", &e))
    }

    /// Returns the state of a turn.
    ///
    /// # Errors
    /// The disk fails.
    pub fn turn(&self, id: &str) -> Result<TurnState, Error> {
        let Some(turn) = self.index.turn(id).filter(|turn| turn.prompted) else {
            return Ok(TurnState::Unknown);
        };
        let Some(at) = turn.summary.clone() else {
            return Ok(TurnState::Unfinished);
        };
        let line = self
            .storage
            .read(at)
            .map_err(|e| storage_error("read", &e))?;
        let line = shallow_stored(&line);
        let line = serde_json::from_slice::<LogLine<'_>>(&line).ok();
        Ok(match line.and_then(|line| Some(line.summary?.to_owned())) {
            Some(summary) => TurnState::Finished(summary),
            None => TurnState::Unfinished,
        })
    }

    /// Returns the parts of the message with which a turn was prompted; `None` if the message cannot be read
    /// any more.
    ///
    /// # Errors
    /// The disk fails.
    pub fn prompt_parts(&self, turn: &str) -> Result<Option<Vec<Value>>, Error> {
        let Some(turn) = self.index.turn(turn).filter(|turn| turn.prompted) else {
            return Ok(None);
        };
        if turn.begin < self.storage.file().begin() {
            return Ok(None);
        }
        let mut message = None;
        let read = self
            .storage
            .lines(turn.begin..self.storage.end(), |line, _| {
                let line = serde_json::from_slice::<LogLine<'_>>(line).ok();
                message = line.and_then(|line| line.message.map(value));
                false
            });
        read.map_err(|e| storage_error("read", &e))?;
        Ok(match message.map(|mut message| message["parts"].take()) {
            Some(Value::Array(parts)) => Some(parts),
            _ => None,
        })
    }

    /// Returns the turns without a last chunk, which a crash left unfinished.
    pub fn open_turns(&self) -> Vec<String> {
        self.index.open_turns()
    }

    pub fn position(&self, id: &str) -> Option<usize> {
        self.index.position(id)
    }

    /// Returns the message at a position, as the chunks of a profile build it; `None` if it cannot be read
    /// any more.
    ///
    /// # Errors
    /// The disk fails.
    pub fn message(&self, place: usize, profile: Profile) -> Result<Option<Value>, Error> {
        let (mut reader, mut budget) = (Reader::default(), u64::MAX);
        match self.read_message(place, profile, &mut reader, &mut budget)? {
            MessagePart::Whole(message) => Ok(message),
            MessagePart::More => Ok(None),
        }
    }

    /// Returns the message of a turn, as far as it is in the log; `None` if the turn has no message.
    ///
    /// # Errors
    /// The disk fails.
    pub fn message_so_far(&self, turn: &str) -> Result<Option<Fold>, Error> {
        let is_of_turn = |message: &Message| match &message.source {
            Source::Chunks { turn: of, .. } => of == turn,
            Source::Line(_) => false,
        };
        let Some(place) = self.index.messages.iter().rposition(is_of_turn) else {
            return Ok(None);
        };
        let (mut reader, mut budget) = (Reader::default(), u64::MAX);
        self.read_message(place, Profile::V7, &mut reader, &mut budget)?;
        Ok(Some(reader.fold))
    }

    pub fn message_id(&self, place: usize) -> Option<&str> {
        self.index.messages.get(place).map(|m| m.id.as_str())
    }

    /// Continues reading the message at a position, and subtracts the bytes of log read from `budget`, which
    /// ends the reading.
    ///
    /// # Errors
    /// The disk fails.
    pub fn read_message(
        &self,
        place: usize,
        profile: Profile,
        reader: &mut Reader,
        budget: &mut u64,
    ) -> Result<MessagePart, Error> {
        let Some(message) = self.index.messages.get(place) else {
            return Ok(MessagePart::Whole(None));
        };
        match &message.source {
            Source::Line(at) => {
                let line = self
                    .storage
                    .read(at.clone())
                    .map_err(|e| storage_error("read", &e))?;
                *budget = budget.saturating_sub(line.len() as u64);
                let line = shallow_stored(&line);
                let line = serde_json::from_slice::<LogLine<'_>>(&line).ok();
                let message = line.and_then(|line| line.message.map(value));
                Ok(MessagePart::Whole(message))
            }
            Source::Chunks { turn, begin } => {
                let begin = reader
                    .next
                    .unwrap_or(*begin)
                    .max(self.storage.file().begin());
                // Chunks added during the reading are not waited for.
                let end = *reader.end.get_or_insert_with(|| self.storage.end());
                let mut over = true;
                // An older profile may have the text of a chunk elsewhere.
                let prefix = (profile == Profile::V7).then(|| chunk_prefix(Some(turn)));
                let next = self
                    .storage
                    .lines(begin..end.min(self.storage.end()), |line, _| {
                        *budget = budget.saturating_sub(line.len() as u64 + 1);
                        let of_turn =
                            |stored: &StoredChunk| stored.turn_id.as_deref() == Some(turn);
                        let written = prefix.as_ref().and_then(|prefix| written(line, prefix));
                        let is_folded = written.is_some_and(|chunk| reader.fold.push_delta(chunk));
                        if !is_folded && let Some(stored) = chunk(line).filter(of_turn) {
                            let chunk = value(&stored.chunk);
                            profile.adapt_stored(chunk, |chunk| reader.fold.push(&chunk));
                            if stored.is_last() {
                                return false;
                            }
                        }
                        over = *budget > 0;
                        over
                    });
                reader.next = Some(next.map_err(|e| storage_error("read", &e))?);
                if !over {
                    return Ok(MessagePart::More);
                }
                Ok(MessagePart::Whole(Some(reader.fold.message())))
            }
        }
    }

    /// Returns facts about the message at a position.
    ///
    /// # Errors
    /// The disk fails.
    pub fn message_facts(&self, place: usize) -> Result<MessageFacts, Error> {
        let place = self.index.messages.get(place);
        let line = place.and_then(|message| match &message.source {
            Source::Line(at) => Some(at.clone()),
            Source::Chunks { turn, .. } => self.index.turn(turn)?.summary.clone(),
        });
        let Some(line) = line else {
            return Ok(MessageFacts::default());
        };
        let line = self
            .storage
            .read(line)
            .map_err(|e| storage_error("read", &e))?;
        let line = shallow_stored(&line);
        let line = serde_json::from_slice::<LogLine<'_>>(&line).ok();
        Ok(
            line.map_or_else(MessageFacts::default, |line| MessageFacts {
                at: line.at.map(Into::into),
                summary: line.summary.map_or(Value::Null, value),
            }),
        )
    }

    /// Passes all decisions to `take`, in order; returns the number of decisions that cannot be read.
    ///
    /// # Errors
    /// The disk fails.
    pub fn decisions(&self, mut take: impl FnMut(StoredDecision)) -> Result<u64, Error> {
        let mut unread = 0;
        let read = self.storage.lines(
            self.storage.file().begin()..self.storage.end(),
            |line, _| {
                if line.starts_with(DECISION) {
                    match serde_json::from_slice(&shallow_stored(line)) {
                        Ok(decided) => take(decided),
                        Err(_) => unread += 1,
                    }
                }
                true
            },
        );
        read.map_err(|e| storage_error("read", &e))?;
        Ok(unread)
    }

    /// Passes the ids of the tool calls in the newest part of the log to `note`, each at least once. A disk
    /// that does not respond is not waited for.
    pub fn each_call_id(&self, mut note: impl FnMut(&str)) {
        let end = self.storage.file().end();
        let begin = self
            .storage
            .file()
            .begin()
            .max(end.saturating_sub(SEARCHED));
        if begin >= end || self.storage.file().is_slow() {
            return;
        }
        let finder = Finder::new(br#""toolCallId":"#);
        // Ids that cannot be read are not known; the next call of such an id has the same one.
        let _ = self.storage.lines(begin..end, |line, _| {
            for at in finder.find_iter(line) {
                let json = &line[at + finder.needle().len()..];
                let id = string_len(json).and_then(|len| json.get(..len));
                let id = id.and_then(|id| serde_json::from_slice::<String>(id).ok());
                if let Some(id) = id {
                    note(&id);
                }
            }
            true
        });
    }
}

/// State of a message that is being read in steps.
#[derive(Debug, Default)]
pub struct Reader {
    fold: Fold,
    /// Offset at which to continue.
    next: Option<u64>,
    end: Option<u64>,
}

/// Result of one step of reading a message.
#[derive(Debug)]
pub enum MessagePart {
    /// The budget is used up before the end of the message.
    More,
    /// The message is complete; `None` if it cannot be read any more.
    Whole(Option<Value>),
}

/// Returns the chunk of a line that has exactly the form in which a chunk of a turn is written, with this prefix.
fn written<'l>(line: &'l [u8], prefix: &[u8]) -> Option<&'l [u8]> {
    let rest = line.strip_prefix(prefix)?;
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    // Numbers that are too large are not read, nor are those with a leading zero.
    if !(1..=15).contains(&digits) || rest.starts_with(b"0") {
        return None;
    }
    let chunk = rest[digits..].strip_prefix(br#","chunk":"#)?;
    chunk.strip_suffix(b"}")
}

fn chunk(line: &[u8]) -> Option<StoredChunk> {
    let line = shallow_stored(line);
    let line: LogLine<'_> = serde_json::from_slice(&line).ok()?;
    Some(StoredChunk {
        seq: line.seq?,
        turn_id: line.turn_id.map(std::borrow::Cow::into_owned),
        chunk: line.chunk?.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{MemoryStore, Store as _};

    fn ids(lines: &str) -> Vec<String> {
        let mut file = MemoryStore.open("a").unwrap();
        file.append(lines.as_bytes()).unwrap();
        let mut ids = Vec::new();
        let log = Log::open(file).unwrap();
        log.each_call_id(|id| ids.push(id.to_owned()));
        ids
    }

    #[test]
    fn ids_in_the_newest_part_of_a_log_are_found() {
        let line = r#"{"record":"update","turnId":"t","update":{"toolCallId":"a\"b","text":"\"toolCallId\":\"no\""}}"#;
        let unreadable = r#"{"toolCallId":7,"toolCallId":"torn"#;
        assert_eq!(ids(""), Vec::<String>::new());
        assert_eq!(
            ids(&format!("{line}\n{unreadable}\n{line}\n")),
            ["a\"b", "a\"b"]
        );
        let long = format!("{}\n", "x".repeat(usize::try_from(SEARCHED).unwrap()));
        assert_eq!(ids(&format!("{line}\n{long}")), Vec::<String>::new());
    }
}
