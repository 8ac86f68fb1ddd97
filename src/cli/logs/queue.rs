//! Queue of log lines, which a thread writes. The thread starts with the first line, so that a program without
//! log output does not have it.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::mem;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;
use tracing_subscriber::fmt::MakeWriter;

/// Capacity of the queue in lines; when it is full, further lines are dropped.
const CAPACITY: usize = 8192;

/// Maximum time that the end of the program waits for queued lines, whose reader may be stuck.
const LAST_WAIT: Duration = Duration::from_secs(1);

/// Sending end of the queue.
#[derive(Clone)]
pub struct LogQueue(Arc<LogChannel>);

struct LogChannel {
    state: Mutex<LogQueueState>,
    /// Signals work for the thread: a new line, the end of a pause, or the end of the queue.
    added: Condvar,
    /// Signals that the thread has written lines, or has ended.
    written: Condvar,
}

struct LogQueueState {
    lines: VecDeque<Vec<u8>>,
    /// Number of lines that were dropped.
    lost: usize,
    /// First error of the destination.
    error: Option<io::Error>,
    thread: Writing,
    /// `true` while the thread writes lines that it has taken.
    is_writing: bool,
    /// `true` while lines wait in the queue.
    is_paused: bool,
    closed: bool,
}

/// State of the writing thread.
enum Writing {
    /// Not started yet; holds the destination.
    Idle(Box<dyn Write + Send>),
    Running,
    Ended,
}

impl LogQueue {
    /// Creates a queue of lines for `to`.
    pub fn new(to: Box<dyn Write + Send>) -> Self {
        let state = LogQueueState {
            lines: VecDeque::new(),
            lost: 0,
            error: None,
            thread: Writing::Idle(to),
            is_writing: false,
            is_paused: false,
            closed: false,
        };
        Self(Arc::new(LogChannel {
            state: Mutex::new(state),
            added: Condvar::new(),
            written: Condvar::new(),
        }))
    }

    /// Adds a line, and starts the thread if it does not run.
    fn add(&self, line: &[u8]) {
        let mut state = self.0.lock();
        if state.closed || state.lines.len() >= CAPACITY {
            state.lost += 1;
            return;
        }
        state.lines.push_back(line.to_owned());
        match mem::replace(&mut state.thread, Writing::Running) {
            Writing::Idle(to) => {
                let shared = Arc::clone(&self.0);
                let thread = thread::Builder::new().name("logs".to_owned());
                if thread.spawn(move || shared.write_to(to)).is_err() {
                    state.thread = Writing::Ended;
                    state.closed = true;
                    state.lost += mem::take(&mut state.lines).len();
                }
            }
            other => state.thread = other,
        }
        drop(state);
        self.0.added.notify_one();
    }

    /// Returns the number of lines that were dropped.
    pub fn lost(&self) -> usize {
        self.0.lock().lost
    }

    /// Takes the first error of the destination.
    pub fn take_error(&self) -> Option<io::Error> {
        self.0.lock().error.take()
    }

    /// Closes the queue and waits until its lines are written, unless their reader blocks the thread for
    /// [`LAST_WAIT`].
    pub fn close(&self) {
        let mut state = self.0.lock();
        state.closed = true;
        self.0.added.notify_one();
        let runs = |state: &mut LogQueueState| matches!(state.thread, Writing::Running);
        let ended = self.0.written.wait_timeout_while(state, LAST_WAIT, runs);
        drop(ended.unwrap_or_else(PoisonError::into_inner));
    }

    /// Waits until the lines so far are written, at most for [`LAST_WAIT`]; later ones wait for [`LogQueue::resume`]. A full
    /// queue drops lines in a pause, too.
    pub fn pause(&self) {
        let state = self.0.lock();
        let works = |state: &mut LogQueueState| {
            let runs = matches!(state.thread, Writing::Running);
            runs && (state.is_writing || !state.lines.is_empty())
        };
        let idle = self.0.written.wait_timeout_while(state, LAST_WAIT, works);
        let (mut state, _) = idle.unwrap_or_else(PoisonError::into_inner);
        state.is_paused = true;
    }

    /// Writes the lines that wait, and later ones.
    pub fn resume(&self) {
        self.0.lock().is_paused = false;
        self.0.added.notify_one();
    }
}

impl LogChannel {
    fn lock(&self) -> MutexGuard<'_, LogQueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes lines until the queue is empty and closed.
    fn write_to(&self, mut to: Box<dyn Write + Send>) {
        while let Some(lines) = self.next_lines() {
            for line in lines {
                // A log that cannot be written must not end the program.
                if let Err(error) = to.write_all(&line).and_then(|()| to.flush()) {
                    self.lock().error.get_or_insert(error);
                }
            }
        }
        self.lock().thread = Writing::Ended;
        self.written.notify_all();
    }

    /// Waits for lines; `None` when the queue is empty and closed.
    fn next_lines(&self) -> Option<VecDeque<Vec<u8>>> {
        let mut state = self.lock();
        state.is_writing = false;
        self.written.notify_all();
        while !state.closed && (state.is_paused || state.lines.is_empty()) {
            let added = self.added.wait(state);
            state = added.unwrap_or_else(PoisonError::into_inner);
        }
        let lines = mem::take(&mut state.lines);
        state.is_writing = !lines.is_empty();
        state.is_writing.then_some(lines)
    }
}

impl Write for LogQueue {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.add(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for LogQueue {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    /// Destination that passes on each write, and blocks until `go` has a permit for it.
    struct Slow {
        go: mpsc::Receiver<()>,
        written: mpsc::SyncSender<Vec<u8>>,
    }

    impl Write for Slow {
        fn write(&mut self, line: &[u8]) -> io::Result<usize> {
            let _ = self.written.send(line.to_owned());
            let _ = self.go.recv();
            Ok(line.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn queued_lines_are_written_in_order_on_close() {
        let (go, permits) = mpsc::sync_channel(1);
        let (written, lines) = mpsc::sync_channel(CAPACITY + 1);
        let queue = LogQueue::new(Box::new(Slow {
            go: permits,
            written,
        }));
        queue.add(b"1");
        queue.add(b"2");
        drop(go);
        queue.close();
        queue.add(b"3");
        assert_eq!(lines.try_iter().collect::<Vec<_>>(), [b"1", b"2"]);
        assert_eq!(queue.lost(), 1);
    }

    #[test]
    fn lines_over_the_capacity_are_dropped_and_counted() {
        let (go, permits) = mpsc::sync_channel(1);
        let (written, lines) = mpsc::sync_channel(CAPACITY + 1);
        let queue = LogQueue::new(Box::new(Slow {
            go: permits,
            written,
        }));
        queue.add(b"first");
        // The thread has taken the first line, and is blocked in its write.
        lines.recv().unwrap();
        for _ in 0..CAPACITY + 2 {
            queue.add(b"more");
        }
        assert_eq!(queue.lost(), 2);
        drop(go);
        queue.close();
        assert_eq!(lines.try_iter().count(), CAPACITY);
    }

    #[test]
    fn lines_of_a_pause_are_written_after_it() {
        let (go, permits) = mpsc::sync_channel(CAPACITY);
        let (written, lines) = mpsc::sync_channel(CAPACITY);
        let queue = LogQueue::new(Box::new(Slow {
            go: permits,
            written,
        }));
        go.send(()).unwrap();
        queue.add(b"before");
        queue.pause();
        assert_eq!(lines.try_iter().collect::<Vec<_>>(), [b"before"]);
        queue.add(b"paused");
        go.send(()).unwrap();
        queue.resume();
        assert_eq!(lines.recv().unwrap(), b"paused");
        queue.pause();
        queue.add(b"at the end");
        drop(go);
        queue.close();
        assert_eq!(lines.try_iter().collect::<Vec<_>>(), [b"at the end"]);
    }

    #[test]
    fn queue_without_lines_has_no_thread() {
        let queue = LogQueue::new(Box::new(io::sink()));
        assert!(matches!(queue.0.lock().thread, Writing::Idle(_)));
        queue.close();
    }
}
