//! Detection of slow disks.
//!
//! On a local disk an append takes microseconds, and the loop does it itself: a thread costs 12 µs of latency
//! and about as much CPU for each commit of a paced stream (`docs/internals/performance.md`). A thread
//! appends if the file system is on another machine or in another program, while a sync has lasted for
//! [`SLOW`], and for [`CAUTION`] after an append that did.

use super::worker::Worker;
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Duration from which an operation counts as slow.
const SLOW: Duration = Duration::from_millis(100);

/// Time for which the disk counts as slow after a slow append.
const CAUTION: Duration = Duration::from_secs(60);

/// Duration from which an append counts as hanging; the loop then waits for other appends less than usual.
const HANG: Duration = Duration::from_secs(1);

/// Maximum time that the loop waits for an append while another one hangs.
const BESIDE_HANG: Duration = Duration::from_millis(50);

/// Observed speed of the disk with the logs.
#[derive(Debug, Clone)]
pub struct Speed(Arc<SpeedState>);

#[derive(Debug, Default)]
struct SpeedState {
    /// Whether the file system is on another machine or in another program.
    is_remote: AtomicBool,
    /// Time until which the disk counts as slow.
    slow_until: Mutex<Option<Instant>>,
    /// Whether an append has been pending for [`HANG`].
    hangs: AtomicBool,
}

impl Speed {
    pub fn new() -> Self {
        Self(Arc::default())
    }

    /// Records the file system of a log.
    pub fn note_place(&self, log: &fs::File) {
        self.0.is_remote.store(is_remote(log), Ordering::Relaxed);
    }

    /// Returns `true` if the loop must not wait for the disk.
    pub fn is_slow(&self, worker: &Worker) -> bool {
        if self.0.is_remote.load(Ordering::Relaxed) || worker.lasts_for(SLOW) {
            return true;
        }
        let until = *self
            .0
            .slow_until
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        until.is_some_and(|until| Instant::now() < until)
    }

    /// Runs an append and records how long it took.
    pub fn measure<T>(&self, append: impl FnOnce() -> T) -> T {
        let began = Instant::now();
        let outcome = append();
        self.note(began.elapsed());
        outcome
    }

    fn note(&self, took: Duration) {
        if took >= SLOW {
            let mut until = self
                .0
                .slow_until
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            *until = Instant::now().checked_add(CAUTION);
        }
    }

    /// Returns the time that the loop may wait for an append, at most `wanted`.
    pub fn patience(&self, wanted: Duration) -> Duration {
        if self.0.hangs.load(Ordering::Relaxed) {
            wanted.min(BESIDE_HANG)
        } else {
            wanted
        }
    }

    /// Records that an append has been pending for `time`.
    pub fn note_waiting(&self, time: Duration) {
        if time >= HANG {
            self.0.hangs.store(true, Ordering::Relaxed);
        }
    }

    /// Records that an append has ended, so the disk responds.
    pub fn record_answer(&self) {
        self.0.hangs.store(false, Ordering::Relaxed);
    }

    #[cfg(test)]
    pub fn slow() -> Self {
        let speed = Self::new();
        speed.0.is_remote.store(true, Ordering::Relaxed);
        speed
    }
}

/// File system types that are on another machine or in another program (`statfs(2)`).
#[cfg(target_os = "linux")]
const REMOTE: [i64; 12] = [
    0x6969,      // NFS
    0x517b,      // SMB
    0xff53_4d42, // CIFS
    0xfe53_4d42, // SMB2
    0x6573_5546, // FUSE, virtiofs
    0x0102_1997, // 9P
    0x5346_414f, // AFS
    0x00c3_6400, // Ceph
    0x7375_7245, // Coda
    0x0bd0_0bd0, // Lustre
    0x0116_1970, // GFS2
    0x7461_636f, // OCFS2
];

#[cfg(target_os = "linux")]
fn is_remote(file: &fs::File) -> bool {
    let Ok(found) = rustix::fs::fstatfs(file) else {
        return false;
    };
    #[allow(
        clippy::useless_conversion,
        reason = "its type differs between architectures"
    )]
    let magic = i64::try_from(found.f_type).unwrap_or_default();
    REMOTE.contains(&(magic & 0xffff_ffff))
}

#[cfg(not(target_os = "linux"))]
fn is_remote(_: &fs::File) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disk_is_slow_for_a_while_after_a_slow_append() {
        let (worker, _events) = Worker::start().unwrap();
        let speed = Speed::new();
        speed.note(SLOW / 2);
        assert!(!speed.is_slow(&worker));
        speed.note(SLOW);
        assert!(speed.is_slow(&worker));
    }
}
