//! Queue of the store's thread, bounded in number and in bytes.
//!
//! A job that covers another one is merged with it: a newer card or index of a session replaces the queued one,
//! and a sync or list that has not begun serves further requests. If the disk is so slow that the queue still
//! fills, jobs that no call waits for are rejected: a card or an index (the log is read if it is missing or
//! old), its removal, or such a sync. A sync or list that a call waits for is always queued: at most one sync
//! per open log, and one list.

use super::pool::descriptors;
use acpipe_core::agent_session_record::AgentSessionRecord;
use acpipe_core::store::CardQuery;
use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Maximum number of queued writes and removals of cards and indexes: all sessions that may be open by default, and as
/// many that were closed meanwhile.
const MOST_CARDS: usize = 2048;

/// Maximum total size of queued cards and indexes in bytes: 8 KiB each, while a card is usually below 1 KiB.
const MOST_CARD_BYTES: usize = 16 << 20;

/// Maximum number of queued syncs that no call waits for. Each holds a file descriptor in addition to those
/// of the pool, so this is also limited to an eighth of the descriptors.
const MOST_FREE_SYNCS: usize = 128;

/// Slow operation on the disk.
#[derive(Debug)]
pub enum DiskJob {
    /// Syncs a file for these tickets.
    Sync(Arc<fs::File>, Vec<u64>),
    /// Writes a card.
    Describe(PathBuf, Vec<u8>),
    /// Writes an index.
    Index(PathBuf, Vec<u8>),
    /// Removes a card or an index.
    Remove(PathBuf),
    /// Reads the cards in a directory that are selected for each ticket.
    List(PathBuf, Vec<(u64, CardQuery)>),
    /// Ends the claims of the sessions in a directory on the id that an agent gave to this session.
    EndClaims(PathBuf, String, Box<AgentSessionRecord>),
}

/// Queued jobs in order.
#[derive(Debug)]
pub struct Jobs {
    queue: VecDeque<DiskJob>,
    most_free_syncs: usize,
    /// Number of queued writes and removals of cards and indexes.
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
    /// Takes the next job.
    pub fn pop(&mut self) -> Option<DiskJob> {
        let job = self.queue.pop_front()?;
        self.forget(&job);
        Some(job)
    }

    /// Adds a job, or merges it with a queued one.
    ///
    /// # Errors
    /// The queue is full. The job, which no call waits for, is returned.
    pub fn push(&mut self, job: DiskJob) -> Result<(), DiskJob> {
        match job {
            DiskJob::Sync(file, tickets) => self.push_sync(file, tickets),
            DiskJob::List(sessions, tickets) => {
                let waiting = self.queue.iter_mut().find_map(|job| match job {
                    DiskJob::List(same, waiting) if *same == sessions => Some(waiting),
                    _ => None,
                });
                match waiting {
                    Some(waiting) => waiting.extend(tickets),
                    None => self.queue.push_back(DiskJob::List(sessions, tickets)),
                }
                Ok(())
            }
            DiskJob::EndClaims(..) => {
                self.queue.push_back(job);
                Ok(())
            }
            DiskJob::Describe(..) | DiskJob::Index(..) | DiskJob::Remove(_) => self.push_card(job),
        }
    }

    fn push_sync(&mut self, file: Arc<fs::File>, tickets: Vec<u64>) -> Result<(), DiskJob> {
        let (mut waiting, mut free) = (None, 0);
        for job in &mut self.queue {
            if let DiskJob::Sync(same, waiters) = job {
                free += usize::from(waiters.is_empty());
                if Arc::ptr_eq(same, &file) {
                    waiting = Some(waiters);
                }
            }
        }
        match waiting {
            // The queued sync has not begun, so it includes everything appended so far.
            Some(waiting) => waiting.extend(tickets),
            None if tickets.is_empty() && free >= self.most_free_syncs => {
                return Err(DiskJob::Sync(file, tickets));
            }
            None => self.queue.push_back(DiskJob::Sync(file, tickets)),
        }
        Ok(())
    }

    /// Adds a write or removal of a card or index, replacing a queued job for the same file.
    fn push_card(&mut self, job: DiskJob) -> Result<(), DiskJob> {
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

    /// Subtracts a job from the counters.
    fn forget(&mut self, job: &DiskJob) {
        self.cards -= usize::from(job.card_path().is_some());
        self.card_bytes -= job.card_len();
    }
}

impl DiskJob {
    /// Returns the path of the card or index that the job writes or removes.
    fn card_path(&self) -> Option<&Path> {
        match self {
            Self::Describe(path, _) | Self::Index(path, _) | Self::Remove(path) => Some(path),
            Self::Sync(..) | Self::List(..) | Self::EndClaims(..) => None,
        }
    }

    /// Returns the size of the card or index that the job writes.
    fn card_len(&self) -> usize {
        match self {
            Self::Describe(_, bytes) | Self::Index(_, bytes) => bytes.len(),
            Self::Remove(_) | Self::Sync(..) | Self::List(..) | Self::EndClaims(..) => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn describe(path: &str, card: &str) -> DiskJob {
        DiskJob::Describe(path.into(), card.into())
    }

    /// Returns the queued jobs as text.
    fn drain(jobs: &mut Jobs) -> Vec<String> {
        let all = std::iter::from_fn(|| jobs.pop());
        let short = |job| match job {
            DiskJob::Sync(_, tickets) => format!("sync {tickets:?}"),
            DiskJob::Describe(path, card) => {
                format!("{} {}", path.display(), String::from_utf8(card).unwrap())
            }
            DiskJob::Index(path, _) => format!("index {}", path.display()),
            DiskJob::Remove(path) => format!("remove {}", path.display()),
            DiskJob::List(_, calls) => {
                let tickets: Vec<u64> = calls.iter().map(|(ticket, _)| *ticket).collect();
                format!("list {tickets:?}")
            }
            DiskJob::EndClaims(_, session, _) => format!("end claims for {session}"),
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
        // A removed session, and a new one with the same id.
        jobs.push(describe("a", "1")).unwrap();
        jobs.push(DiskJob::Remove("a".into())).unwrap();
        assert_eq!(drain(&mut jobs), ["remove a"]);
        jobs.push(DiskJob::Remove("a".into())).unwrap();
        jobs.push(describe("a", "3")).unwrap();
        assert_eq!(drain(&mut jobs), ["a 3"]);
        assert_eq!((jobs.cards, jobs.card_bytes), (0, 0));
    }

    #[test]
    fn syncs_of_one_file_and_lists_are_merged() {
        let (a, b) = (file(), file());
        let mut jobs = Jobs::default();
        let list = |ticket| DiskJob::List("sessions".into(), vec![(ticket, CardQuery::default())]);
        jobs.push(DiskJob::Sync(Arc::clone(&a), vec![])).unwrap();
        jobs.push(DiskJob::Sync(Arc::clone(&b), vec![1])).unwrap();
        jobs.push(list(2)).unwrap();
        jobs.push(DiskJob::Sync(Arc::clone(&a), vec![3])).unwrap();
        jobs.push(list(4)).unwrap();
        assert_eq!(drain(&mut jobs), ["sync [3]", "sync [1]", "list [2, 4]"]);
        jobs.push(DiskJob::Sync(a, vec![5])).unwrap();
        assert_eq!(drain(&mut jobs), ["sync [5]"]);
    }

    #[test]
    fn full_queue_rejects_only_cards() {
        let mut jobs = Jobs::default();
        for n in 0..MOST_CARDS {
            jobs.push(describe(&n.to_string(), "x")).unwrap();
        }
        assert!(jobs.push(describe("more", "x")).is_err());
        // A card that replaces a queued one has room.
        jobs.push(describe("7", "y")).unwrap();
        jobs.push(DiskJob::Sync(file(), vec![1])).unwrap();
        jobs.push(DiskJob::List(
            "sessions".into(),
            vec![(2, CardQuery::default())],
        ))
        .unwrap();
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
            jobs.push(DiskJob::Sync(file(), vec![])).unwrap();
        }
        assert!(jobs.push(DiskJob::Sync(file(), vec![])).is_err());
        jobs.push(DiskJob::Sync(file(), vec![1])).unwrap();
        assert_eq!(drain(&mut jobs).pop().unwrap(), "sync [1]");
    }
}
