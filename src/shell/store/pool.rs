//! The log files that are open, of which there are fewer than sessions where the system allows few: the one that was not
//! used for longest is closed for another, and opened again when it is used.

use rustix::process::{Resource, getrlimit};
use std::cell::{Cell, RefCell};
use std::fs;
use std::rc::{Rc, Weak};
use std::sync::Arc;

/// The fewest log files that may be open.
const LEAST: usize = 4;

/// How many descriptors this process may have.
pub fn descriptors() -> usize {
    let allowed = getrlimit(Resource::Nofile).maximum;
    allowed.map_or(usize::MAX, |n| usize::try_from(n).unwrap_or(usize::MAX))
}

/// The log files of a store.
#[derive(Debug, Clone)]
pub struct Pool(Rc<Shared>);

#[derive(Debug)]
struct Shared {
    /// How many may be open.
    limit: Cell<usize>,
    slots: RefCell<Vec<Weak<Slot>>>,
    /// Counts uses: a clock that only goes on.
    uses: Cell<u64>,
}

/// The place of one log file's handle.
#[derive(Debug, Default)]
pub struct Slot {
    handle: RefCell<Option<Arc<fs::File>>>,
    used: Cell<u64>,
}

impl Pool {
    /// For as many files as half of the descriptors that this process may have: the others are for agents.
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

    /// A slot for the handle of a file that was opened.
    pub fn slot(&self, handle: fs::File) -> Rc<Slot> {
        let slot = Rc::new(Slot::default());
        self.put(&slot, handle);
        let mut slots = self.0.slots.borrow_mut();
        if slots.len() == slots.capacity() {
            // It grows with the sessions that are open, not with those that ever were.
            slots.retain(|slot| slot.strong_count() > 0);
        }
        slots.push(Rc::downgrade(&slot));
        drop(slots);
        slot
    }

    /// Gives a slot another handle.
    pub fn put(&self, slot: &Slot, handle: fs::File) {
        slot.handle.replace(Some(Arc::new(handle)));
        self.touch(slot);
    }

    /// The handle of a slot, if its file is open.
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

    /// Closes files until one more may be open.
    pub fn make_room(&self) {
        let limit = self.0.limit.get();
        // Where there is room for all sessions that ever were, nothing has to be looked at.
        if self.0.slots.borrow().len() < limit {
            return;
        }
        self.close_beyond(limit - 1);
    }

    /// The system has no descriptor any more, though fewer files are open than may be: closes half of them. False
    /// where there is none.
    pub fn close_half(&self) -> bool {
        let open = self.open().len();
        self.close_beyond(open / 2);
        open > 0
    }

    /// The slots whose files are open.
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
    /// Forgets the file, which stays locked while something is written to it.
    pub fn leave(&self) {
        self.handle.take();
    }

    /// Closes the file. Others may have it at once, even while it still reaches the disk.
    pub fn close(&self) {
        if let Some(handle) = self.handle.take() {
            let _ = handle.unlock();
        }
    }
}
