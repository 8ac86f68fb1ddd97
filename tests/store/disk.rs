//! A disk that fails on purpose, and what is left of it after a crash.

use acpipe::core::error::{Error, ErrorKind};
use acpipe::core::store::{Card, LogFile, Progress, Store, StoreEvent};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::ops::Range;
use std::rc::Rc;
use std::time::Duration;

/// Who waits for so long has the answer of a slow disk.
const PATIENT: Duration = Duration::from_secs(1);

/// A generator that repeats itself: a run is known by its seed.
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

    /// A number below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        usize::try_from(self.roll() % n as u64).unwrap()
    }

    pub fn percent(&mut self, p: usize) -> bool {
        self.below(100) < p
    }
}

/// What is on the disk of one log.
#[derive(Debug, Clone, Default)]
pub struct Kept {
    pub bytes: Vec<u8>,
    /// How much of it outlasts a crash of the machine for sure.
    pub synced: usize,
}

#[derive(Debug)]
struct State {
    logs: BTreeMap<String, Kept>,
    dice: Dice,
    /// How often of a hundred a write or a sync fails.
    failing: usize,
    /// How often of a hundred it does not answer a write at once.
    slow: usize,
    /// The logs whose writes it has answered meanwhile.
    answered: BTreeSet<String>,
    /// What is shown of sessions.
    cards: BTreeMap<String, Card>,
    /// What is to be answered later.
    asked: VecDeque<Asked>,
    failures: u32,
}

/// What was asked, and the answer's number.
#[derive(Debug)]
enum Asked {
    /// To sync a log: how long that was then.
    Sync(u64, String, usize),
    /// To write what a log has given to the disk.
    Append(String),
    List(u64),
}

/// The disk; every copy is the same one.
#[derive(Debug, Clone)]
pub struct Disk(Rc<RefCell<State>>);

impl Disk {
    pub fn new(seed: u64, logs: BTreeMap<String, Kept>) -> Self {
        Self(Rc::new(RefCell::new(State {
            logs,
            dice: Dice(seed),
            failing: 0,
            slow: 0,
            answered: BTreeSet::new(),
            cards: BTreeMap::new(),
            asked: VecDeque::new(),
            failures: 0,
        })))
    }

    pub fn fail(&self, percent: usize) {
        self.0.borrow_mut().failing = percent;
    }

    /// How often of a hundred the disk does not answer a write at once.
    #[allow(dead_code, reason = "the simulation does so")]
    pub fn set_slow(&self, percent: usize) {
        self.0.borrow_mut().slow = percent;
    }

    #[allow(dead_code, reason = "the simulation does so")]
    pub fn is_slow(&self) -> bool {
        self.0.borrow().slow > 0
    }

    /// Whether a write was not answered.
    #[allow(dead_code, reason = "the simulation does so")]
    pub fn is_awaited(&self) -> bool {
        let asked = &self.0.borrow().asked;
        asked.iter().any(|asked| matches!(asked, Asked::Append(_)))
    }

    /// How often something failed.
    pub fn failures(&self) -> u32 {
        self.0.borrow().failures
    }

    pub fn logs(&self) -> BTreeMap<String, Kept> {
        self.0.borrow().logs.clone()
    }

    /// The cards, by session.
    pub fn cards(&self) -> BTreeMap<String, Card> {
        self.0.borrow().cards.clone()
    }

    /// Cards that were there before.
    pub fn with_cards(self, cards: BTreeMap<String, Card>) -> Self {
        self.0.borrow_mut().cards = cards;
        self
    }

    /// Does the oldest sync that was asked for, or fails to; the same with lists, and with writes that were not answered.
    pub fn sync_next(&self) -> Option<StoreEvent> {
        let mut state = self.0.borrow_mut();
        let asked = state.asked.pop_front()?;
        if let Asked::Append(id) = asked {
            state.answered.insert(id);
            return Some(StoreEvent::Appended);
        }
        let failed = |what| Error::new(ErrorKind::Storage, what);
        let fails = state.fails();
        let (ticket, id, len) = match asked {
            Asked::Sync(ticket, id, len) => (ticket, id, len),
            Asked::Append(_) => unreachable!("answered above"),
            Asked::List(ticket) => {
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

    fn list(&mut self, ticket: u64) -> bool {
        self.0.borrow_mut().asked.push_back(Asked::List(ticket));
        true
    }
}

/// A log on it, by the contract of [`LogFile`]: all of a write is there or nothing.
#[derive(Debug)]
struct File {
    disk: Disk,
    id: String,
    end: usize,
    /// What it is after it was removed: nobody else finds it.
    removed: Option<Kept>,
    /// Lines that the disk has not answered, and the tickets of syncs after them.
    waiting: Option<(Vec<u8>, Vec<u64>)>,
}

impl File {
    fn kept<T>(&mut self, act: impl FnOnce(&mut Kept) -> T) -> T {
        if let Some(kept) = &mut self.removed {
            return act(kept);
        }
        let mut state = self.disk.0.borrow_mut();
        act(state.logs.entry(self.id.clone()).or_default())
    }
}

/// A write that the disk has not answered ends though the log is closed.
impl Drop for File {
    fn drop(&mut self) {
        let _ = self.appended(PATIENT);
    }
}

impl LogFile for File {
    fn end(&self) -> u64 {
        self.end as u64
    }

    fn append_within(&mut self, lines: &[u8], patience: Duration) -> io::Result<Progress> {
        assert!(self.waiting.is_none(), "the last lines are not written yet");
        let mut state = self.disk.0.borrow_mut();
        let slow = state.slow;
        if slow == 0 || patience >= PATIENT || !state.dice.percent(slow) {
            drop(state);
            return self.append(lines).map(|()| Progress::Written);
        }
        state.asked.push_back(Asked::Append(self.id.clone()));
        self.waiting = Some((lines.to_vec(), Vec::new()));
        Ok(Progress::Waiting)
    }

    fn appended(&mut self, patience: Duration) -> io::Result<Progress> {
        let answered = self.disk.0.borrow_mut().answered.remove(&self.id);
        if !answered && patience < PATIENT {
            return Ok(match self.waiting {
                Some(_) => Progress::Waiting,
                None => Progress::Written,
            });
        }
        let Some((lines, tickets)) = self.waiting.take() else {
            return Ok(Progress::Written);
        };
        let written = self.append(&lines);
        for ticket in tickets {
            self.sync(ticket);
        }
        written.map(|()| Progress::Written)
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
        let asked = Asked::Sync(ticket, self.id.clone(), self.end);
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

    fn replace(&mut self, lines: &[u8], _: bool) -> io::Result<()> {
        if self.disk.0.borrow_mut().fails() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let bytes = lines.to_vec();
        self.end = bytes.len();
        self.kept(|kept| *kept = Kept { bytes, synced: 0 });
        Ok(())
    }

    fn remove(&mut self, _: bool) -> io::Result<()> {
        let mut state = self.disk.0.borrow_mut();
        self.removed = state.logs.remove(&self.id);
        state.cards.remove(&self.id);
        Ok(())
    }
}
