//! A simulated disk that fails on purpose, and its content after a crash.

use acpipe_core::store::{AppendProgress, Card, CardQuery, LogFile, Store, StoreEvent};
use acpipe_core::testing::SharedCell;
use acpipe_model::error::{Error, ErrorKind};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::ops::Range;
use std::time::Duration;

/// With at least this patience a caller waits for a slow disk, so the write is done when the call returns.
const PATIENCE_FOR_SLOW_DISK: Duration = Duration::from_secs(1);

/// A pseudorandom generator with a seed, so that a run can be repeated.
#[derive(Debug, Clone)]
pub struct Dice(pub u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        usize::try_from(self.roll() % n as u64).unwrap()
    }

    pub fn percent(&mut self, p: usize) -> bool {
        self.below(100) < p
    }
}

/// Content of one log on the disk.
#[derive(Debug, Clone, Default)]
pub struct StoredLog {
    pub bytes: Vec<u8>,
    /// Number of bytes that certainly survive a crash of the machine.
    pub synced: usize,
    /// The last index that was stored, which may cover more than what is left of the log.
    pub index: Option<Vec<u8>>,
}

#[derive(Debug)]
struct State {
    logs: BTreeMap<String, StoredLog>,
    dice: Dice,
    /// Percentage of writes and syncs that fail.
    failing: usize,
    /// Percentage of writes that are not completed at once.
    slow: usize,
    /// Logs whose delayed writes have been completed.
    answered: BTreeSet<String>,
    /// Cards of the sessions, by session.
    cards: BTreeMap<String, Card>,
    /// Operations that are completed later, in order.
    asked: VecDeque<PendingOperation>,
    failures: u32,
}

/// A pending operation, with its ticket.
#[derive(Debug)]
enum PendingOperation {
    /// Sync of a log, with the log's length at the time of the request.
    Sync(u64, String, usize),
    /// Write of the lines that a log handed to the disk.
    Append(String),
    List(u64),
}

/// The simulated disk; clones share their state.
#[derive(Debug, Clone)]
pub struct Disk(SharedCell<State>);

impl Disk {
    pub fn new(seed: u64, logs: BTreeMap<String, StoredLog>) -> Self {
        Self(SharedCell::new(State {
            logs,
            dice: Dice(seed),
            failing: 0,
            slow: 0,
            answered: BTreeSet::new(),
            cards: BTreeMap::new(),
            asked: VecDeque::new(),
            failures: 0,
        }))
    }

    pub fn fail(&self, percent: usize) {
        self.0.borrow_mut().failing = percent;
    }

    /// Sets the percentage of writes that are not completed at once.
    #[allow(dead_code, reason = "the simulation does so")]
    pub fn set_slow(&self, percent: usize) {
        self.0.borrow_mut().slow = percent;
    }

    #[allow(dead_code, reason = "the simulation does so")]
    pub fn is_slow(&self) -> bool {
        self.0.borrow().slow > 0
    }

    /// Returns `true` if a write is pending.
    #[allow(dead_code, reason = "the simulation does so")]
    pub fn is_awaited(&self) -> bool {
        let asked = &self.0.borrow().asked;
        asked
            .iter()
            .any(|asked| matches!(asked, PendingOperation::Append(_)))
    }

    /// Returns the number of failures so far.
    pub fn failures(&self) -> u32 {
        self.0.borrow().failures
    }

    pub fn logs(&self) -> BTreeMap<String, StoredLog> {
        self.0.borrow().logs.clone()
    }

    pub fn cards(&self) -> BTreeMap<String, Card> {
        self.0.borrow().cards.clone()
    }

    /// Sets cards that exist from the start.
    pub fn with_cards(self, cards: BTreeMap<String, Card>) -> Self {
        self.0.borrow_mut().cards = cards;
        self
    }

    /// Completes the oldest pending sync, list or write, or fails it.
    pub fn sync_next(&self) -> Option<StoreEvent> {
        let mut state = self.0.borrow_mut();
        let asked = state.asked.pop_front()?;
        if let PendingOperation::Append(id) = asked {
            state.answered.insert(id);
            return Some(StoreEvent::Appended);
        }
        let failed = |what| Error::new(ErrorKind::Storage, what);
        let fails = state.fails();
        let (ticket, id, len) = match asked {
            PendingOperation::Sync(ticket, id, len) => (ticket, id, len),
            PendingOperation::Append(_) => unreachable!("answered above"),
            PendingOperation::List(ticket) => {
                let cards = state.cards.values().cloned().collect();
                let outcome = if fails {
                    Err(failed("the list failed"))
                } else {
                    Ok(cards)
                };
                return Some(StoreEvent::Listed { ticket, outcome });
            }
        };
        if fails {
            let outcome = Err(failed("the sync failed"));
            return Some(StoreEvent::Synced { ticket, outcome });
        }
        if let Some(kept) = state.logs.get_mut(&id) {
            kept.synced = kept.synced.max(len);
        }
        let outcome = Ok(());
        Some(StoreEvent::Synced { ticket, outcome })
    }
}

impl State {
    fn fails(&mut self) -> bool {
        let fails = self.failing > 0 && self.dice.percent(self.failing);
        self.failures += u32::from(fails);
        fails
    }
}

impl Store for Disk {
    fn has(&self, id: &str) -> Result<bool, Error> {
        Ok(self.0.borrow().logs.contains_key(id))
    }

    fn open(&mut self, id: &str) -> Result<Box<dyn LogFile>, Error> {
        let mut state = self.0.borrow_mut();
        let end = state.logs.entry(id.to_owned()).or_default().bytes.len();
        Ok(Box::new(File {
            disk: self.clone(),
            id: id.to_owned(),
            end,
            removed: None,
            waiting: None,
        }))
    }

    fn list(&mut self, ticket: u64, _: CardQuery) -> bool {
        self.0
            .borrow_mut()
            .asked
            .push_back(PendingOperation::List(ticket));
        true
    }
}

/// A log of the disk, with the contract of [`LogFile`]: a write is stored as a whole or not at all.
#[derive(Debug)]
struct File {
    disk: Disk,
    id: String,
    end: usize,
    /// Content after the removal: only this handle still has it.
    removed: Option<StoredLog>,
    /// Lines of a pending write, and the tickets of the syncs after it.
    waiting: Option<(Vec<u8>, Vec<u64>)>,
}

impl File {
    fn kept<T>(&mut self, act: impl FnOnce(&mut StoredLog) -> T) -> T {
        if let Some(kept) = &mut self.removed {
            return act(kept);
        }
        let mut state = self.disk.0.borrow_mut();
        act(state.logs.entry(self.id.clone()).or_default())
    }
}

/// A pending write is completed even if the log is closed.
impl Drop for File {
    fn drop(&mut self) {
        let _ = self.appended(PATIENCE_FOR_SLOW_DISK);
    }
}

impl LogFile for File {
    fn end(&self) -> u64 {
        self.end as u64
    }

    fn append_within(&mut self, lines: &[u8], patience: Duration) -> io::Result<AppendProgress> {
        assert!(self.waiting.is_none(), "the last lines are not written yet");
        let mut state = self.disk.0.borrow_mut();
        let slow = state.slow;
        if slow == 0 || patience >= PATIENCE_FOR_SLOW_DISK || !state.dice.percent(slow) {
            drop(state);
            return self.append(lines).map(|()| AppendProgress::Written);
        }
        state
            .asked
            .push_back(PendingOperation::Append(self.id.clone()));
        self.waiting = Some((lines.to_vec(), Vec::new()));
        Ok(AppendProgress::Waiting)
    }

    fn appended(&mut self, patience: Duration) -> io::Result<AppendProgress> {
        let answered = self.disk.0.borrow_mut().answered.remove(&self.id);
        if !answered && patience < PATIENCE_FOR_SLOW_DISK {
            return Ok(match self.waiting {
                Some(_) => AppendProgress::Waiting,
                None => AppendProgress::Written,
            });
        }
        let Some((lines, tickets)) = self.waiting.take() else {
            return Ok(AppendProgress::Written);
        };
        let written = self.append(&lines);
        for ticket in tickets {
            self.sync(ticket);
        }
        written.map(|()| AppendProgress::Written)
    }

    fn is_slow(&self) -> bool {
        self.disk.0.borrow().slow > 0
    }

    fn append(&mut self, lines: &[u8]) -> io::Result<()> {
        assert!(self.waiting.is_none(), "the last lines are not written yet");
        if self.disk.0.borrow_mut().fails() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.kept(|kept| kept.bytes.extend_from_slice(lines));
        self.end += lines.len();
        Ok(())
    }

    fn read(&self, range: Range<u64>) -> io::Result<Vec<u8>> {
        let place = |at: u64| usize::try_from(at).unwrap().min(self.end);
        let range = place(range.start)..place(range.end);
        if let Some(kept) = &self.removed {
            return Ok(kept.bytes[range].to_vec());
        }
        Ok(self.disk.0.borrow().logs[&self.id].bytes[range].to_vec())
    }

    fn cut(&mut self, len: u64) -> io::Result<()> {
        self.end = usize::try_from(len).unwrap();
        let end = self.end;
        self.kept(|kept| kept.bytes.truncate(end));
        Ok(())
    }

    fn sync(&mut self, ticket: u64) -> bool {
        if let Some((_, tickets)) = &mut self.waiting {
            tickets.push(ticket);
            return true;
        }
        let asked = PendingOperation::Sync(ticket, self.id.clone(), self.end);
        self.disk.0.borrow_mut().asked.push_back(asked);
        true
    }

    fn card(&self) -> Option<Card> {
        self.disk.0.borrow().cards.get(&self.id).cloned()
    }

    fn describe(&mut self, card: &Card) {
        if self.removed.is_some() {
            return;
        }
        let mut state = self.disk.0.borrow_mut();
        state.cards.insert(self.id.clone(), card.clone());
    }

    fn index(&self) -> Option<Vec<u8>> {
        self.disk.0.borrow().logs.get(&self.id)?.index.clone()
    }

    fn index_interval(&self) -> Option<u64> {
        Some(1)
    }

    fn store_index(&mut self, index: Vec<u8>) {
        if self.removed.is_none() {
            self.kept(|kept| kept.index = Some(index));
        }
    }

    fn replace(&mut self, lines: &[u8], _: bool) -> io::Result<()> {
        if self.disk.0.borrow_mut().fails() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let bytes = lines.to_vec();
        self.end = bytes.len();
        self.kept(|kept| {
            (kept.bytes, kept.synced) = (bytes, 0);
        });
        Ok(())
    }

    fn remove(&mut self, _: bool) -> io::Result<()> {
        let mut state = self.disk.0.borrow_mut();
        self.removed = state.logs.remove(&self.id);
        state.cards.remove(&self.id);
        Ok(())
    }
}
