//! Commits of a log: all pending records or none, and the errors of those that the disk does not take.

use super::storage::{BRIEF, LogStorage};
use super::{Log, storage_error};
use crate::store::AppendProgress;
use acpipe_model::error::Error;
use std::io;
use std::time::Duration;

/// Time that the loop waits for the disk if something else depends on the record: a prompt or a decision.
const LONG: Duration = Duration::from_secs(1);

impl Log {
    /// Returns the number of the last chunk that clients may receive: it is in the file or owed.
    pub fn released(&self) -> u64 {
        self.storage.released()
    }

    /// Returns `true` if an append is in progress that the disk has not answered.
    pub fn is_waiting(&self) -> bool {
        self.storage.is_waiting()
    }

    /// Returns `true` if [`Log::give_up`] was called and the disk has still not answered.
    pub fn is_append_abandoned(&self) -> bool {
        self.storage.is_append_abandoned()
    }

    /// Counts the bytes that wait behind the append in progress.
    ///
    /// # Errors
    /// They are too many.
    pub fn check_waiting(&mut self) -> Result<(), Error> {
        self.storage.check_waiting()
    }

    /// Marks the append in progress as abandoned: no operation waits for it any more. The lines are written
    /// once the disk answers.
    pub fn give_up(&mut self) {
        self.storage.give_up();
    }

    /// Writes all pending records or none; owed records may wait. After [`AppendProgress::Waiting`] no client may
    /// receive the chunks after [`Log::released`].
    ///
    /// # Errors
    /// The disk is full or fails: the pending records are dropped with their numbers.
    pub fn commit(&mut self) -> Result<AppendProgress, Error> {
        self.conclude(|storage, seq| storage.write_out(BRIEF, seq))
    }

    /// Writes all pending records, waiting longer than [`Log::commit`], for a record on which more depends
    /// than the output to clients.
    ///
    /// # Errors
    /// As [`Log::commit`]. Also if the disk does not answer: the lines are written once it does.
    pub fn write(&mut self) -> Result<(), Error> {
        let patience = if self.storage.is_append_abandoned() {
            Duration::ZERO
        } else {
            LONG
        };
        match self.conclude(|storage, seq| storage.write_out(patience, seq))? {
            AppendProgress::Written => Ok(()),
            AppendProgress::Waiting => Err(disk_timeout()),
        }
    }

    /// Checks whether the disk has answered, without writing anything more.
    ///
    /// # Errors
    /// As [`Log::commit`].
    pub fn poll(&mut self) -> Result<AppendProgress, Error> {
        self.conclude(|storage, _| storage.settle(Duration::ZERO))
    }

    fn conclude(
        &mut self,
        write: impl FnOnce(&mut LogStorage, u64) -> io::Result<AppendProgress>,
    ) -> Result<AppendProgress, Error> {
        let (dirty, seq) = (self.is_dirty(), self.index.seq);
        let written = match self.storage.take_write_error() {
            Some(e) => Err(e),
            None => write(&mut self.storage, seq),
        };
        self.forget_lost();
        match written {
            Ok(progress) => Ok(progress),
            Err(e) if dirty => {
                let error = storage_error("write", &e);
                if self.storage.released() < seq {
                    self.drop_error = Some(Box::new(error.clone()));
                }
                self.storage.drop_unreleased();
                // A read error is reported by the next operation that reads the log.
                let _ = self.scan();
                Err(error)
            }
            Err(_) => Ok(AppendProgress::Written),
        }
    }

    /// Forgets the lines that the file has lost at an append.
    pub(super) fn forget_lost(&mut self) {
        if let Some(begin) = self.storage.take_lost() {
            self.index.forget_before(begin);
        }
    }

    /// Returns `true` if a large record has to stay in memory until the disk takes it.
    pub(super) fn must_buffer(&mut self) -> bool {
        let must_buffer = self.storage.must_buffer(self.index.seq);
        self.forget_lost();
        must_buffer
    }

    /// Waits until the disk has answered the append in progress: the log cannot be read before.
    ///
    /// # Errors
    /// As [`Log::write`].
    pub fn wait_for_append(&mut self) -> Result<(), Error> {
        if self.storage.is_waiting() {
            self.write()?;
        }
        Ok(())
    }

    /// Returns the error that dropped chunks which clients may have received; `None` on the next call.
    pub fn take_drop_error(&mut self) -> Option<Error> {
        self.drop_error.take().map(|error| *error)
    }
}

pub fn disk_timeout() -> Error {
    let why = io::Error::new(io::ErrorKind::TimedOut, "the disk does not respond");
    storage_error("write", &why)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::LARGE;
    use crate::store::{MemoryStore, Store as _};

    #[test]
    fn history_is_written_in_pieces() {
        let mut log = Log::open(MemoryStore.open("a").unwrap()).unwrap();
        let text = "x".repeat(LARGE / 3);
        for n in 0..10 {
            let message = serde_json::json!({ "id": n.to_string(), "role": "user", "text": text });
            log.append_message("2026-01-02T03:04:05Z", message.to_string().as_bytes());
            assert!(
                log.storage.pending().len() <= LARGE,
                "{}",
                log.storage.pending().len()
            );
        }
        log.write().unwrap();
        let log = Log::open(log.storage.into_file()).unwrap();
        assert_eq!((log.count(), log.corrupt()), (10, 0));
    }
}
