//! The thread for what takes long: reaching the disk for sure, cards, lists. What it is given it does in
//! order; when the program ends it does what is left.

use super::cards_in;
use super::file::{is_removed, removed};
use crate::core::error::{Error, ErrorKind};
use crate::core::store::StoreEvent;
use std::collections::VecDeque;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use tokio::sync::Notify;
use tracing::warn;

/// The way to the thread.
#[derive(Debug, Clone)]
pub struct Worker(Arc<Thread>);

#[derive(Debug)]
struct Thread {
    desk: Arc<Desk>,
    handle: Option<JoinHandle<()>>,
}

/// What the thread is to do and has done. A session waits for what it asked for before it asks again, so
/// there is never more here than sessions that are open.
#[derive(Debug, Default)]
struct Desk {
    papers: Mutex<Papers>,
    work: Condvar,
    done: Notify,
}

#[derive(Debug, Default)]
struct Papers {
    jobs: VecDeque<Job>,
    events: VecDeque<StoreEvent>,
    closed: bool,
}

#[derive(Debug)]
enum Job {
    Sync(Arc<fs::File>, u64),
    Describe(PathBuf, Vec<u8>),
    Remove(PathBuf),
    List(PathBuf, u64),
}

/// What the store answers, for the loop.
#[derive(Debug)]
pub struct Events(Arc<Desk>);

impl Events {
    /// The next answer; does not end.
    pub async fn next(&mut self) -> StoreEvent {
        loop {
            let done = self.0.done.notified();
            if let Some(event) = self.0.papers().events.pop_front() {
                return event;
            }
            done.await;
        }
    }

    /// Of a store that never answers.
    #[must_use]
    pub fn none() -> Self {
        Self(Arc::default())
    }
}

impl Desk {
    fn papers(&self) -> MutexGuard<'_, Papers> {
        self.papers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next thing to do; `None` when everything is done and nothing more will come.
    fn next_job(&self) -> Option<Job> {
        let mut papers = self.papers();
        loop {
            match papers.jobs.pop_front() {
                Some(job) => return Some(job),
                None if papers.closed => return None,
                None => {
                    papers = self
                        .work
                        .wait(papers)
                        .unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }

    fn run(&self) {
        while let Some(job) = self.next_job() {
            if let Some(event) = do_job(job) {
                self.papers().events.push_back(event);
                self.done.notify_one();
            }
        }
    }
}

impl Worker {
    pub fn start() -> io::Result<(Self, Events)> {
        let desk = Arc::new(Desk::default());
        let its = Arc::clone(&desk);
        let handle = std::thread::Builder::new()
            .name("store".to_owned())
            .spawn(move || its.run())?;
        let thread = Thread {
            desk: Arc::clone(&desk),
            handle: Some(handle),
        };
        Ok((Self(Arc::new(thread)), Events(desk)))
    }

    pub fn sync(&self, file: Arc<fs::File>, ticket: u64) {
        self.give(Job::Sync(file, ticket));
    }

    pub fn describe(&self, path: PathBuf, card: Vec<u8>) {
        self.give(Job::Describe(path, card));
    }

    pub fn remove(&self, path: PathBuf) {
        self.give(Job::Remove(path));
    }

    pub fn list(&self, sessions: PathBuf, ticket: u64) {
        self.give(Job::List(sessions, ticket));
    }

    fn give(&self, job: Job) {
        self.0.desk.papers().jobs.push_back(job);
        self.0.desk.work.notify_one();
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        self.desk.papers().closed = true;
        self.desk.work.notify_one();
        if let Some(handle) = self.handle.take() {
            let _ = handle.join();
        }
    }
}

fn do_job(job: Job) -> Option<StoreEvent> {
    match job {
        Job::Sync(file, ticket) => Some(StoreEvent::Synced {
            ticket,
            outcome: reach_disk(&file).map_err(|e| {
                let message = format!("the session's log may not be on the disk: {e}");
                Error::new(ErrorKind::Storage, message)
            }),
        }),
        Job::Describe(path, card) => {
            if let Err(error) = put(&path, &card) {
                warn!(path = %path.display(), %error, "a session's card cannot be written");
            }
            None
        }
        Job::Remove(path) => {
            let _ = fs::remove_file(path);
            None
        }
        Job::List(sessions, ticket) => Some(StoreEvent::Listed {
            ticket,
            outcome: cards_in(&sessions).map_err(|e| {
                let message = format!("{} cannot be read: {e}", sessions.display());
                Error::new(ErrorKind::Storage, message)
            }),
        }),
    }
}

fn reach_disk(file: &fs::File) -> io::Result<()> {
    file.sync_data()?;
    if is_removed(file) {
        Err(removed())
    } else {
        Ok(())
    }
}

/// Writes a file so that readers see the old one or the new one.
fn put(path: &Path, bytes: &[u8]) -> io::Result<()> {
    use std::io::Write as _;
    let new = path.with_extension("card");
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(&new)?.write_all(bytes)?;
    fs::rename(new, path)
}
