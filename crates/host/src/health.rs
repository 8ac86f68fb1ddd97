//! Health of a running process, updated by its tasks and reported to the core by the loop.

use acpipe_model::process_health::{HealthChange, OutputTail};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Shared health of a process: stderr tail and pending stdin write.
#[derive(Debug, Clone, Default)]
pub struct LiveHealth(Arc<Mutex<Live>>);

#[derive(Debug, Default)]
struct Live {
    stderr: OutputTail,
    pending_write: Option<Instant>,
    /// Position in stderr and pending write as last reported.
    reported: (u64, Option<Instant>),
}

impl LiveHealth {
    fn live(&self) -> MutexGuard<'_, Live> {
        // A panic leaves no state half changed.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds output of the process to stderr's tail.
    pub fn add_stderr(&self, new: &[u8]) {
        self.live().stderr.add(new);
    }

    /// Returns the tail of stderr.
    pub fn stderr(&self) -> String {
        self.live().stderr.text()
    }

    /// Sets since when a write to stdin is pending; `None` once it is complete.
    pub fn set_pending_write(&self, since: Option<Instant>) {
        self.live().pending_write = since;
    }

    /// Takes the changes since the last call.
    pub fn take_change(&self) -> Option<HealthChange> {
        let mut live = self.live();
        let now = (live.stderr.end(), live.pending_write);
        let (at, _) = live.reported;
        if now == live.reported {
            return None;
        }
        live.reported = now;
        let stderr = live.stderr.since(at);
        Some(HealthChange {
            skipped: now.0 - at - stderr.len() as u64,
            stderr,
            pending_write: now.1,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use acpipe_model::process_health::{ProcessHealth, STDERR_TAIL};

    #[test]
    fn each_change_is_reported_once() {
        let health = LiveHealth::default();
        assert_eq!(health.take_change(), None);
        health.add_stderr(b"a");
        health.add_stderr(b"b");
        assert_eq!(health.take_change().unwrap().stderr, b"ab");
        assert_eq!(health.take_change(), None);
        health.add_stderr(b"c");
        let now = Instant::now();
        health.set_pending_write(Some(now));
        let change = health.take_change().unwrap();
        assert_eq!((change.stderr, change.skipped), (b"c".to_vec(), 0));
        assert_eq!(change.pending_write, Some(now));
        // A write that ended before it was observed is not a change.
        health.set_pending_write(Some(now + std::time::Duration::from_secs(1)));
        health.set_pending_write(Some(now));
        assert_eq!(health.take_change(), None);
    }

    #[test]
    fn stderr_reports_add_up_to_the_written_bytes() {
        let health = LiveHealth::default();
        let mut reported = ProcessHealth::default();
        for bytes in [1, STDERR_TAIL + 7, 5 * STDERR_TAIL, 3] {
            health.add_stderr(&vec![b'x'; bytes]);
            reported.update(&health.take_change().unwrap());
            assert_eq!(reported.stderr, health.live().stderr);
        }
    }
}
