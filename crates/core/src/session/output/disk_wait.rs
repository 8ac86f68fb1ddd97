//! Waiting for a disk that does not answer: clients receive nothing that is not in the log, and the session
//! continues until the wait times out.

use super::SessionOutput;
use crate::client_sink::ClientSinks;
use crate::store::AppendProgress;
use acpipe_model::error::Error;
use acpipe_model::limits::{Limits, Timeout};
use std::time::Instant;

#[derive(Debug, Clone, Copy)]
pub(super) struct DiskWait {
    /// When the wait times out; `None` after the timeout, or without a limit.
    until: Option<Instant>,
    /// Number of the last chunk on disk when the wait began. If this number grows, the disk is slow but
    /// answers.
    released: u64,
}

impl SessionOutput {
    /// Writes the pending log records. If the disk does not answer in time, the clients receive them later.
    ///
    /// # Errors
    /// `storage`, also if the pending records exceed their size limit.
    pub fn commit(
        &mut self,
        (now, limits): (Instant, &Limits),
        clients: &mut dyn ClientSinks,
    ) -> Result<(), Error> {
        if let Some(error) = self.log.take_drop_error() {
            return Err(error);
        }
        let mut progress = AppendProgress::Written;
        if self.log.is_waiting() {
            progress = self.log.poll()?;
            // Before the next lines are written, while the log can be read.
            self.catch_up(clients);
        }
        if progress == AppendProgress::Written {
            progress = self.log.commit()?;
        }
        match progress {
            AppendProgress::Written => self.disk_answered(clients),
            AppendProgress::Waiting => {
                self.hold_back((now, limits), clients);
                self.log.check_waiting()?;
            }
        }
        Ok(())
    }

    /// Withholds further chunks from the clients until the disk has answered.
    fn hold_back(&mut self, (now, limits): (Instant, &Limits), clients: &mut dyn ClientSinks) {
        let may_hold = !self.log.is_append_abandoned();
        let released = self.log.released();
        let waits_for_same = |wait: DiskWait| wait.released == released;
        if may_hold && !self.disk_wait.is_some_and(waits_for_same) {
            self.disk_wait = Some(DiskWait {
                until: limits.until(Timeout::Store, now),
                released,
            });
        }
        self.subscribers
            .hold_back(&self.session, released, may_hold, clients);
    }

    /// Ends the wait for the disk. Lagging clients receive the missed chunks when they catch up.
    fn disk_answered(&mut self, clients: &mut dyn ClientSinks) {
        if self.disk_wait.take().is_some() {
            self.subscribers.release(clients);
        }
    }

    /// Gives up the wait for the disk: calls are answered although their clients have not received all
    /// chunks.
    pub fn give_up_disk(
        &mut self,
        (now, limits): (Instant, &Limits),
        clients: &mut dyn ClientSinks,
    ) {
        self.hold_back((now, limits), clients);
        self.log.give_up();
        let released = self.log.released();
        self.disk_wait = Some(DiskWait {
            until: None,
            released,
        });
        self.subscribers.give_up(&self.session, released, clients);
    }

    pub fn disk_timeout(&self) -> Option<Instant> {
        self.disk_wait?.until
    }
}
