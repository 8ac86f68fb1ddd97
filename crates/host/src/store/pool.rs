//! Pool of open log files. If the system allows fewer files than there are sessions, the least recently used
//! file is closed for another one, and reopened when it is used.

use rustix::process::{Resource, getrlimit};
use std::fs;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Minimum number of log files that may be open.
const LEAST: usize = 4;

/// Returns the maximum number of descriptors of this process.
pub fn descriptors() -> usize {
    let allowed = getrlimit(Resource::Nofile).maximum;
    allowed.map_or(usize::MAX, |n| usize::try_from(n).unwrap_or(usize::MAX))
}

/// Pool of a store's log files.
#[derive(Debug, Clone)]
pub struct Pool(Arc<PoolState>);

#[derive(Debug)]
struct PoolState {
    /// Maximum number of open files.
    limit: AtomicUsize,
    slots: Mutex<Vec<Weak<LogSlot>>>,
    /// Number of uses, which serves as a clock for `LogSlot::used`.
    uses: AtomicU64,
}

/// Slot for the handle of one log file.
#[derive(Debug, Default)]
pub struct LogSlot {
    handle: Mutex<Option<Arc<fs::File>>>,
    used: AtomicU64,
}

/// Locks a mutex. A panic leaves none of the values half changed.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Pool {
    /// Creates a pool for half of the descriptors that this process may have; the other half is for agents.
    pub fn new() -> Self {
        Self::with_limit(descriptors() / 2)
    }

    pub fn with_limit(limit: usize) -> Self {
        Self(Arc::new(PoolState {
            limit: AtomicUsize::new(limit.max(LEAST)),
            slots: Mutex::default(),
            uses: AtomicU64::default(),
        }))
    }

    /// Creates a slot for an open file.
    pub fn slot(&self, handle: fs::File) -> Arc<LogSlot> {
        let slot = Arc::new(LogSlot::default());
        self.put(&slot, handle);
        let mut slots = lock(&self.0.slots);
        if slots.len() == slots.capacity() {
            // Cleaning up only now bounds the list by the open sessions, at low cost.
            slots.retain(|slot| slot.strong_count() > 0);
        }
        slots.push(Arc::downgrade(&slot));
        drop(slots);
        slot
    }

    /// Sets the handle of a slot.
    pub fn put(&self, slot: &LogSlot, handle: fs::File) {
        *lock(&slot.handle) = Some(Arc::new(handle));
        self.touch(slot);
    }

    /// Returns the handle of a slot; `None` if its file is closed.
    pub fn get(&self, slot: &LogSlot) -> Option<Arc<fs::File>> {
        let handle = lock(&slot.handle).clone()?;
        self.touch(slot);
        Some(handle)
    }

    fn touch(&self, slot: &LogSlot) {
        let uses = self.0.uses.fetch_add(1, Ordering::Relaxed) + 1;
        slot.used.store(uses, Ordering::Relaxed);
    }

    /// Closes files until one more may be opened.
    pub fn make_room(&self) {
        let limit = self.0.limit.load(Ordering::Relaxed);
        // Shortcut: with fewer slots than the limit, no file has to be closed.
        if lock(&self.0.slots).len() < limit {
            return;
        }
        self.close_beyond(limit - 1);
    }

    /// Closes half of the open files, when the system has run out of descriptors before the pool's limit.
    /// Returns `false` if none was open.
    pub fn close_half(&self) -> bool {
        let open = self.open().len();
        self.close_beyond(open / 2);
        open > 0
    }

    /// Returns the slots whose files are open.
    fn open(&self) -> Vec<Arc<LogSlot>> {
        let mut slots = lock(&self.0.slots);
        slots.retain(|slot| slot.strong_count() > 0);
        let open = slots.iter().filter_map(Weak::upgrade);
        open.filter(|slot| lock(&slot.handle).is_some()).collect()
    }

    fn close_beyond(&self, count: usize) {
        let mut open = self.open();
        let excess = open.len().saturating_sub(count);
        open.sort_by_key(|slot| slot.used.load(Ordering::Relaxed));
        for slot in open.into_iter().take(excess) {
            slot.close();
        }
    }
}

impl LogSlot {
    /// Drops the handle without unlocking: the file stays locked while another thread writes to it.
    pub fn detach(&self) {
        lock(&self.handle).take();
    }

    /// Unlocks and closes the file. Another process can open it at once, even while data is still being
    /// flushed to the disk.
    pub fn close(&self) {
        let handle = lock(&self.handle).take();
        if let Some(handle) = handle {
            let _ = handle.unlock();
        }
    }
}
