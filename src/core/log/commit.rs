//! Writing of pending records to the file, including to a disk that does not answer.
//!
//! Lines stay in memory until the file has them. If the disk does not answer in time, each commit checks it
//! again; until it answers, clients receive nothing that the disk does not have.

use super::{LARGE, Log, cannot};
use crate::core::error::Error;
use crate::core::store::{Progress, Write};
use std::io;
use std::ops::Range;
use std::time::Duration;

/// Time that the loop waits for the disk before clients receive chunks later than agents produce them.
const BRIEF: Duration = Duration::from_millis(5);

/// Time that the loop waits for the disk if something else depends on the record: a prompt or a decision.
const LONG: Duration = Duration::from_secs(1);

/// Limit of the bytes that may wait for a disk that does not answer.
const MOST_WAITING: usize = 32 << 20;

/// Append in progress on a disk that does not answer.
#[derive(Debug)]
pub(super) struct Waiting {
    /// Length of the prefix of `pending` that is being written, in bytes.
    bytes: usize,
    /// Number of the last chunk in that prefix.
    seq: u64,
    /// `true` if no operation waits for the append any more.
    given_up: bool,
}

impl Log {
    /// Writes all pending records or none; owed records may wait. After [`Progress::Waiting`] no client may
    /// receive the chunks after [`Log::released`].
    ///
    /// # Errors
    /// The disk is full or fails: the pending records are dropped with their numbers.
    pub fn commit(&mut self) -> Result<Progress, Error> {
        self.commit_within(BRIEF)
    }

    /// Writes all pending records, waiting longer than [`Log::commit`], for a record on which more depends
    /// than the output to clients.
    ///
    /// # Errors
    /// As [`Log::commit`]. Also if the disk does not answer: the lines are written once it does.
    pub fn write(&mut self) -> Result<(), Error> {
        let patience = if self.is_given_up() {
            Duration::ZERO
        } else {
            LONG
        };
        match self.commit_within(patience)? {
            Progress::Written => Ok(()),
            Progress::Waiting => Err(no_answer()),
        }
    }

    /// Checks whether the disk has answered, without writing anything more.
    ///
    /// # Errors
    /// As [`Log::commit`].
    pub fn poll(&mut self) -> Result<Progress, Error> {
        self.conclude(|log| log.settle(Duration::ZERO))
    }

    fn commit_within(&mut self, patience: Duration) -> Result<Progress, Error> {
        self.conclude(|log| log.write_out(patience))
    }

    fn conclude(
        &mut self,
        write: impl FnOnce(&mut Self) -> io::Result<Progress>,
    ) -> Result<Progress, Error> {
        let dirty = self.is_dirty();
        let written = match self.failed.take() {
            Some(e) => Err(e),
            None => write(self),
        };
        match written {
            Ok(progress) => Ok(progress),
            Err(e) if dirty => {
                let error = cannot("write", &e);
                if self.released < self.index.seq {
                    self.lost = Some(error.clone());
                }
                self.pending.truncate(self.owed);
                // A read error is reported by the next operation that reads the log.
                let _ = self.scan();
                Err(error)
            }
            Err(_) => Ok(Progress::Written),
        }
    }

    fn write_out(&mut self, patience: Duration) -> io::Result<Progress> {
        if self.waiting.is_some() && self.settle(patience)? == Progress::Waiting {
            return Ok(Progress::Waiting);
        }
        if self.pending.is_empty() {
            return Ok(Progress::Written);
        }
        if self.file.append_within(&self.pending, patience)? == Progress::Waiting {
            self.waiting = Some(Waiting {
                bytes: self.pending.len(),
                seq: self.index.seq,
                given_up: false,
            });
            return Ok(Progress::Waiting);
        }
        self.released = self.index.seq;
        self.pending.clear();
        self.pending.shrink_to(LARGE);
        self.owed = 0;
        if self.file.begin() > 0 {
            self.index.forget_before(self.file.begin());
        }
        Ok(Progress::Written)
    }

    /// Waits until the disk has answered the append in progress: the log cannot be read before.
    ///
    /// # Errors
    /// As [`Log::write`].
    pub fn must_be_answered(&mut self) -> Result<(), Error> {
        if self.waiting.is_some() {
            self.write()?;
        }
        Ok(())
    }

    /// Checks whether the disk has answered the append in progress.
    fn settle(&mut self, patience: Duration) -> io::Result<Progress> {
        let progress = self.file.appended(patience);
        if matches!(progress, Ok(Progress::Waiting)) {
            return progress;
        }
        if let (Some(waiting), Ok(_)) = (self.waiting.take(), &progress) {
            let bytes = waiting.bytes.min(self.pending.len());
            self.pending.drain(..bytes);
            self.owed = self.owed.saturating_sub(bytes);
            self.released = self.released.max(waiting.seq);
        }
        progress
    }

    /// Returns the error that dropped chunks which clients may have received; `None` on the next call.
    pub fn take_lost(&mut self) -> Option<Error> {
        self.lost.take()
    }

    /// Returns the number of the last chunk that clients may receive: it is in the file or owed.
    #[must_use]
    pub fn released(&self) -> u64 {
        self.released
    }

    /// Returns `true` if an append is in progress that the disk has not answered.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        self.waiting.is_some()
    }

    /// Returns `true` if an append is in progress and more than 32 MiB are pending.
    #[must_use]
    pub fn is_overfull(&self) -> bool {
        self.is_waiting() && self.pending.len() > MOST_WAITING
    }

    /// Marks the append in progress as abandoned: no operation waits for it any more. The lines are written
    /// once the disk answers.
    pub fn give_up(&mut self) {
        if let Some(waiting) = &mut self.waiting {
            waiting.given_up = true;
        }
    }

    /// Returns `true` if [`Log::give_up`] was called and the disk has still not answered.
    #[must_use]
    pub fn is_given_up(&self) -> bool {
        self.waiting
            .as_ref()
            .is_some_and(|waiting| waiting.given_up)
    }

    /// Returns `true` if a large record has to stay in memory until the disk takes it.
    pub(super) fn must_gather(&mut self) -> bool {
        self.file.is_slow() || matches!(self.write_out(BRIEF), Ok(Progress::Waiting))
    }

    /// Writes all pending records and then a large one; returns the range of the large one.
    pub(super) fn write_through(&mut self, write: &Write<'_>) -> Option<Range<u64>> {
        if self.failed.is_some() {
            return None;
        }
        let written = self.write_out(BRIEF).and_then(|_| {
            let begin = self.file.end();
            self.file.append_from(write)?;
            Ok(begin..self.file.end())
        });
        written.map_err(|e| self.failed = Some(e)).ok()
    }
}

/// Returns the error for a disk that does not answer.
#[must_use]
pub fn no_answer() -> Error {
    let why = io::Error::new(io::ErrorKind::TimedOut, "the disk does not respond");
    cannot("write", &why)
}
