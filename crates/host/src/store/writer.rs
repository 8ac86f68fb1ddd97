//! Thread that appends to one log while the disk is slow, so that the loop does not wait for it.

use super::tail::LogEnd;
use super::worker::Worker;
use std::fs;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Handle of the thread of one log. After it is dropped, the thread writes its last lines and ends.
#[derive(Debug)]
pub struct LogWriter(Arc<WriterChannel>);

#[derive(Debug, Default)]
struct WriterChannel {
    state: Mutex<WriterState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct WriterState {
    job: Option<AppendJob>,
    outcome: Option<AppendOutcome>,
    /// Whether the loop must be woken for the outcome.
    awaited: bool,
    closed: bool,
}

/// Lines to append to a log.
#[derive(Debug)]
struct AppendJob {
    file: Arc<fs::File>,
    tail: LogEnd,
    lines: Vec<u8>,
}

/// New end of the log, and the result of the append.
pub type AppendOutcome = (LogEnd, io::Result<()>);

impl WriterChannel {
    fn state(&self) -> MutexGuard<'_, WriterState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the next job; `None` when the handle was dropped.
    fn next(&self) -> Option<AppendJob> {
        let state = self.state();
        let idle = |state: &mut WriterState| state.job.is_none() && !state.closed;
        let state = self.changed.wait_while(state, idle);
        state.unwrap_or_else(PoisonError::into_inner).job.take()
    }

    fn run(&self, worker: &Worker) {
        while let Some(AppendJob {
            file,
            mut tail,
            lines,
        }) = self.next()
        {
            let written = tail.append(&file, &|out| out.write_all(&lines));
            // Releases the lock of a log that was closed meanwhile.
            drop(file);
            let mut state = self.state();
            state.outcome = Some((tail, written));
            if std::mem::take(&mut state.awaited) {
                worker.note_appended();
            }
            self.changed.notify_all();
        }
    }
}

impl LogWriter {
    /// Starts the thread; `worker` wakes the loop when a slow append has ended.
    ///
    /// # Errors
    /// The thread could not be started.
    pub fn start(worker: Worker) -> io::Result<Self> {
        let shared = Arc::new(WriterChannel::default());
        let its = Arc::clone(&shared);
        let name = "store-writer".to_owned();
        std::thread::Builder::new()
            .name(name)
            .spawn(move || its.run(&worker))?;
        Ok(Self(shared))
    }

    /// Starts an append. The outcome of the preceding one must have been taken.
    pub fn append(&self, file: Arc<fs::File>, tail: LogEnd, lines: Vec<u8>) {
        self.0.state().job = Some(AppendJob { file, tail, lines });
        self.0.changed.notify_all();
    }

    /// Waits up to `patience` for the outcome. After `None` the loop is woken when it is available.
    pub fn outcome(&self, patience: Duration) -> Option<AppendOutcome> {
        let state = self.0.state();
        let is_open = |state: &mut WriterState| state.outcome.is_none();
        let waited = self.0.changed.wait_timeout_while(state, patience, is_open);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let outcome = state.outcome.take();
        state.awaited = outcome.is_none();
        outcome
    }
}

impl Drop for LogWriter {
    fn drop(&mut self) {
        self.0.state().closed = true;
        self.0.changed.notify_all();
    }
}
