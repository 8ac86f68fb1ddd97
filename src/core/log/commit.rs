//! Writing of what was taken down, also to a disk that does not answer.
//!
//! Lines stay in memory until the file has them. A disk that does not answer in time is asked again with each commit; until
//! it has answered, clients receive nothing of what it does not have.

use super::{LARGE, Log, cannot};
use crate::core::error::Error;
use crate::core::store::{Progress, Write};
use std::io;
use std::ops::Range;
use std::time::Duration;

/// How long the loop waits for the disk before clients receive chunks later than agents produce them.
const BRIEF: Duration = Duration::from_millis(5);

/// How long the loop waits for the disk where something else depends on the record: a prompt, a decision.
const LONG: Duration = Duration::from_secs(1);

/// How much may wait for a disk that does not answer, in bytes.
const MOST_WAITING: usize = 32 << 20;

/// Lines that a disk that does not answer is writing.
#[derive(Debug)]
pub(super) struct Waiting {
    /// How many bytes of `pending`, from its beginning.
    bytes: usize,
    /// The number of the last chunk in them.
    seq: u64,
    /// Whether nobody waits for them any more.
    given_up: bool,
}

impl Log {
    /// Writes what was taken down since the last time: all of it or nothing. What is owed may wait. After
    /// [`Progress::Waiting`] no client may receive the chunks after [`Log::released`].
    ///
    /// # Errors
    /// The disk is full or fails: what was taken down is forgotten, with its numbers.
    pub fn commit(&mut self) -> Result<Progress, Error> {
        self.commit_within(BRIEF)
    }

    /// Writes what was taken down, since more depends on it than what clients receive.
    ///
    /// # Errors
    /// As [`Log::commit`]; or the disk does not answer: then the lines are written once it does.
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

    /// Looks whether the disk has answered, and gives it nothing more.
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
                let error = cannot("written", &e);
                if self.released < self.index.seq {
                    self.lost = Some(error.clone());
                }
                self.pending.truncate(self.owed);
                // Where it cannot be read either, that is told when it is to be read.
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

    /// Waits for the answer of the disk to what it was given before: until then the log cannot be read.
    ///
    /// # Errors
    /// As [`Log::write`].
    pub fn must_be_answered(&mut self) -> Result<(), Error> {
        if self.waiting.is_some() {
            self.write()?;
        }
        Ok(())
    }

    /// Looks whether the disk has answered.
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

    /// Why chunks were forgotten that clients may have been given; told once.
    pub fn take_lost(&mut self) -> Option<Error> {
        self.lost.take()
    }

    /// The number of the last chunk that clients may receive: the file has it, or it is owed.
    #[must_use]
    pub fn released(&self) -> u64 {
        self.released
    }

    /// Whether the disk has not answered yet.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        self.waiting.is_some()
    }

    /// Whether more waits for the disk than may.
    #[must_use]
    pub fn is_overfull(&self) -> bool {
        self.is_waiting() && self.pending.len() > MOST_WAITING
    }

    /// Nobody waits for the answer of the disk any more. What was taken down is written once it answers.
    pub fn give_up(&mut self) {
        if let Some(waiting) = &mut self.waiting {
            waiting.given_up = true;
        }
    }

    /// Whether [`Log::give_up`] was called and the disk has still not answered.
    #[must_use]
    pub fn is_given_up(&self) -> bool {
        self.waiting
            .as_ref()
            .is_some_and(|waiting| waiting.given_up)
    }

    /// Whether a large line has to be in memory until the disk takes it.
    pub(super) fn must_gather(&mut self) -> bool {
        self.file.is_slow() || matches!(self.write_out(BRIEF), Ok(Progress::Waiting))
    }

    /// Writes all that was taken down, and a large line after it; gives where it is.
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

/// The error of a disk that does not answer.
#[must_use]
pub fn no_answer() -> Error {
    let why = io::Error::new(io::ErrorKind::TimedOut, "the disk does not answer");
    cannot("written", &why)
}
