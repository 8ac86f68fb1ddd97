//! Thread for slow operations: syncs, cards and lists. It runs jobs in order, and finishes the queue when the
//! program ends.

use super::jobs::{DiskJob, Jobs};
use super::replaced::put;
use super::{cards, claims, names, unlinked};
use acpipe_core::agent_session_record::AgentSessionRecord;
use acpipe_core::store::{Card, CardQuery, StoreEvent};
use acpipe_model::error::{Error, ErrorKind};
use std::collections::VecDeque;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;
use tracing::{debug, warn};

/// Maximum number of events queued for the loop before the thread waits: the loop takes one per iteration,
/// and a list has the cards of all sessions.
const MOST_EVENTS: usize = 8;

/// Maximum time that the end of the program waits for the disk.
const LAST_WAIT: Duration = Duration::from_secs(5);

/// Ticket of a sync that no call waits for.
const NO_TICKET: u64 = 0;

/// Handle of the thread.
#[derive(Debug, Clone)]
pub struct Worker(Arc<Thread>);

#[derive(Debug)]
struct Thread {
    state: Arc<WorkerState>,
}

/// State shared with the thread.
#[derive(Debug, Default)]
struct WorkerState {
    queue: Mutex<WorkerQueue>,
    work: Condvar,
    done: Notify,
    /// Whether a job runs, or has just ended; read without the lock.
    is_busy: AtomicBool,
}

#[derive(Debug, Default)]
struct WorkerQueue {
    jobs: Jobs,
    events: VecDeque<JobResult>,
    /// Start time of the running job.
    busy_since: Option<Instant>,
    /// Whether the loop must check for finished appends.
    appended: bool,
    closed: bool,
    ended: bool,
}

/// Result of a job for one or more tickets.
#[derive(Debug)]
enum JobResult {
    Synced(VecDeque<u64>, Result<(), Error>),
    Listed(VecDeque<(u64, Result<Vec<Card>, Error>)>),
}

impl JobResult {
    /// Takes the event for the next ticket, and whether it was the last.
    fn next(&mut self) -> (Option<StoreEvent>, bool) {
        match self {
            Self::Synced(tickets, outcome) => {
                let outcome = outcome.clone();
                let next = tickets.pop_front();
                let event = next.map(|ticket| StoreEvent::Synced { ticket, outcome });
                (event, tickets.is_empty())
            }
            Self::Listed(lists) => {
                let next = lists.pop_front();
                let event = next.map(|(ticket, outcome)| StoreEvent::Listed { ticket, outcome });
                (event, lists.is_empty())
            }
        }
    }
}

/// Receiving end of the store's events.
#[derive(Debug)]
pub struct StoreEvents(Arc<WorkerState>);

impl StoreEvents {
    /// Waits for the next event; never ends.
    pub async fn next(&mut self) -> StoreEvent {
        loop {
            let done = self.0.done.notified();
            if let Some(event) = self.0.take_event() {
                return event;
            }
            done.await;
        }
    }

    /// Returns the events of a store that never sends any.
    #[must_use]
    pub fn none() -> Self {
        Self(Arc::default())
    }
}

impl WorkerState {
    fn queue(&self) -> MutexGuard<'_, WorkerQueue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take_event(&self) -> Option<StoreEvent> {
        let mut queue = self.queue();
        if std::mem::take(&mut queue.appended) {
            return Some(StoreEvent::Appended);
        }
        while let Some(event) = queue.events.front_mut() {
            let (event, is_last) = event.next();
            if is_last {
                queue.events.pop_front();
                // The thread may wait for room in the queue.
                self.work.notify_one();
            }
            if event.is_some() {
                return event;
            }
        }
        None
    }

    /// Waits for the next job; `None` when the queue is empty and closed.
    fn next_job(&self) -> Option<DiskJob> {
        let mut queue = self.queue();
        queue.busy_since = None;
        self.is_busy.store(false, Ordering::Relaxed);
        loop {
            // Events are not taken any more while the program ends.
            if queue.closed || queue.events.len() < MOST_EVENTS {
                match queue.jobs.pop() {
                    Some(job) => {
                        queue.busy_since = Some(Instant::now());
                        self.is_busy.store(true, Ordering::Relaxed);
                        return Some(job);
                    }
                    None if queue.closed => return None,
                    None => {}
                }
            }
            queue = self
                .work
                .wait(queue)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn run(&self) {
        while let Some(job) = self.next_job() {
            if let Some(event) = do_job(job) {
                self.queue().events.push_back(event);
                self.done.notify_one();
            }
        }
        self.queue().ended = true;
        self.work.notify_all();
    }
}

impl Worker {
    pub fn start() -> io::Result<(Self, StoreEvents)> {
        let state = Arc::new(WorkerState::default());
        let its = Arc::clone(&state);
        std::thread::Builder::new()
            .name("store".to_owned())
            .spawn(move || its.run())?;
        let thread = Thread {
            state: Arc::clone(&state),
        };
        Ok((Self(Arc::new(thread)), StoreEvents(state)))
    }

    /// Returns `true` if the running job has lasted for at least `time`.
    pub fn lasts_for(&self, time: Duration) -> bool {
        let state = &self.0.state;
        if !state.is_busy.load(Ordering::Relaxed) {
            return false;
        }
        let since = state.queue().busy_since;
        since.is_some_and(|since| since.elapsed() >= time)
    }

    /// Wakes the loop because an append that it did not wait for has ended.
    pub fn note_appended(&self) {
        self.0.state.queue().appended = true;
        self.0.state.done.notify_one();
    }

    /// Answers a ticket without a sync.
    pub fn answer(&self, ticket: u64) {
        let event = JobResult::Synced(tickets(ticket).into(), Ok(()));
        self.0.state.queue().events.push_back(event);
        self.0.state.done.notify_one();
    }

    /// Syncs a file. The ticket is always answered, unless it is 0, which stands for none.
    pub fn sync(&self, file: Arc<fs::File>, ticket: u64) {
        self.give(DiskJob::Sync(file, tickets(ticket)));
    }

    /// Writes the card of a log.
    pub fn describe(&self, path: PathBuf, card: Vec<u8>) {
        self.give(DiskJob::Describe(path, card));
    }

    /// Writes the index of a log.
    pub fn store_index(&self, path: PathBuf, index: Vec<u8>) {
        self.give(DiskJob::Index(path, index));
    }

    /// Removes the card or the index of a log.
    pub fn remove(&self, path: PathBuf) {
        self.give(DiskJob::Remove(path));
    }

    /// Reads the selected cards.
    pub fn list(&self, sessions: PathBuf, ticket: u64, query: CardQuery) {
        self.give(DiskJob::List(sessions, vec![(ticket, query)]));
    }

    /// Ends the claims of other sessions on the id that an agent gave to a session.
    pub fn end_claims(&self, sessions: PathBuf, session: &str, created: &AgentSessionRecord) {
        self.give(DiskJob::EndClaims(
            sessions,
            session.to_owned(),
            Box::new(created.clone()),
        ));
    }

    fn give(&self, job: DiskJob) {
        let pushed = self.0.state.queue().jobs.push(job);
        match pushed {
            Ok(()) => self.0.state.work.notify_one(),
            // Runs on this thread: it is as fast as the removal of the log was.
            Err(job @ DiskJob::Remove(_)) => drop(do_job(job)),
            Err(DiskJob::Describe(path, _)) => {
                let path = path.display();
                warn!(%path, "the disk is slow; a session's index card is not written, and lists read its log instead");
            }
            Err(DiskJob::Index(path, _)) => {
                debug!(path = %path.display(), "the index of a log is not written; opening reads more of the log");
            }
            Err(DiskJob::Sync(..) | DiskJob::List(..) | DiskJob::EndClaims(..)) => {
                warn!("the disk is slow; recent messages may be lost if the machine crashes");
            }
        }
    }
}

/// Returns the ticket as a list; empty for [`NO_TICKET`].
fn tickets(ticket: u64) -> Vec<u64> {
    if ticket == NO_TICKET {
        Vec::new()
    } else {
        vec![ticket]
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        let mut queue = self.state.queue();
        queue.closed = true;
        self.state.work.notify_all();
        let works = |queue: &mut WorkerQueue| !queue.ended;
        let waited = self.state.work.wait_timeout_while(queue, LAST_WAIT, works);
        let (queue, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if !queue.ended {
            warn!(
                "the disk does not respond; the last messages may be lost if the machine crashes"
            );
        }
    }
}

fn do_job(job: DiskJob) -> Option<JobResult> {
    match job {
        DiskJob::Sync(file, tickets) => {
            let outcome = reach_disk(&file).map_err(|e| {
                let message = format!("cannot flush the session's log to disk: {e}");
                Error::new(ErrorKind::Storage, message)
            });
            if let (Err(error), true) = (&outcome, tickets.is_empty()) {
                warn!(%error, "cannot flush to disk; recent messages may be lost if the machine crashes");
                return None;
            }
            (!tickets.is_empty()).then_some(JobResult::Synced(tickets.into(), outcome))
        }
        DiskJob::Describe(path, card) => {
            if let Err(error) = put(&path, "card", &card) {
                warn!(path = %path.display(), %error, "cannot write a session's index card");
            }
            None
        }
        DiskJob::Index(path, index) => {
            if let Err(error) = put(&path, names::NEW_INDEX, &index) {
                warn!(path = %path.display(), %error, "cannot write the index of a session's log");
            }
            None
        }
        DiskJob::Remove(path) => {
            let _ = fs::remove_file(path);
            None
        }
        DiskJob::EndClaims(sessions, session, created) => {
            claims::end(&sessions, &session, &created);
            None
        }
        DiskJob::List(sessions, calls) => Some(JobResult::Listed(listed(&sessions, calls))),
    }
}

/// Returns the selected cards for each ticket, or the reason why they cannot be read.
fn listed(
    sessions: &Path,
    calls: Vec<(u64, CardQuery)>,
) -> VecDeque<(u64, Result<Vec<Card>, Error>)> {
    let (tickets, queries): (Vec<u64>, Vec<CardQuery>) = calls.into_iter().unzip();
    match cards::list(sessions, &queries) {
        Ok(lists) => tickets.into_iter().zip(lists.into_iter().map(Ok)).collect(),
        Err(e) => {
            let message = format!("cannot read {}: {e}", sessions.display());
            let error = Error::new(ErrorKind::Storage, message);
            let tickets = tickets.into_iter();
            tickets.map(|ticket| (ticket, Err(error.clone()))).collect()
        }
    }
}

fn reach_disk(file: &fs::File) -> io::Result<()> {
    file.sync_data()?;
    unlinked::check(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file() -> Arc<fs::File> {
        Arc::new(fs::File::open(".").unwrap())
    }

    #[tokio::test]
    async fn merged_lists_are_all_answered() {
        let (worker, mut events) = Worker::start().unwrap();
        let sessions = std::env::temp_dir().join("acpipe-no-sessions");
        for ticket in 1..=20 {
            worker.list(sessions.clone(), ticket, CardQuery::default());
        }
        for expected in 1..=20 {
            let StoreEvent::Listed { ticket, outcome } = events.next().await else {
                panic!("a list was asked for");
            };
            assert_eq!((ticket, outcome.unwrap().len()), (expected, 0));
        }
    }

    #[tokio::test]
    async fn thread_waits_until_its_answers_are_taken() {
        let (worker, mut events) = Worker::start().unwrap();
        for ticket in 1..=50 {
            worker.sync(file(), ticket);
        }
        while worker.0.state.queue().events.len() < MOST_EVENTS {
            std::thread::yield_now();
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
        assert_eq!(worker.0.state.queue().events.len(), MOST_EVENTS);
        for expected in 1..=50 {
            let StoreEvent::Synced { ticket, outcome } = events.next().await else {
                panic!("a sync was asked for");
            };
            assert_eq!(ticket, expected);
            outcome.unwrap();
        }
    }

    #[test]
    fn remaining_jobs_run_at_the_end_without_a_receiver() {
        let dir = std::env::temp_dir().join(format!("acpipe-left-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let (worker, events) = Worker::start().unwrap();
        for ticket in 1..=50 {
            worker.sync(file(), ticket);
        }
        worker.describe(dir.join("a.json"), b"{}".to_vec());
        drop(worker);
        assert_eq!(fs::read(dir.join("a.json")).unwrap(), b"{}");
        drop(events);
        fs::remove_dir_all(&dir).unwrap();
    }
}
