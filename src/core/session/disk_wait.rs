//! A disk that does not answer: clients receive nothing that is not in the log, and the session goes on until it has waited
//! for too long.

use super::SessionMachine;
use crate::core::client_sink::ClientSinks;
use crate::core::cx::Cx;
use crate::core::error::Error;
use crate::core::limits::{Limits, Wait};
use crate::core::log::no_answer;
use crate::core::store::Progress;
use std::time::Instant;

/// A session waits for the disk.
#[derive(Debug, Clone, Copy)]
pub struct DiskWait {
    /// When it stops waiting; `None` where it has stopped, or never does.
    pub until: Option<Instant>,
    /// The last chunk that the disk had then: where it has more, it answers, if slowly.
    released: u64,
}

impl SessionMachine {
    /// Writes what was logged. Where the disk does not answer in time, the clients are sent it when it has.
    ///
    /// # Errors
    /// `storage`, also where more waits for the disk than may.
    pub fn commit(
        &mut self,
        (now, limits): (Instant, &Limits),
        clients: &mut impl ClientSinks,
    ) -> Result<(), Error> {
        if let Some(error) = self.log.take_lost() {
            return Err(error);
        }
        let mut progress = Progress::Written;
        if self.log.is_waiting() {
            progress = self.log.poll()?;
            // Before the next lines are written, while the log can be read.
            self.catch_up(clients);
        }
        if progress == Progress::Written {
            progress = self.log.commit()?;
        }
        match progress {
            Progress::Written => self.disk_answered(clients),
            Progress::Waiting => {
                self.hold_back((now, limits), clients);
                if self.log.is_overfull() && !self.log.is_given_up() {
                    return Err(no_answer());
                }
            }
        }
        Ok(())
    }

    /// The clients receive nothing more until the disk has answered.
    pub(super) fn hold_back(
        &mut self,
        (now, limits): (Instant, &Limits),
        clients: &mut impl ClientSinks,
    ) {
        let may_hold = !self.log.is_given_up();
        let released = self.log.released();
        let waits_for_same = |wait: DiskWait| wait.released == released;
        if may_hold && !self.disk_wait.is_some_and(waits_for_same) {
            self.disk_wait = Some(DiskWait {
                until: limits.until(Wait::Store, now),
                released,
            });
        }
        self.subscribers
            .hold_back(&self.id, released, may_hold, clients);
    }

    /// The disk has answered. Lagging clients are sent what they have not received when they catch up.
    fn disk_answered(&mut self, clients: &mut impl ClientSinks) {
        if self.disk_wait.take().is_some() {
            self.subscribers.release(clients);
        }
    }

    /// Nobody waits for the disk any more: calls are answered though their clients have not received all chunks.
    pub(super) fn give_up_disk<C: ClientSinks>(&mut self, cx: &mut Cx<'_, C>) {
        self.hold_back((cx.now, &cx.shared.settings.limits), cx.clients);
        self.log.give_up();
        let released = self.log.released();
        self.disk_wait = Some(DiskWait {
            until: None,
            released,
        });
        self.subscribers.give_up(&self.id, released, cx.clients);
    }
}
