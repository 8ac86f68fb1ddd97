//! Storage of a log's lines: the file, and the lines that it does not have yet, including those for a disk that does not answer.
//!
//! Owns the file, the pending lines, the append in progress, and the last chunk that clients may receive. It does not know what a line
//! means: numbers of chunks come in as arguments, and it has no index.
//!
//! Lines stay in memory until the file has them. If the disk does not answer in time, each commit checks it
//! again; until it answers, clients receive nothing that the disk does not have.

use super::{LARGE, storage_error};
use crate::store::{AppendProgress, LogFile, Write};
use acpipe_json::write_json_within;
use acpipe_model::error::Error;
use serde::Serialize;
use std::io;
use std::ops::Range;
use std::time::Duration;

/// Bytes read at a time. The first block is smaller, since most messages are; each next one is twice as large.
const FIRST_BLOCK: u64 = 32 << 10;
const BLOCK: u64 = 256 << 10;

/// Time that the loop waits for the disk before clients receive chunks later than agents produce them.
pub(super) const BRIEF: Duration = Duration::from_millis(5);

/// Limit of the bytes that may wait behind an append that the disk has not answered, beside the largest piece, so
/// that an update of any size passes.
const MOST_WAITING: usize = 32 << 20;

/// Lines of a log in the file and in memory.
#[derive(Debug)]
pub(super) struct LogStorage {
    file: Box<dyn LogFile>,
    /// Lines that the file does not have yet.
    pending: Vec<u8>,
    pending_append: Option<PendingAppend>,
    /// Number of the last chunk that clients may receive: it is in the file or owed.
    released: u64,
    /// Length of the prefix of `pending` that clients may receive even if the disk rejects it.
    released_bytes: usize,
    /// Error of a large record that was written directly to the file; the next commit reports it.
    write_error: Option<io::Error>,
    /// Begin of the file after the last append, if it has lost lines and the index has not been adapted.
    lost_before: Option<u64>,
}

/// Append in progress on a disk that does not answer.
#[derive(Debug)]
struct PendingAppend {
    /// Length of the prefix of `pending` that is being written, in bytes.
    bytes: usize,
    /// Number of the last chunk in that prefix.
    seq: u64,
    /// `true` if no operation waits for the append any more.
    abandoned: bool,
    /// Number of bytes that waited behind the append when they were last counted.
    behind: usize,
    /// Largest number of bytes that were added between two counts.
    largest: usize,
}

impl LogStorage {
    pub(super) fn new(file: Box<dyn LogFile>) -> Self {
        Self {
            file,
            pending: Vec::new(),
            pending_append: None,
            released: 0,
            released_bytes: 0,
            write_error: None,
            lost_before: None,
        }
    }

    pub(super) fn file(&self) -> &dyn LogFile {
        &*self.file
    }

    pub(super) fn file_mut(&mut self) -> &mut dyn LogFile {
        &mut *self.file
    }

    /// Returns the file, for tests to open it again.
    #[cfg(test)]
    pub(super) fn into_file(self) -> Box<dyn LogFile> {
        self.file
    }

    /// Returns the end of the log, including pending lines.
    pub(super) fn end(&self) -> u64 {
        self.file.end() + self.pending.len() as u64
    }

    /// Reads from the file, and beyond its end from the pending lines, which a full disk may reject for a
    /// long time.
    pub(super) fn read(&self, range: Range<u64>) -> io::Result<Vec<u8>> {
        let end = self.file.end();
        if self.pending_append.is_some() && range.start < end {
            // The kernel may block a read of a page that it is writing.
            return Err(io::Error::new(
                io::ErrorKind::TimedOut,
                "the disk does not respond",
            ));
        }
        let mut bytes = if range.start < end {
            self.file.read(range.start..range.end.min(end))?
        } else {
            Vec::new()
        };
        let place = |at: u64| usize::try_from(at.saturating_sub(end)).unwrap_or(usize::MAX);
        let pending = place(range.start)..place(range.end).min(self.pending.len());
        bytes.extend_from_slice(self.pending.get(pending).unwrap_or_default());
        Ok(bytes)
    }

    /// Passes whole lines and their ranges to `take` until it returns `false`; returns the end of the last
    /// line.
    pub(super) fn lines(
        &self,
        range: Range<u64>,
        mut take: impl FnMut(&[u8], Range<u64>) -> bool,
    ) -> io::Result<u64> {
        let mut held: Vec<u8> = Vec::new();
        // Offset of the start of `held`, and of the next block.
        let (mut start, mut next) = (range.start, range.start);
        // Length of the part of `held` without a newline: a long line is searched only once.
        let mut searched = 0;
        let mut size = FIRST_BLOCK;
        while next < range.end {
            let block = self.read(next..range.end.min(next + size))?;
            size = BLOCK.min(2 * size);
            if block.is_empty() {
                break;
            }
            next += block.len() as u64;
            held.extend_from_slice(&block);
            let mut used = 0;
            while let Some(end) = memchr::memchr(b'\n', &held[searched..]) {
                let line = used..searched + end;
                used = line.end + 1;
                searched = used;
                let at = start + line.start as u64..start + used as u64;
                let end = at.end;
                if !take(&held[line], at) {
                    return Ok(end);
                }
            }
            held.drain(..used);
            searched = held.len();
            start += used as u64;
        }
        Ok(start)
    }

    pub(super) fn pending(&self) -> &[u8] {
        &self.pending
    }

    /// Adds a pending line, which `write` appends with its newline; returns the line's range.
    pub(super) fn add(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> Range<u64> {
        let before = self.pending.len();
        write(&mut self.pending);
        let base = self.file.end();
        base + before as u64..base + self.pending.len() as u64
    }

    /// Adds a pending line of JSON; `None` if it is larger than `limit` bytes, and was not added.
    pub(super) fn add_json(&mut self, json: &impl Serialize, limit: usize) -> Option<Range<u64>> {
        let mut is_added = false;
        let at = self.add(|out| {
            let limit = out.len().saturating_add(limit);
            is_added = write_json_within(out, json, limit);
            if is_added {
                out.push(b'\n');
            }
        });
        is_added.then_some(at)
    }

    /// Adds a line whose last member is available as JSON; `head` is everything before that. A large one is written to the
    /// file at once.
    pub(super) fn add_parts(&mut self, head: &[u8], json: &[u8], seq: u64) -> Option<Range<u64>> {
        if json.len() > LARGE && !self.must_buffer(seq) {
            let write = |out: &mut dyn io::Write| {
                out.write_all(head)?;
                out.write_all(json)?;
                out.write_all(b"}\n")
            };
            return self.write_through(&write, seq);
        }
        Some(self.add(|out| {
            for part in [head, json, b"}\n"] {
                out.extend_from_slice(part);
            }
        }))
    }

    /// Cuts off an incomplete pending line, which a panic may have left.
    pub(super) fn cut_incomplete(&mut self) {
        let whole = memchr::memrchr(b'\n', &self.pending).map_or(0, |at| at + 1);
        self.pending.truncate(whole);
        self.released_bytes = self.released_bytes.min(whole);
    }

    /// Drops the pending lines that clients may not receive yet.
    pub(super) fn drop_unreleased(&mut self) {
        self.pending.truncate(self.released_bytes);
    }

    pub(super) fn drop_pending(&mut self) {
        self.pending.clear();
        self.released_bytes = 0;
    }

    /// Frees the buffer of the pending lines if there are none.
    pub(super) fn free_buffer(&mut self) {
        if self.pending.is_empty() {
            self.pending = Vec::new();
        }
    }

    /// Returns `true` if the file has to take something before clients may receive it.
    pub(super) fn is_dirty(&self) -> bool {
        self.pending.len() > self.released_bytes
            || self.write_error.is_some()
            || self.pending_append.is_some()
    }

    /// Returns `true` if the file has every record, including owed ones.
    pub(super) fn is_written(&self) -> bool {
        self.pending.is_empty() && self.write_error.is_none()
    }

    /// Allows clients to receive all pending lines, up to chunk `seq`, even if the disk rejects them.
    pub(super) fn release_pending(&mut self, seq: u64) {
        self.released_bytes = self.pending.len();
        if self.pending_append.is_none() {
            self.released = seq;
        }
    }

    /// Allows clients to receive all chunks up to `seq`.
    pub(super) fn release(&mut self, seq: u64) {
        self.released = seq;
    }

    /// Returns the begin of the file if it has lost lines at an append; `None` on the next call.
    pub(super) fn take_lost(&mut self) -> Option<u64> {
        self.lost_before.take()
    }

    /// Returns the error of a large record; `None` on the next call.
    pub(super) fn take_write_error(&mut self) -> Option<io::Error> {
        self.write_error.take()
    }

    /// Writes all pending lines, the last of which may be of chunk `seq`.
    pub(super) fn write_out(&mut self, patience: Duration, seq: u64) -> io::Result<AppendProgress> {
        if self.pending_append.is_some() && self.settle(patience)? == AppendProgress::Waiting {
            return Ok(AppendProgress::Waiting);
        }
        if self.pending.is_empty() {
            return Ok(AppendProgress::Written);
        }
        if self.file.append_within(&self.pending, patience)? == AppendProgress::Waiting {
            self.pending_append = Some(PendingAppend {
                bytes: self.pending.len(),
                seq,
                abandoned: false,
                behind: 0,
                largest: 0,
            });
            return Ok(AppendProgress::Waiting);
        }
        self.released = seq;
        self.pending.clear();
        self.pending.shrink_to(LARGE);
        self.released_bytes = 0;
        let begin = self.file.begin();
        if begin > 0 {
            self.lost_before = Some(begin);
        }
        Ok(AppendProgress::Written)
    }

    /// Checks whether the disk has answered the append in progress.
    pub(super) fn settle(&mut self, patience: Duration) -> io::Result<AppendProgress> {
        let progress = self.file.appended(patience);
        if matches!(progress, Ok(AppendProgress::Waiting)) {
            return progress;
        }
        if let (Some(pending_append), Ok(_)) = (self.pending_append.take(), &progress) {
            let bytes = pending_append.bytes.min(self.pending.len());
            self.pending.drain(..bytes);
            self.released_bytes = self.released_bytes.saturating_sub(bytes);
            self.released = self.released.max(pending_append.seq);
        }
        progress
    }

    /// Returns the number of the last chunk that clients may receive: it is in the file or owed.
    pub(super) fn released(&self) -> u64 {
        self.released
    }

    /// Returns `true` if an append is in progress that the disk has not answered.
    pub(super) fn is_waiting(&self) -> bool {
        self.pending_append.is_some()
    }

    /// Counts the bytes that wait behind the append in progress; returns an error if they are too many.
    pub(super) fn check_waiting(&mut self) -> Result<(), Error> {
        let pending = self.pending.len();
        let Some(append) = &mut self.pending_append else {
            return Ok(());
        };
        let behind = pending.saturating_sub(append.bytes);
        let added = behind.saturating_sub(append.behind);
        append.behind = behind;
        append.largest = append.largest.max(added);
        if behind - append.largest.min(behind) > MOST_WAITING && !append.abandoned {
            let why = io::Error::new(
                io::ErrorKind::TimedOut,
                "more than 32 MiB wait for the disk, which does not respond",
            );
            return Err(storage_error("write", &why));
        }
        Ok(())
    }

    /// Marks the append in progress as abandoned: no operation waits for it any more. The lines are written
    /// once the disk answers.
    pub(super) fn give_up(&mut self) {
        if let Some(pending_append) = &mut self.pending_append {
            pending_append.abandoned = true;
        }
    }

    /// Returns `true` if [`LogStorage::give_up`] was called and the disk has still not answered.
    pub(super) fn is_append_abandoned(&self) -> bool {
        self.pending_append
            .as_ref()
            .is_some_and(|pending_append| pending_append.abandoned)
    }

    /// Returns `true` if a large record has to stay in memory until the disk takes it.
    pub(super) fn must_buffer(&mut self, seq: u64) -> bool {
        self.file.is_slow() || matches!(self.write_out(BRIEF, seq), Ok(AppendProgress::Waiting))
    }

    /// Writes the pending lines if they are many and the disk answers. A failure is reported by the next commit.
    pub(super) fn write_many(&mut self, seq: u64) {
        if self.pending.len() > LARGE
            && self.write_error.is_none()
            && !self.file.is_slow()
            && let Err(e) = self.write_out(BRIEF, seq)
        {
            self.write_error = Some(e);
        }
    }

    /// Writes all pending records and then a large one; returns the range of the large one.
    pub(super) fn write_through(&mut self, write: &Write<'_>, seq: u64) -> Option<Range<u64>> {
        if self.write_error.is_some() {
            return None;
        }
        let written = self.write_out(BRIEF, seq).and_then(|_| {
            let begin = self.file.end();
            self.file.append_from(write)?;
            Ok(begin..self.file.end())
        });
        written.map_err(|e| self.write_error = Some(e)).ok()
    }
}
