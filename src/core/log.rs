//! The log of a session: everything that was said in it, one JSON line each, appended and never changed.
//!
//! A chunk gets its number here, and its line with it: what a client saw with a number is in the log, and the
//! log has no gap. Lines are collected until [`Log::commit`], which comes before the client gets anything.

mod commit;
mod identity;
mod index;
mod ledger;
mod read;
mod record;

use super::error::{Error, ErrorKind};
use super::store::{Card, LogFile};
use crate::proto::chunk::Chunk;
use commit::Waiting;
pub use commit::no_answer;
use index::{Index, Part};
pub use ledger::Decided;
pub use read::{MessagePart, Page, Reader, Stored};
pub use record::{FORMAT, Given, Identity, Record};
use serde_json::Value;
use serde_json::value::RawValue;
use std::io::Write as _;
use std::ops::Range;

/// Lines beyond this size go to the file at once, in bytes.
pub const LARGE: usize = 1 << 20;

/// The log of one session.
#[derive(Debug)]
pub struct Log {
    file: Box<dyn LogFile>,
    index: Index,
    /// Lines that are not in the file yet.
    pending: Vec<u8>,
    /// What the disk has not answered yet.
    waiting: Option<Waiting>,
    /// The number of the last chunk that clients may receive: the file has it, or it is owed.
    released: u64,
    /// Why chunks were forgotten, until their session knows.
    lost: Option<Error>,
    /// How many bytes of `pending` the client knows of, though the disk did not take them.
    owed: usize,
    /// Why the file did not take something large.
    failed: Option<std::io::Error>,
    /// The beginning of the last chunk's line, and its turn.
    prefix: (Option<String>, Vec<u8>),
}

/// What a log knows of a turn.
#[derive(Debug)]
pub enum TurnState {
    /// It was never prompted.
    Unknown,
    /// It was, and no end is known.
    Unfinished,
    /// Its summary, as it was written.
    Finished(Box<RawValue>),
}

impl Log {
    /// Reads a log; a torn last line is cut off.
    ///
    /// # Errors
    /// The disk fails, or the log is of a version that this program does not know.
    pub fn open(file: Box<dyn LogFile>) -> Result<Self, Error> {
        let mut log = Self {
            file,
            index: Index::default(),
            pending: Vec::new(),
            waiting: None,
            released: 0,
            lost: None,
            owed: 0,
            failed: None,
            prefix: (None, record::chunk_prefix(None)),
        };
        log.scan().map_err(|e| cannot("read", &e))?;
        log.restore_identity();
        log.released = log.index.seq;
        let format = log.index.identity.as_ref().map_or(FORMAT, |i| i.format);
        if format > FORMAT {
            let message = format!(
                "the session's log is of format {format}, and this acpipe knows {FORMAT}: use a newer acpipe"
            );
            return Err(Error::new(ErrorKind::Storage, message));
        }
        Ok(log)
    }

    fn scan(&mut self) -> std::io::Result<()> {
        let mut index = Index::default();
        let whole = self.file.begin()..self.file.end();
        let rest = self.lines(whole, |line, at| {
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

    #[must_use]
    pub fn identity(&self) -> Option<&Identity> {
        self.index.identity.as_ref()
    }

    /// The number of the last chunk.
    #[must_use]
    pub fn seq(&self) -> u64 {
        self.index.seq
    }

    /// How many messages there are.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.index.messages.len() as u64
    }

    /// Whether nothing was ever taken down.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.file.end() == 0 && self.pending.is_empty()
    }

    /// How many lines cannot be read.
    #[must_use]
    pub fn corrupt(&self) -> u64 {
        self.index.corrupt
    }

    /// Numbers a chunk and takes it down; gives the number and the chunk's JSON.
    pub fn chunk(&mut self, turn: Option<&str>, chunk: &Chunk<'_>) -> (u64, &[u8]) {
        let part = match chunk {
            Chunk::Start { message_id, .. } => Part::Begin(message_id),
            Chunk::Finish { .. } | Chunk::Abort { .. } | Chunk::Error { .. } => Part::End,
            _ => Part::Middle,
        };
        let (seq, json) = self.line(turn, part, |out| chunk.write(out));
        (seq, &self.pending[json])
    }

    /// The same with a large one, which is written at once; where that fails, [`Log::commit`] says so. Gives the
    /// number.
    pub fn large_chunk(&mut self, turn: Option<&str>, chunk: &Chunk<'_>) -> u64 {
        if self.must_gather() {
            return self.line(turn, Part::Middle, |out| chunk.write(out)).0;
        }
        let seq = self.index.seq + 1;
        let prefix = record::chunk_prefix(turn);
        let at = self.write_through(&|mut out| {
            out.write_all(&prefix)?;
            write!(out, "{seq},\"chunk\":")?;
            // In large pieces, which nothing has to gather.
            let mut gathered = std::io::BufWriter::new(&mut out);
            serde_json::to_writer(&mut gathered, chunk)?;
            gathered.write_all(b"}\n")?;
            gathered.flush()
        });
        if let Some(at) = at {
            self.index.chunk(seq, turn, Part::Middle, &at);
        }
        seq
    }

    /// The same with a chunk in the middle of a message of which there is only the JSON; gives the number.
    pub fn json_chunk(&mut self, turn: Option<&str>, json: &[u8]) -> u64 {
        self.line(turn, Part::Middle, |out| out.extend_from_slice(json))
            .0
    }

    fn line(
        &mut self,
        turn: Option<&str>,
        part: Part<'_>,
        write: impl FnOnce(&mut Vec<u8>),
    ) -> (u64, Range<usize>) {
        if self.prefix.0.as_deref() != turn {
            self.prefix = (turn.map(str::to_owned), record::chunk_prefix(turn));
        }
        let seq = self.index.seq + 1;
        let before = self.pending.len();
        self.pending.extend_from_slice(&self.prefix.1);
        // Writing into memory cannot fail.
        let _ = serde_json::to_writer(&mut self.pending, &seq);
        self.pending.extend_from_slice(b",\"chunk\":");
        let begin = self.pending.len();
        write(&mut self.pending);
        let json = begin..self.pending.len();
        self.pending.extend_from_slice(b"}\n");
        let at = self.range_from(before);
        self.index.chunk(seq, turn, part, &at);
        (seq, json)
    }

    /// Takes down anything else.
    pub fn append(&mut self, record: &Record<'_>) {
        let at = match self.gather(record, LARGE) {
            Some(at) => Some(at),
            None if self.must_gather() => self.gather(record, usize::MAX),
            None => self.write_through(&|mut out| {
                let mut gathered = std::io::BufWriter::new(&mut out);
                serde_json::to_writer(&mut gathered, record)?;
                gathered.write_all(b"\n")?;
                gathered.flush()
            }),
        };
        let Some(at) = at else { return };
        match record {
            Record::Session { at: time, identity } => {
                (*time).clone_into(&mut self.index.updated_at);
                self.index.identified((*identity).clone(), &at);
            }
            Record::Prompt {
                turn_id, message, ..
            } => self.index.prompt(turn_id, id_of(message), &at),
            Record::End {
                turn_id, at: time, ..
            } => {
                (*time).clone_into(&mut self.index.updated_at);
                self.index.end(turn_id, &at);
            }
            Record::Message { message, .. } => self.index.message(id_of(message), &at),
            Record::Recovery { .. } | Record::Decision { .. } => {}
        }
    }

    /// Takes a record down in memory, unless it is larger than a limit in bytes.
    fn gather(&mut self, record: &Record<'_>, limit: usize) -> Option<Range<u64>> {
        let before = self.pending.len();
        let out = Bounded {
            out: &mut self.pending,
            limit: before.saturating_add(limit),
        };
        if serde_json::to_writer(out, record).is_err() {
            self.pending.truncate(before);
            return None;
        }
        self.pending.push(b'\n');
        Some(self.range_from(before))
    }

    fn range_from(&self, before: usize) -> Range<u64> {
        let base = self.file.end();
        base + before as u64..base + self.pending.len() as u64
    }

    /// Whether there is something that the file has to take before the client may see it.
    #[must_use]
    pub fn is_dirty(&self) -> bool {
        self.pending.len() > self.owed
            || self.failed.is_some()
            || self.waiting.is_some()
            || self.lost.is_some()
    }

    /// Whether the file has all that was taken down, what is owed too.
    #[must_use]
    pub fn is_written(&self) -> bool {
        self.pending.is_empty() && self.failed.is_none()
    }

    /// A panic may have left half a line at the end: it is cut off, and the rest read again.
    pub fn mend(&mut self) {
        let whole = memchr::memrchr(b'\n', &self.pending).map_or(0, |at| at + 1);
        self.pending.truncate(whole);
        self.owed = self.owed.min(whole);
        self.prefix = (None, record::chunk_prefix(None));
        // Where it cannot be read, that is told when it is to be read.
        let _ = self.scan();
    }

    /// What was taken down since the last commit may be shown though the disk does not take it: the news
    /// that it does not. It is written with what comes next.
    pub fn owe(&mut self) {
        self.owed = self.pending.len();
        if self.waiting.is_none() {
            self.released = self.index.seq;
        }
    }

    /// See [`LogFile::sync`].
    pub fn sync(&mut self, ticket: u64) -> bool {
        if self.pending.is_empty() {
            // What ends here may not go on for long: thousands of sessions hold nothing for what may come.
            self.pending = Vec::new();
        }
        self.file.sync(ticket)
    }

    /// Brings the card up to date.
    pub fn describe(&mut self) {
        let card = self.card();
        self.file.describe(&card);
    }

    /// What lists show of the session.
    #[must_use]
    pub fn card(&self) -> Card {
        let identity = self.index.identity.clone().unwrap_or_default();
        Card {
            session_id: identity.session_id,
            agent: identity.agent,
            agent_session_id: identity.agent_session_id,
            agent_name: identity.agent_name,
            agent_command: identity.agent_command,
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

    /// Removes all messages; who the session is stays, and its numbers go on.
    ///
    /// # Errors
    /// The disk is full or fails: the log is as it was.
    pub fn clear(&mut self, at: &str, archive: bool) -> Result<(), Error> {
        self.must_be_answered()?;
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
        replaced.map_err(|e| cannot("replaced", &e))?;
        self.pending.clear();
        self.owed = 0;
        self.released = self.index.seq;
        self.scan().map_err(|e| cannot("read", &e))
    }

    /// Removes the log from the disk, or keeps it apart.
    ///
    /// # Errors
    /// The disk fails.
    pub fn remove(&mut self, archive: bool) -> Result<(), Error> {
        self.must_be_answered()?;
        self.file
            .remove(archive)
            .map_err(|e| cannot("removed", &e))?;
        // Nothing is left to be written, nor anything to tell of.
        self.pending.clear();
        self.owed = 0;
        self.index = Index::default();
        Ok(())
    }
}

/// A buffer that takes no more than it may hold.
struct Bounded<'a> {
    out: &'a mut Vec<u8>,
    limit: usize,
}

impl std::io::Write for Bounded<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if bytes.len() > self.limit.saturating_sub(self.out.len()) {
            return Err(std::io::ErrorKind::FileTooLarge.into());
        }
        self.out.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn id_of(message: &Value) -> &str {
    message["id"].as_str().unwrap_or_default()
}

fn cannot(what: &str, why: &std::io::Error) -> Error {
    use std::io::ErrorKind as Io;
    let advice = match why.kind() {
        Io::TimedOut => {
            "what waits is written once the disk answers; see --state-dir and --persist never"
        }
        Io::StorageFull | Io::QuotaExceeded | Io::FileTooLarge => {
            "make room, or use --state-dir or --persist never"
        }
        // What was removed, or changed by another process, is not there for this one any more.
        Io::NotFound | Io::StaleNetworkFileHandle => {
            "close the session (session/close) and open it again (session/ensure)"
        }
        _ => "see --state-dir and --persist never",
    };
    let message = format!("the session's log cannot be {what}: {why}; {advice}");
    Error::new(ErrorKind::Storage, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::store::{Store as _, Volatile};

    #[test]
    fn a_number_that_none_can_follow_is_no_number() {
        let mut file = Volatile.open("a").unwrap();
        let line = r#"{"record":"chunk","turnId":null,"seq":18446744073709551615,"chunk":{"type":"finish-step"}}"#;
        file.append(format!("{line}\nnonsense\n").as_bytes())
            .unwrap();
        let mut log = Log::open(file).unwrap();
        assert_eq!((log.corrupt(), log.seq()), (2, 2));
        assert_eq!(log.chunk(None, &Chunk::FinishStep).0, 3);
    }

    #[test]
    fn a_page_has_rising_numbers_where_lines_were_repeated_or_moved() {
        let mut file = Volatile.open("a").unwrap();
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
