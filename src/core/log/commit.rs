//! Writing of pending records to the file, including to a disk that does not answer.
//!
//! Lines stay in memory until the file has them. If the disk does not answer in time, each commit checks it
//! again; until it answers, clients receive nothing that the disk does not have.

use super::{LARGE, Log, storage_error};
use crate::core::error::Error;
use crate::core::store::{AppendProgress, Write};
use std::io;
use std::ops::Range;
use std::time::Duration;

/// Time that the loop waits for the disk before clients receive chunks later than agents produce them.
const BRIEF: Duration = Duration::from_millis(5);

/// Time that the loop waits for the disk if something else depends on the record: a prompt or a decision.
const LONG: Duration = Duration::from_secs(1);

/// Limit of the bytes that may wait behind an append that the disk has not answered, beside the largest piece, so
/// that an update of any size passes.
const MOST_WAITING: usize = 32 << 20;

/// Append in progress on a disk that does not answer.
#[derive(Debug)]
pub(super) struct PendingAppend {
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

impl Log {
    /// Writes all pending records or none; owed records may wait. After [`AppendProgress::Waiting`] no client may
    /// receive the chunks after [`Log::released`].
    ///
    /// # Errors
    /// The disk is full or fails: the pending records are dropped with their numbers.
    pub fn commit(&mut self) -> Result<AppendProgress, Error> {
        self.commit_within(BRIEF)
    }

    /// Writes all pending records, waiting longer than [`Log::commit`], for a record on which more depends
    /// than the output to clients.
    ///
    /// # Errors
    /// As [`Log::commit`]. Also if the disk does not answer: the lines are written once it does.
    pub fn write(&mut self) -> Result<(), Error> {
        let patience = if self.is_append_abandoned() {
            Duration::ZERO
        } else {
            LONG
        };
        match self.commit_within(patience)? {
            AppendProgress::Written => Ok(()),
            AppendProgress::Waiting => Err(disk_timeout()),
        }
    }

    /// Checks whether the disk has answered, without writing anything more.
    ///
    /// # Errors
    /// As [`Log::commit`].
    pub fn poll(&mut self) -> Result<AppendProgress, Error> {
        self.conclude(|log| log.settle(Duration::ZERO))
    }

    fn commit_within(&mut self, patience: Duration) -> Result<AppendProgress, Error> {
        self.conclude(|log| log.write_out(patience))
    }

    fn conclude(
        &mut self,
        write: impl FnOnce(&mut Self) -> io::Result<AppendProgress>,
    ) -> Result<AppendProgress, Error> {
        let dirty = self.is_dirty();
        let written = match self.write_error.take() {
            Some(e) => Err(e),
            None => write(self),
        };
        match written {
            Ok(progress) => Ok(progress),
            Err(e) if dirty => {
                let error = storage_error("write", &e);
                if self.released < self.index.seq {
                    self.drop_error = Some(Box::new(error.clone()));
                }
                self.pending.truncate(self.released_bytes);
                // A read error is reported by the next operation that reads the log.
                let _ = self.scan();
                Err(error)
            }
            Err(_) => Ok(AppendProgress::Written),
        }
    }

    fn write_out(&mut self, patience: Duration) -> io::Result<AppendProgress> {
        if self.pending_append.is_some() && self.settle(patience)? == AppendProgress::Waiting {
            return Ok(AppendProgress::Waiting);
        }
        if self.pending.is_empty() {
            return Ok(AppendProgress::Written);
        }
        if self.file.append_within(&self.pending, patience)? == AppendProgress::Waiting {
            self.pending_append = Some(PendingAppend {
                bytes: self.pending.len(),
                seq: self.index.seq,
                abandoned: false,
                behind: 0,
                largest: 0,
            });
            return Ok(AppendProgress::Waiting);
        }
        self.released = self.index.seq;
        self.pending.clear();
        self.pending.shrink_to(LARGE);
        self.released_bytes = 0;
        if self.file.begin() > 0 {
            self.index.forget_before(self.file.begin());
        }
        Ok(AppendProgress::Written)
    }

    /// Waits until the disk has answered the append in progress: the log cannot be read before.
    ///
    /// # Errors
    /// As [`Log::write`].
    pub fn wait_for_append(&mut self) -> Result<(), Error> {
        if self.pending_append.is_some() {
            self.write()?;
        }
        Ok(())
    }

    /// Checks whether the disk has answered the append in progress.
    fn settle(&mut self, patience: Duration) -> io::Result<AppendProgress> {
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

    /// Returns the error that dropped chunks which clients may have received; `None` on the next call.
    pub fn take_drop_error(&mut self) -> Option<Error> {
        self.drop_error.take().map(|error| *error)
    }

    /// Returns the number of the last chunk that clients may receive: it is in the file or owed.
    #[must_use]
    pub fn released(&self) -> u64 {
        self.released
    }

    /// Returns `true` if an append is in progress that the disk has not answered.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        self.pending_append.is_some()
    }

    /// Counts the bytes that wait behind the append in progress; returns an error if they are too many.
    pub fn check_waiting(&mut self) -> Result<(), Error> {
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
    pub fn give_up(&mut self) {
        if let Some(pending_append) = &mut self.pending_append {
            pending_append.abandoned = true;
        }
    }

    /// Returns `true` if [`Log::give_up`] was called and the disk has still not answered.
    #[must_use]
    pub fn is_append_abandoned(&self) -> bool {
        self.pending_append
            .as_ref()
            .is_some_and(|pending_append| pending_append.abandoned)
    }

    /// Returns `true` if a large record has to stay in memory until the disk takes it.
    pub(super) fn must_buffer(&mut self) -> bool {
        self.file.is_slow() || matches!(self.write_out(BRIEF), Ok(AppendProgress::Waiting))
    }

    /// Writes all pending records, if the disk answers. A failure is reported by the next commit.
    pub(super) fn write_piece(&mut self) {
        if let Err(e) = self.write_out(BRIEF) {
            self.write_error = Some(e);
        }
    }

    /// Writes all pending records and then a large one; returns the range of the large one.
    pub(super) fn write_through(&mut self, write: &Write<'_>) -> Option<Range<u64>> {
        if self.write_error.is_some() {
            return None;
        }
        let written = self.write_out(BRIEF).and_then(|_| {
            let begin = self.file.end();
            self.file.append_from(write)?;
            Ok(begin..self.file.end())
        });
        written.map_err(|e| self.write_error = Some(e)).ok()
    }
}

/// Returns the error for a disk that does not answer.
#[must_use]
pub fn disk_timeout() -> Error {
    let why = io::Error::new(io::ErrorKind::TimedOut, "the disk does not respond");
    storage_error("write", &why)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::store::{MemoryStore, Store as _};

    #[test]
    fn history_is_written_in_pieces() {
        let mut log = Log::open(MemoryStore.open("a").unwrap()).unwrap();
        let text = "x".repeat(LARGE / 3);
        for n in 0..10 {
            let message = serde_json::json!({ "id": n.to_string(), "role": "user", "text": text });
            log.append_message("2026-01-02T03:04:05Z", message.to_string().as_bytes());
            assert!(log.pending.len() <= LARGE, "{}", log.pending.len());
        }
        log.write().unwrap();
        let log = Log::open(log.file).unwrap();
        assert_eq!((log.count(), log.corrupt()), (10, 0));
    }
}
