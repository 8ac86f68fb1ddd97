//! The log of a session: a file of JSON lines, one record each, which is appended to and never changed.
//!
//! A chunk gets its number and its line together: every chunk that a client received with a number is in the
//! log, and the numbers have no gap. Lines are collected until [`Log::commit`], which is called before
//! clients receive anything.

mod about;
mod call_ids;
mod commit;
mod identity;
mod index;
mod ledger;
mod read;
mod record;
mod stored_index;
mod updates;

use super::error::{Error, ErrorKind};
use super::store::{Card, LogFile};
use crate::proto::chunk::Chunk;
use crate::proto::json::{write_json_within, write_number};
pub use about::MessageFacts;
use commit::PendingAppend;
pub use commit::disk_timeout;
use index::{ChunkRole, Index};
pub use ledger::StoredDecision;
pub use read::{MessagePart, Page, Reader, StoredChunk};
pub use record::{FORMAT, Identity, Record};
use serde_json::Value;
use serde_json::value::RawValue;
use std::io::Write as _;
use std::ops::Range;
use stored_index::StoredIndex;

/// Size in bytes above which a record is written to the file at once instead of being collected in memory.
pub const LARGE: usize = 1 << 20;

/// Size in bytes of the pieces in which a large record is written.
const PIECE: usize = 64 * 1024;

/// The log of one session.
#[derive(Debug)]
pub struct Log {
    file: Box<dyn LogFile>,
    index: Index,
    stored_index: StoredIndex,
    /// Lines that the file does not have yet.
    pending: Vec<u8>,
    /// Append that the disk has not answered yet.
    pending_append: Option<PendingAppend>,
    /// Number of the last chunk that clients may receive: it is in the file or owed (see [`Log::release_pending`]).
    released: u64,
    /// Error that caused chunks to be dropped, until the session has taken it.
    drop_error: Option<Box<Error>>,
    /// Length of the prefix of `pending` that clients may receive even if the disk rejects it.
    released_bytes: usize,
    /// Error of a large record that was written directly to the file; the next commit reports it.
    write_error: Option<std::io::Error>,
    /// Cached beginning of a chunk's line, with the turn that it belongs to.
    prefix: (Option<String>, Vec<u8>),
}

/// State of a turn according to the log.
#[derive(Debug)]
pub enum TurnState {
    /// The log has no prompt of this turn.
    Unknown,
    /// The turn was prompted, and the log has no summary.
    Unfinished,
    /// Summary of the turn, as it was stored.
    Finished(Box<RawValue>),
}

impl Log {
    /// Opens a log and builds its index by reading the part that no stored index covers; an incomplete last line
    /// is cut off.
    ///
    /// # Errors
    /// The disk fails, or the log has a newer format than this version of acpipe can read.
    pub fn open(file: Box<dyn LogFile>) -> Result<Self, Error> {
        let mut log = Self {
            file,
            index: Index::default(),
            stored_index: StoredIndex::default(),
            pending: Vec::new(),
            pending_append: None,
            released: 0,
            drop_error: None,
            released_bytes: 0,
            write_error: None,
            prefix: (None, record::chunk_prefix(None)),
        };
        let (index, from) = log.take_stored_index();
        log.scan_from(index, from)
            .map_err(|e| storage_error("read", &e))?;
        log.restore_identity();
        log.take_ended_claims();
        log.released = log.index.seq;
        let format = log.index.identity.as_ref().map_or(FORMAT, |i| i.format);
        if format > FORMAT {
            let message = format!(
                "cannot read the session's log: it has format {format}, but this acpipe supports only {FORMAT}; use a \
                     newer acpipe"
            );
            return Err(Error::new(ErrorKind::Storage, message));
        }
        Ok(log)
    }

    fn scan(&mut self) -> std::io::Result<()> {
        self.scan_from(Index::default(), self.file.begin())
    }

    /// Reads the log from an offset on and adds it to an index of everything before.
    fn scan_from(&mut self, mut index: Index, from: u64) -> std::io::Result<()> {
        let rest = self.lines(from..self.file.end(), |line, at| {
            index.line(line, at);
            true
        })?;
        if rest < self.file.end() {
            self.file.cut(rest)?;
        }
        let mut place = rest;
        for line in self.pending.split_inclusive(|byte| *byte == b'\n') {
            let end = place + line.len() as u64;
            index.line(line.trim_ascii_end(), place..end);
            place = end;
        }
        index.read_all();
        self.index = index;
        Ok(())
    }

    /// Returns the identity of the session; `None` if no readable record has one.
    #[must_use]
    pub fn identity(&self) -> Option<&Identity> {
        self.index.identity.as_ref()
    }

    /// Returns the number of the last chunk.
    #[must_use]
    pub fn seq(&self) -> u64 {
        self.index.seq
    }

    /// Returns the number of messages.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.index.messages.len() as u64
    }

    /// Returns `true` if nothing was ever recorded.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.file.end() == 0 && self.pending.is_empty()
    }

    /// Returns the number of lines that cannot be read.
    #[must_use]
    pub fn corrupt(&self) -> u64 {
        self.index.corrupt
    }

    /// Numbers a chunk and records it; returns the number and the chunk's JSON.
    pub fn chunk(&mut self, turn: Option<&str>, chunk: &Chunk<'_>) -> (u64, &[u8]) {
        let (seq, json) = self.line(turn, role_of(chunk), |out| chunk.write(out));
        (seq, &self.pending[json])
    }

    /// Like [`Log::chunk`] for a delta, whose JSON is these parts.
    pub fn delta(&mut self, turn: Option<&str>, parts: [&[u8]; 3]) -> (u64, &[u8]) {
        let (seq, json) = self.line(turn, ChunkRole::Middle, |out| {
            for part in parts {
                out.extend_from_slice(part);
            }
        });
        (seq, &self.pending[json])
    }

    /// Like [`Log::chunk`] for a large chunk, which is written to the file at once; returns the number. A
    /// failure is reported by [`Log::commit`].
    pub fn large_chunk(&mut self, turn: Option<&str>, chunk: &Chunk<'_>) -> u64 {
        if self.must_buffer() {
            return self.line(turn, role_of(chunk), |out| chunk.write(out)).0;
        }
        let seq = self.index.seq + 1;
        let prefix = record::chunk_prefix(turn);
        let at = self.write_through(&|mut out| {
            out.write_all(&prefix)?;
            write!(out, "{seq},\"chunk\":")?;
            // Written in large pieces, so that the whole chunk is never in memory a second time.
            let mut gathered = std::io::BufWriter::with_capacity(PIECE, &mut out);
            serde_json::to_writer(&mut gathered, chunk)?;
            gathered.write_all(b"}\n")?;
            gathered.flush()
        });
        if let Some(at) = at {
            self.index.chunk(seq, turn, role_of(chunk), &at);
        }
        seq
    }

    /// Like [`Log::chunk`] for a chunk in the middle of a message that is available as JSON only; returns the
    /// number.
    pub fn json_chunk(&mut self, turn: Option<&str>, json: &[u8]) -> u64 {
        self.line(turn, ChunkRole::Middle, |out| out.extend_from_slice(json))
            .0
    }

    fn line(
        &mut self,
        turn: Option<&str>,
        part: ChunkRole<'_>,
        write: impl FnOnce(&mut Vec<u8>),
    ) -> (u64, Range<usize>) {
        if self.prefix.0.as_deref() != turn {
            self.prefix = (turn.map(str::to_owned), record::chunk_prefix(turn));
        }
        let seq = self.index.seq + 1;
        let before = self.pending.len();
        self.pending.extend_from_slice(&self.prefix.1);
        write_number(&mut self.pending, seq);
        self.pending.extend_from_slice(b",\"chunk\":");
        let begin = self.pending.len();
        write(&mut self.pending);
        let json = begin..self.pending.len();
        self.pending.extend_from_slice(b"}\n");
        let at = self.range_from(before);
        self.index.chunk(seq, turn, part, &at);
        (seq, json)
    }

    /// Records anything other than a chunk.
    pub fn append(&mut self, record: &Record<'_>) {
        let at = match self.gather(record, LARGE) {
            Some(at) => Some(at),
            None if self.must_buffer() => self.gather(record, usize::MAX),
            None => self.write_through(&|mut out| {
                let mut gathered = std::io::BufWriter::with_capacity(PIECE, &mut out);
                serde_json::to_writer(&mut gathered, record)?;
                gathered.write_all(b"\n")?;
                gathered.flush()
            }),
        };
        let Some(at) = at else { return };
        record.at().clone_into(&mut self.index.updated_at);
        match record {
            Record::Session { identity, .. } => {
                self.index.identified((*identity).clone(), &at);
            }
            Record::Prompt {
                turn_id, message, ..
            } => self.index.prompt(turn_id, id_of(message), &at),
            Record::End { turn_id, .. } => self.index.end(turn_id, &at),
            Record::Message { message, .. } => self.index.message(id_of(message), &at),
            Record::Recovery { .. } | Record::Decision { .. } => {}
        }
    }

    /// Records a message of a repeated history, which is available as JSON. The history is written in pieces,
    /// so that it is not in memory a second time.
    pub fn append_message(&mut self, at: &str, message: &[u8]) {
        let time = crate::proto::json::to_raw(&at);
        let head = format!(r#"{{"record":"message","at":{time},"message":"#);
        let at = self.append_json(head.as_bytes(), message);
        if let (Some(at), Some(id)) = (at, index::message_id(message)) {
            self.index.message(&id, &at);
        }
        if self.pending.len() > LARGE && self.write_error.is_none() && !self.file.is_slow() {
            self.write_piece();
        }
    }

    /// Appends a record whose last member is available as JSON; `head` is everything before that.
    fn append_json(&mut self, head: &[u8], json: &[u8]) -> Option<Range<u64>> {
        if json.len() > LARGE && !self.must_buffer() {
            return self.write_through(&|out| {
                out.write_all(head)?;
                out.write_all(json)?;
                out.write_all(b"}\n")
            });
        }
        let before = self.pending.len();
        for part in [head, json, b"}\n"] {
            self.pending.extend_from_slice(part);
        }
        Some(self.range_from(before))
    }

    /// Appends a record to the pending lines; `None` if it is larger than `limit` bytes.
    fn gather(&mut self, record: &Record<'_>, limit: usize) -> Option<Range<u64>> {
        let before = self.pending.len();
        let limit = before.saturating_add(limit);
        if !write_json_within(&mut self.pending, record, limit) {
            return None;
        }
        self.pending.push(b'\n');
        Some(self.range_from(before))
    }

    fn range_from(&self, before: usize) -> Range<u64> {
        let base = self.file.end();
        base + before as u64..base + self.pending.len() as u64
    }

    /// Returns `true` if the file has to take something before clients may receive it.
    #[must_use]
    pub fn is_dirty(&self) -> bool {
        self.pending.len() > self.released_bytes
            || self.write_error.is_some()
            || self.pending_append.is_some()
            || self.drop_error.is_some()
    }

    /// Returns `true` if the file has every record, including owed ones.
    #[must_use]
    pub fn is_written(&self) -> bool {
        self.pending.is_empty() && self.write_error.is_none()
    }

    /// Repairs the log after a panic: cuts off an incomplete pending line and rebuilds the index.
    pub fn mend(&mut self) {
        let whole = memchr::memrchr(b'\n', &self.pending).map_or(0, |at| at + 1);
        self.pending.truncate(whole);
        self.released_bytes = self.released_bytes.min(whole);
        self.prefix = (None, record::chunk_prefix(None));
        // A read error is reported by the next operation that reads the log.
        let _ = self.scan();
    }

    /// Allows clients to receive all pending records even if the disk rejects them, such as the report of that
    /// failure. The records are written with the next ones.
    pub fn release_pending(&mut self) {
        self.released_bytes = self.pending.len();
        if self.pending_append.is_none() {
            self.released = self.index.seq;
        }
    }

    /// Requests a sync of the file, see [`LogFile::sync`].
    pub fn sync(&mut self, ticket: u64) -> bool {
        if self.pending.is_empty() {
            // A turn ends here, and the session may stay idle for long: thousands of idle sessions must not
            // hold buffers.
            self.pending = Vec::new();
        }
        let is_answered_later = self.file.sync(ticket);
        self.store_index();
        is_answered_later
    }

    /// Returns `true` if a turn fails whose sync has failed, see [`LogFile::needs_sync`].
    #[must_use]
    pub fn needs_sync(&self, error: &Error) -> bool {
        self.file.needs_sync(error)
    }

    /// Writes the session's card with the current state.
    pub fn describe(&mut self) {
        let card = self.card();
        self.file.describe(&card);
    }

    /// Returns the session's card: what lists of sessions show.
    #[must_use]
    pub fn card(&self) -> Card {
        let identity = self.index.identity.clone().unwrap_or_default();
        Card {
            session_id: identity.session_id,
            agent: identity.agent,
            agent_session_id: identity.agent_session_id,
            agent_name: identity.agent_name,
            agent_command: identity.agent_command.as_deref().cloned(),
            agents: identity.agents,
            cwd: identity.cwd,
            title: identity.title,
            mode: identity.mode,
            model: identity.model,
            created_at: identity.created_at,
            updated_at: self.index.updated_at.clone(),
            messages: self.count(),
            seq: self.seq(),
            bytes: self.file.end(),
        }
    }

    /// Removes all messages; the session keeps its identity, and chunk numbers continue.
    ///
    /// # Errors
    /// The disk is full or fails: the log is unchanged.
    pub fn clear(&mut self, at: &str, archive: bool) -> Result<(), Error> {
        self.wait_for_append()?;
        let identity = Identity {
            seq: self.index.seq,
            ..self.index.identity.clone().unwrap_or_default()
        };
        let first = Record::Session {
            at,
            identity: &identity,
        };
        let mut line = serde_json::to_vec(&first).unwrap_or_default();
        line.push(b'\n');
        let replaced = self.file.replace(&line, archive);
        replaced.map_err(|e| storage_error("replace", &e))?;
        self.pending.clear();
        self.released_bytes = 0;
        self.released = self.index.seq;
        self.stored_index = StoredIndex::default();
        self.scan().map_err(|e| storage_error("read", &e))
    }

    /// Removes the log from the disk, or archives it.
    ///
    /// # Errors
    /// The disk fails.
    pub fn remove(&mut self, archive: bool) -> Result<(), Error> {
        self.wait_for_append()?;
        self.file
            .remove(archive)
            .map_err(|e| storage_error("remove", &e))?;
        // Nothing is left to be written or reported.
        self.pending.clear();
        self.released_bytes = 0;
        self.index = Index::default();
        Ok(())
    }
}

fn role_of<'a>(chunk: &'a Chunk<'_>) -> ChunkRole<'a> {
    match chunk {
        Chunk::Start { message_id, .. } => ChunkRole::Begin(message_id),
        Chunk::Finish { .. } | Chunk::Abort { .. } | Chunk::Error { .. } => ChunkRole::End,
        _ => ChunkRole::Middle,
    }
}

fn id_of(message: &Value) -> &str {
    message["id"].as_str().unwrap_or_default()
}

fn storage_error(what: &str, why: &std::io::Error) -> Error {
    use std::io::ErrorKind as Io;
    let advice = match why.kind() {
        Io::TimedOut => {
            "queued data is written when the disk responds; or use --state-dir or --persist never"
        }
        Io::StorageFull | Io::QuotaExceeded | Io::FileTooLarge => {
            "free disk space, or use --state-dir or --persist never"
        }
        // The file was removed or replaced by another process, so the open handle is of no use.
        Io::NotFound | Io::StaleNetworkFileHandle => {
            "close the session (session/close) and open it again (session/ensure)"
        }
        _ => "check the disk, or use --state-dir or --persist never",
    };
    let message = format!("cannot {what} the session's log: {why}; {advice}");
    Error::new(ErrorKind::Storage, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::store::{MemoryStore, Store as _};

    #[test]
    fn maximum_sequence_number_is_rejected() {
        let mut file = MemoryStore.open("a").unwrap();
        let line = r#"{"record":"chunk","turnId":null,"seq":18446744073709551615,"chunk":{"type":"finish-step"}}"#;
        file.append(format!("{line}\nnonsense\n").as_bytes())
            .unwrap();
        let mut log = Log::open(file).unwrap();
        assert_eq!((log.corrupt(), log.seq()), (2, 2));
        assert_eq!(log.chunk(None, &Chunk::FinishStep).0, 3);
    }

    #[test]
    fn a_page_has_rising_numbers_where_lines_were_repeated_or_moved() {
        let mut file = MemoryStore.open("a").unwrap();
        for seq in [1, 2, 2, 4, 3, 1, 5] {
            let line = format!(
                r#"{{"record":"chunk","turnId":null,"seq":{seq},"chunk":{{"type":"finish-step"}}}}"#
            );
            file.append(format!("{line}\n").as_bytes()).unwrap();
        }
        let log = Log::open(file).unwrap();
        let page = log.page(0, 10).unwrap();
        let numbers: Vec<u64> = page.chunks.iter().map(|stored| stored.seq).collect();
        assert_eq!(numbers, [1, 2, 4, 5]);
    }
}
