//! The log of a session: a file of JSON lines, one record each, which is appended to and never changed.
//!
//! A chunk gets its number and its line together: every chunk that a client received with a number is in the
//! log, and the numbers have no gap. Lines are collected until [`Log::commit`], which is called before
//! clients receive anything.

mod commit;
mod identity;
mod index;
mod read;
mod record;
mod storage;
mod stored_index;
mod updates;

use super::store::{Card, LogFile};
use acpipe_json::write_number;
use acpipe_model::error::{Error, ErrorKind};
use acpipe_protocol::chunk::Chunk;
pub use commit::disk_timeout;
use index::{ChunkRole, Index};
pub use read::{MessageFacts, MessagePart, Page, Reader, StoredChunk, StoredDecision};
pub use record::{FORMAT, Identity, Record};
use serde_json::Value;
use serde_json::value::RawValue;
use std::io::{self, Write as _};
use std::ops::Range;
use storage::LogStorage;
use stored_index::StoredIndex;

/// Size in bytes above which a record is written to the file at once instead of being collected in memory.
pub const LARGE: usize = 1 << 20;

/// Size in bytes of the pieces in which a large record is written.
const PIECE: usize = 64 * 1024;

#[derive(Debug)]
pub struct Log {
    storage: LogStorage,
    index: Index,
    stored_index: StoredIndex,
    /// Error that caused chunks to be dropped, until the session has taken it.
    drop_error: Option<Box<Error>>,
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
        let (index, from, stored_index) = StoredIndex::take(&*file);
        let mut log = Self {
            storage: LogStorage::new(file),
            index: Index::default(),
            stored_index,
            drop_error: None,
            prefix: (None, record::chunk_prefix(None)),
        };
        let read = read_index(&mut log.storage, index, from);
        log.index = read.map_err(|e| storage_error("read", &e))?;
        identity::restore(&mut log.index, &log.storage);
        if let Some(identity) = &mut log.index.identity {
            identity::take_ended_claims(identity, &log.storage);
        }
        log.storage.release(log.index.seq);
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

    /// Reads the whole log again.
    fn scan(&mut self) -> io::Result<()> {
        let begin = self.storage.file().begin();
        self.index = read_index(&mut self.storage, Index::default(), begin)?;
        Ok(())
    }

    /// Returns the identity of the session; `None` if no readable record has one.
    pub fn identity(&self) -> Option<&Identity> {
        self.index.identity.as_ref()
    }

    /// Returns the number of the last chunk.
    pub fn seq(&self) -> u64 {
        self.index.seq
    }

    /// Returns the number of messages.
    pub fn count(&self) -> u64 {
        self.index.messages.len() as u64
    }

    pub fn is_empty(&self) -> bool {
        self.storage.end() == 0
    }

    /// Returns the number of lines that cannot be read.
    pub fn corrupt(&self) -> u64 {
        self.index.corrupt
    }

    /// Numbers a chunk and records it; returns the number and the chunk's JSON.
    pub fn chunk(&mut self, turn: Option<&str>, chunk: &Chunk<'_>) -> (u64, &[u8]) {
        let (seq, json) = self.line(turn, role_of(chunk), |out| chunk.write(out));
        (seq, &self.storage.pending()[json])
    }

    /// Like [`Log::chunk`] for a delta, whose JSON is these parts.
    pub fn delta(&mut self, turn: Option<&str>, parts: [&[u8]; 3]) -> (u64, &[u8]) {
        let (seq, json) = self.line(turn, ChunkRole::Middle, |out| {
            for part in parts {
                out.extend_from_slice(part);
            }
        });
        (seq, &self.storage.pending()[json])
    }

    /// Like [`Log::chunk`] for a large chunk, which is written to the file at once; returns the number. A
    /// failure is reported by [`Log::commit`].
    pub fn large_chunk(&mut self, turn: Option<&str>, chunk: &Chunk<'_>) -> u64 {
        if self.must_buffer() {
            return self.line(turn, role_of(chunk), |out| chunk.write(out)).0;
        }
        let seq = self.index.seq + 1;
        let prefix = record::chunk_prefix(turn);
        let write = |mut out: &mut dyn io::Write| {
            out.write_all(&prefix)?;
            write!(out, "{seq},\"chunk\":")?;
            // Written in large pieces, so that the whole chunk is never in memory a second time.
            let mut gathered = std::io::BufWriter::with_capacity(PIECE, &mut out);
            serde_json::to_writer(&mut gathered, chunk)?;
            gathered.write_all(b"}\n")?;
            gathered.flush()
        };
        if let Some(at) = self.storage.write_through(&write, self.index.seq) {
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
        let (prefix, mut json) = (&self.prefix.1, 0..0);
        let at = self.storage.add(|out| {
            out.extend_from_slice(prefix);
            write_number(out, seq);
            out.extend_from_slice(b",\"chunk\":");
            json.start = out.len();
            write(out);
            json.end = out.len();
            out.extend_from_slice(b"}\n");
        });
        self.index.chunk(seq, turn, part, &at);
        (seq, json)
    }

    /// Records anything other than a chunk.
    pub fn append(&mut self, record: &Record<'_>) {
        let at = match self.storage.add_json(record, LARGE) {
            Some(at) => Some(at),
            None if self.must_buffer() => self.storage.add_json(record, usize::MAX),
            None => self.storage.write_through(
                &|mut out| {
                    let mut gathered = io::BufWriter::with_capacity(PIECE, &mut out);
                    serde_json::to_writer(&mut gathered, record)?;
                    gathered.write_all(b"\n")?;
                    gathered.flush()
                },
                self.index.seq,
            ),
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
        let time = acpipe_json::to_raw(&at);
        let head = format!(r#"{{"record":"message","at":{time},"message":"#);
        let at = self
            .storage
            .add_parts(head.as_bytes(), message, self.index.seq);
        if let (Some(at), Some(id)) = (at, index::message_id(message)) {
            self.index.message(&id, &at);
        }
        self.storage.write_many(self.index.seq);
        self.forget_lost();
    }

    /// Returns `true` if the file has to take something before clients may receive it.
    pub fn is_dirty(&self) -> bool {
        self.storage.is_dirty() || self.drop_error.is_some()
    }

    /// Returns `true` if the file has every record, including owed ones.
    pub fn is_written(&self) -> bool {
        self.storage.is_written()
    }

    /// Repairs the log after a panic: cuts off an incomplete pending line and rebuilds the index.
    pub fn mend(&mut self) {
        self.storage.cut_incomplete();
        self.prefix = (None, record::chunk_prefix(None));
        // A read error is reported by the next operation that reads the log.
        let _ = self.scan();
    }

    /// Allows clients to receive all pending records even if the disk rejects them, such as the report of that
    /// failure. The records are written with the next ones.
    pub fn release_pending(&mut self) {
        self.storage.release_pending(self.index.seq);
    }

    /// Requests a sync of the file, see [`LogFile::sync`].
    pub fn sync(&mut self, ticket: u64) -> bool {
        // A turn ends here, and the session may stay idle for long: thousands of idle sessions must not
        // hold buffers.
        self.storage.free_buffer();
        let is_answered_later = self.storage.file_mut().sync(ticket);
        self.store_index();
        is_answered_later
    }

    /// Stores the index if the log has grown enough since the last time.
    pub fn store_index(&mut self) {
        if self.stored_index.is_outdated(self.storage.file())
            && let Some(encoded) = self.encoded_index()
        {
            self.stored_index.store(encoded, self.storage.file_mut());
        }
    }

    /// Returns the index as it is stored; `None` if it does not describe exactly what is in the file.
    pub fn encoded_index(&self) -> Option<Vec<u8>> {
        if !self.is_written() || self.storage.is_waiting() {
            return None;
        }
        let end = self.storage.file().end();
        self.index
            .encode(end, |range| self.storage.file().read(range))
    }

    /// Returns `true` if a turn fails whose sync has failed, see [`LogFile::needs_sync`].
    pub fn needs_sync(&self, error: &Error) -> bool {
        self.storage.file().needs_sync(error)
    }

    /// Writes the session's card with the current state.
    pub fn describe(&mut self) {
        let card = self.card();
        self.storage.file_mut().describe(&card);
    }

    /// Returns the session's card: what lists of sessions show.
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
            bytes: self.storage.file().end(),
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
        let replaced = self.storage.file_mut().replace(&line, archive);
        replaced.map_err(|e| storage_error("replace", &e))?;
        self.storage.drop_pending();
        self.storage.release(self.index.seq);
        self.stored_index = StoredIndex::default();
        self.scan().map_err(|e| storage_error("read", &e))
    }

    /// Removes the log from the disk, or archives it.
    ///
    /// # Errors
    /// The disk fails.
    pub fn remove(&mut self, archive: bool) -> Result<(), Error> {
        self.wait_for_append()?;
        self.storage
            .file_mut()
            .remove(archive)
            .map_err(|e| storage_error("remove", &e))?;
        // Nothing is left to be written or reported.
        self.storage.drop_pending();
        self.index = Index::default();
        Ok(())
    }
}

/// Reads a log from an offset on and adds it to an index of everything before; cuts off an incomplete last line.
fn read_index(storage: &mut LogStorage, mut index: Index, from: u64) -> io::Result<Index> {
    let end = storage.file().end();
    let rest = storage.lines(from..end, |line, at| {
        index.line(line, at);
        true
    })?;
    if rest < end {
        storage.file_mut().cut(rest)?;
    }
    let mut place = rest;
    for line in storage.pending().split_inclusive(|byte| *byte == b'\n') {
        let end = place + line.len() as u64;
        index.line(line.trim_ascii_end(), place..end);
        place = end;
    }
    index.read_all();
    Ok(index)
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
        Io::NotADirectory => "remove what is in its place, or use --state-dir or --persist never",
        _ => "check the disk, or use --state-dir or --persist never",
    };
    let message = format!("cannot {what} the session's log: {why}; {advice}");
    Error::new(ErrorKind::Storage, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{MemoryStore, Store as _};

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
