//! Pool of open log files. If the system allows fewer files than there are sessions, the least recently used
//! file is closed for another one, and reopened when it is used.

use rustix::process::{Resource, getrlimit};
use std::cell::{Cell, RefCell};
use std::fs;
use std::rc::{Rc, Weak};
use std::sync::Arc;

/// Minimum number of log files that may be open.
const LEAST: usize = 4;

/// Returns the maximum number of descriptors of this process.
pub fn descriptors() -> usize {
    let allowed = getrlimit(Resource::Nofile).maximum;
    allowed.map_or(usize::MAX, |n| usize::try_from(n).unwrap_or(usize::MAX))
}

/// Pool of a store's log files.
#[derive(Debug, Clone)]
pub struct Pool(Rc<Shared>);

#[derive(Debug)]
struct Shared {
    /// Maximum number of open files.
    limit: Cell<usize>,
    slots: RefCell<Vec<Weak<Slot>>>,
    /// Number of uses, which serves as a clock for `Slot::used`.
    uses: Cell<u64>,
}

/// Slot for the handle of one log file.
#[derive(Debug, Default)]
pub struct Slot {
    handle: RefCell<Option<Arc<fs::File>>>,
    used: Cell<u64>,
}

impl Pool {
    /// Creates a pool for half of the descriptors that this process may have; the other half is for agents.
    pub fn new() -> Self {
        Self::with_limit(descriptors() / 2)
    }

    pub fn with_limit(limit: usize) -> Self {
        Self(Rc::new(Shared {
            limit: Cell::new(limit.max(LEAST)),
            slots: RefCell::default(),
            uses: Cell::default(),
        }))
    }

    /// Creates a slot for an open file.
    pub fn slot(&self, handle: fs::File) -> Rc<Slot> {
        let slot = Rc::new(Slot::default());
        self.put(&slot, handle);
        let mut slots = self.0.slots.borrow_mut();
        if slots.len() == slots.capacity() {
            // Cleaning up only now bounds the list by the open sessions, at low cost.
            slots.retain(|slot| slot.strong_count() > 0);
        }
        slots.push(Rc::downgrade(&slot));
        drop(slots);
        slot
    }

    /// Sets the handle of a slot.
    pub fn put(&self, slot: &Slot, handle: fs::File) {
        slot.handle.replace(Some(Arc::new(handle)));
        self.touch(slot);
    }

    /// Returns the handle of a slot; `None` if its file is closed.
    pub fn get(&self, slot: &Slot) -> Option<Arc<fs::File>> {
        let handle = slot.handle.borrow().clone()?;
        self.touch(slot);
        Some(handle)
    }

    fn touch(&self, slot: &Slot) {
        let uses = self.0.uses.get() + 1;
        self.0.uses.set(uses);
        slot.used.set(uses);
    }

    /// Closes files until one more may be opened.
    pub fn make_room(&self) {
        let limit = self.0.limit.get();
        // Shortcut: with fewer slots than the limit, no file has to be closed.
        if self.0.slots.borrow().len() < limit {
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
    fn open(&self) -> Vec<Rc<Slot>> {
        let mut slots = self.0.slots.borrow_mut();
        slots.retain(|slot| slot.strong_count() > 0);
        let open = slots.iter().filter_map(Weak::upgrade);
        open.filter(|slot| slot.handle.borrow().is_some()).collect()
    }

    fn close_beyond(&self, count: usize) {
        let mut open = self.open();
        let excess = open.len().saturating_sub(count);
        open.sort_by_key(|slot| slot.used.get());
        for slot in open.into_iter().take(excess) {
            slot.close();
        }
    }
}

impl Slot {
    /// Drops the handle without unlocking: the file stays locked while another thread writes to it.
    pub fn detach(&self) {
        self.handle.take();
    }

    /// Unlocks and closes the file. Another process can open it at once, even while data is still being
    /// flushed to the disk.
    pub fn close(&self) {
        if let Some(handle) = self.handle.take() {
            let _ = handle.unlock();
        }
    }
}
