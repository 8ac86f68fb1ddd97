//! The queue of the store's thread, bounded in number and in bytes.
//!
//! A job that another one covers is merged with it: a newer card of a session replaces the one that waits, a sync or a list
//! that has not begun serves whoever asks for it meanwhile. When the disk is so slow that the queue fills all the same, a
//! job is given back that no call waits for: a card (what it shows is read from the log where it is missing or old), its
//! removal, or a sync that no call waits for. A sync or list that a call waits for is always queued: one sync at most for
//! each open log, and one list.

use super::pool::descriptors;
use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How many cards may wait to be written or removed: all sessions that may be open by default, and as many that were closed
/// meanwhile.
const MOST_CARDS: usize = 2048;

/// How many bytes of cards may wait: a card is below 1 KiB as a rule, and each has room for 8.
const MOST_CARD_BYTES: usize = 16 << 20;

/// How many files may wait for a sync that no call waits for. Each holds a file descriptor, beyond those of the pool: an
/// eighth of the descriptors at most.
const MOST_FREE_SYNCS: usize = 128;

/// Something that takes long.
#[derive(Debug)]
pub enum Job {
    /// Sync a file for these tickets.
    Sync(Arc<fs::File>, Vec<u64>),
    /// Write a card.
    Describe(PathBuf, Vec<u8>),
    /// Remove a card.
    Remove(PathBuf),
    /// Read the cards in a directory for these tickets.
    List(PathBuf, Vec<u64>),
}

/// The jobs that have not begun, in order.
#[derive(Debug)]
pub struct Jobs {
    queue: VecDeque<Job>,
    most_free_syncs: usize,
    /// How many cards wait, to be written or removed.
    cards: usize,
    card_bytes: usize,
}

impl Default for Jobs {
    fn default() -> Self {
        Self {
            queue: VecDeque::new(),
            most_free_syncs: (descriptors() / 8).min(MOST_FREE_SYNCS),
            cards: 0,
            card_bytes: 0,
        }
    }
}

impl Jobs {
    /// Takes out the next job.
    pub fn pop(&mut self) -> Option<Job> {
        let job = self.queue.pop_front()?;
        self.forget(&job);
        Some(job)
    }

    /// Adds a job, or merges it with one that waits.
    ///
    /// # Errors
    /// The queue is full: the job is given back. No call waits for it.
    pub fn push(&mut self, job: Job) -> Result<(), Job> {
        match job {
            Job::Sync(file, tickets) => self.push_sync(file, tickets),
            Job::List(sessions, tickets) => {
                let waiting = self.queue.iter_mut().find_map(|job| match job {
                    Job::List(same, waiting) if *same == sessions => Some(waiting),
                    _ => None,
                });
                match waiting {
                    Some(waiting) => waiting.extend(tickets),
                    None => self.queue.push_back(Job::List(sessions, tickets)),
                }
                Ok(())
            }
            Job::Describe(..) | Job::Remove(_) => self.push_card(job),
        }
    }

    fn push_sync(&mut self, file: Arc<fs::File>, tickets: Vec<u64>) -> Result<(), Job> {
        let (mut waiting, mut free) = (None, 0);
        for job in &mut self.queue {
            if let Job::Sync(same, waiters) = job {
                free += usize::from(waiters.is_empty());
                if Arc::ptr_eq(same, &file) {
                    waiting = Some(waiters);
                }
            }
        }
        match waiting {
            // What was appended meanwhile is synced with it: it has not begun.
            Some(waiting) => waiting.extend(tickets),
            None if tickets.is_empty() && free >= self.most_free_syncs => {
                return Err(Job::Sync(file, tickets));
            }
            None => self.queue.push_back(Job::Sync(file, tickets)),
        }
        Ok(())
    }

    /// Adds the writing or the removal of a card; what was to be done to the same card before is not done.
    fn push_card(&mut self, job: Job) -> Result<(), Job> {
        let path = job.card_path();
        if let Some(at) = self.queue.iter().position(|job| job.card_path() == path)
            && let Some(before) = self.queue.remove(at)
        {
            self.forget(&before);
        }
        let bytes = job.card_len();
        if self.cards >= MOST_CARDS || self.card_bytes.saturating_add(bytes) > MOST_CARD_BYTES {
            return Err(job);
        }
        self.cards += 1;
        self.card_bytes += bytes;
        self.queue.push_back(job);
        Ok(())
    }

    /// Takes a job out of the count.
    fn forget(&mut self, job: &Job) {
        self.cards -= usize::from(job.card_path().is_some());
        self.card_bytes -= job.card_len();
    }
}

impl Job {
    /// The card that it writes or removes.
    fn card_path(&self) -> Option<&Path> {
        match self {
            Self::Describe(path, _) | Self::Remove(path) => Some(path),
            Self::Sync(..) | Self::List(..) => None,
        }
    }

    /// How long the card is that it writes.
    fn card_len(&self) -> usize {
        match self {
            Self::Describe(_, card) => card.len(),
            Self::Remove(_) | Self::Sync(..) | Self::List(..) => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn describe(path: &str, card: &str) -> Job {
        Job::Describe(path.into(), card.into())
    }

    /// The queue, in short.
    fn drain(jobs: &mut Jobs) -> Vec<String> {
        let all = std::iter::from_fn(|| jobs.pop());
        let short = |job| match job {
            Job::Sync(_, tickets) => format!("sync {tickets:?}"),
            Job::Describe(path, card) => {
                format!("{} {}", path.display(), String::from_utf8(card).unwrap())
            }
            Job::Remove(path) => format!("remove {}", path.display()),
            Job::List(_, tickets) => format!("list {tickets:?}"),
        };
        all.map(short).collect()
    }

    fn file() -> Arc<fs::File> {
        Arc::new(fs::File::open("/dev/null").unwrap())
    }

    #[test]
    fn newer_card_replaces_the_one_that_waits() {
        let mut jobs = Jobs::default();
        jobs.push(describe("a", "1")).unwrap();
        jobs.push(describe("b", "1")).unwrap();
        jobs.push(describe("a", "2")).unwrap();
        assert_eq!(drain(&mut jobs), ["b 1", "a 2"]);
        // A session that was removed, and another one of its id.
        jobs.push(describe("a", "1")).unwrap();
        jobs.push(Job::Remove("a".into())).unwrap();
        assert_eq!(drain(&mut jobs), ["remove a"]);
        jobs.push(Job::Remove("a".into())).unwrap();
        jobs.push(describe("a", "3")).unwrap();
        assert_eq!(drain(&mut jobs), ["a 3"]);
        assert_eq!((jobs.cards, jobs.card_bytes), (0, 0));
    }

    #[test]
    fn syncs_of_one_file_and_lists_are_merged() {
        let (a, b) = (file(), file());
        let mut jobs = Jobs::default();
        let list = |ticket| Job::List("sessions".into(), vec![ticket]);
        jobs.push(Job::Sync(Arc::clone(&a), vec![])).unwrap();
        jobs.push(Job::Sync(Arc::clone(&b), vec![1])).unwrap();
        jobs.push(list(2)).unwrap();
        jobs.push(Job::Sync(Arc::clone(&a), vec![3])).unwrap();
        jobs.push(list(4)).unwrap();
        assert_eq!(drain(&mut jobs), ["sync [3]", "sync [1]", "list [2, 4]"]);
        jobs.push(Job::Sync(a, vec![5])).unwrap();
        assert_eq!(drain(&mut jobs), ["sync [5]"]);
    }

    #[test]
    fn full_queue_gives_back_cards_only() {
        let mut jobs = Jobs::default();
        for n in 0..MOST_CARDS {
            jobs.push(describe(&n.to_string(), "x")).unwrap();
        }
        assert!(jobs.push(describe("more", "x")).is_err());
        // Another card in the place of one has room.
        jobs.push(describe("7", "y")).unwrap();
        jobs.push(Job::Sync(file(), vec![1])).unwrap();
        jobs.push(Job::List("sessions".into(), vec![2])).unwrap();
        jobs.pop().unwrap();
        jobs.push(describe("more", "x")).unwrap();
        assert!(jobs.push(describe("another", "x")).is_err());
    }

    #[test]
    fn cards_are_bounded_in_bytes() {
        let mut jobs = Jobs::default();
        let half = "x".repeat(MOST_CARD_BYTES / 2);
        jobs.push(describe("a", &half)).unwrap();
        jobs.push(describe("b", &half)).unwrap();
        assert!(jobs.push(describe("c", "x")).is_err());
        jobs.push(describe("b", "x")).unwrap();
        jobs.push(describe("c", "x")).unwrap();
    }

    #[test]
    fn full_queue_gives_back_only_syncs_that_no_call_waits_for() {
        let mut jobs = Jobs::default();
        for _ in 0..jobs.most_free_syncs {
            jobs.push(Job::Sync(file(), vec![])).unwrap();
        }
        assert!(jobs.push(Job::Sync(file(), vec![])).is_err());
        jobs.push(Job::Sync(file(), vec![1])).unwrap();
        assert_eq!(drain(&mut jobs).pop().unwrap(), "sync [1]");
    }
}
