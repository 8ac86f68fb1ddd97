//! Recorder of a tape: queues frames for a thread, so that the loop and the tasks of agents never wait for the
//! disk.

mod file;
mod writer;

use acpipe_json::frame::{Batch, Overlong};
use acpipe_model::error::clip;
use acpipe_model::secret::Sender;
use acpipe_protocol::tape::{Direction, EventKind, Side, TapeEvent, TapeProcess};
use bytes::Bytes;
pub use file::open as open_tape;
use std::fs::File;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::time::{Duration, Instant};
use tracing::warn;
use writer::TapeWriter;

/// Maximum number of queued entries.
const ENTRIES: usize = 16 * 1024;

/// Maximum number of queued bytes. An empty queue accepts an entry of any size.
const QUEUED_BYTES: usize = 64 << 20;

/// Maximum time that the end of acpipe waits for the tape.
const FINISH_LIMIT: Duration = Duration::from_secs(5);

/// Time between two attempts to end a tape whose queue is full.
const FULL_QUEUE_PAUSE: Duration = Duration::from_millis(5);

/// Numbers of signals in a tape.
const SIGTERM: i32 = 15;
const SIGKILL: i32 = 9;

/// Replaces secrets in a line. A line of JSON must remain one.
pub type RedactLine = Box<dyn Fn(&str, Sender) -> String + Send>;

/// Handle of a recorder, shared by everything that is recorded.
#[derive(Debug, Clone)]
pub struct Recorder(Arc<RecorderQueue>);

#[derive(Debug)]
struct RecorderQueue {
    entries: SyncSender<RecorderEntry>,
    counters: Arc<RecorderCounters>,
    started: Instant,
    /// Number of processes so far.
    processes: AtomicU64,
}

/// State that the recorder shares with its thread.
#[derive(Debug, Default)]
struct RecorderCounters {
    queued_bytes: AtomicUsize,
    /// Number of dropped frames that the tape does not mention yet.
    dropped: AtomicU64,
    /// `true` if nothing more is written: the tape is full, or could not be written.
    is_full: AtomicBool,
}

/// Entry of the queue.
#[derive(Debug)]
enum RecorderEntry {
    Frames {
        at: Duration,
        side: Side,
        direction: Direction,
        process: Option<Arc<TapeProcess>>,
        /// Whole lines, or on the client's side whole messages.
        bytes: Bytes,
    },
    Overlong {
        at: Duration,
        process: Option<Arc<TapeProcess>>,
        head: Bytes,
        tail: Bytes,
        len: u64,
    },
    Event(TapeEvent),
    End,
}

/// Thread of a recorder. Dropping it writes everything that is queued.
#[derive(Debug)]
pub struct RecorderThread {
    recorder: Recorder,
    finished: Receiver<()>,
}

impl Recorder {
    /// Starts a recorder that writes at most `limit` bytes to the file.
    ///
    /// # Errors
    /// The thread could not be started, or the first line could not be written.
    pub fn start(file: File, limit: u64, redact: RedactLine) -> io::Result<(Self, RecorderThread)> {
        let (entries, queue) = sync_channel(ENTRIES);
        let (done, finished) = sync_channel(1);
        let counters = Arc::<RecorderCounters>::default();
        let mut writer = TapeWriter::begin(file, limit, redact, Arc::clone(&counters))?;
        std::thread::Builder::new()
            .name("recorder".into())
            .spawn(move || {
                writer.run(&queue);
                // Fails only if acpipe gave up waiting.
                let _ = done.send(());
            })?;
        let recorder = Self(Arc::new(RecorderQueue {
            entries,
            counters,
            started: Instant::now(),
            processes: AtomicU64::new(0),
        }));
        let thread = RecorderThread {
            recorder: recorder.clone(),
            finished,
        };
        Ok((recorder, thread))
    }

    /// Records messages between the client and acpipe: whole lines, or messages with their headers.
    pub fn client(&self, direction: Direction, messages: &[u8]) {
        if !messages.is_empty() && !self.is_full() {
            let bytes = Bytes::copy_from_slice(messages);
            self.frames(Side::Client, direction, None, bytes);
        }
    }

    /// Returns the recorder of an agent process, which gets the next number.
    #[must_use]
    pub fn process(&self, agent: Option<String>, command: Vec<String>) -> ProcessRecorder {
        let child = self.0.processes.fetch_add(1, Ordering::Relaxed) + 1;
        let process = TapeProcess {
            agent,
            child: Some(child),
        };
        ProcessRecorder {
            recorder: self.clone(),
            process: Arc::new(process),
            command,
        }
    }

    fn frames(
        &self,
        side: Side,
        direction: Direction,
        process: Option<Arc<TapeProcess>>,
        bytes: Bytes,
    ) {
        self.push(RecorderEntry::Frames {
            at: self.now(),
            side,
            direction,
            process,
            bytes,
        });
    }

    fn now(&self) -> Duration {
        self.0.started.elapsed()
    }

    fn is_full(&self) -> bool {
        self.0.counters.is_full.load(Ordering::Relaxed)
    }

    fn push(&self, entry: RecorderEntry) {
        let (counters, len) = (&self.0.counters, entry.len());
        let queued = counters.queued_bytes.load(Ordering::Relaxed);
        let dropped = if queued > 0 && queued.saturating_add(len) > QUEUED_BYTES {
            entry
        } else {
            // Counted before the thread can subtract it.
            counters.queued_bytes.fetch_add(len, Ordering::Relaxed);
            match self.0.entries.try_send(entry) {
                Ok(()) => return,
                Err(TrySendError::Full(entry) | TrySendError::Disconnected(entry)) => {
                    counters.queued_bytes.fetch_sub(len, Ordering::Relaxed);
                    entry
                }
            }
        };
        counters
            .dropped
            .fetch_add(dropped.count(), Ordering::Relaxed);
    }
}

impl RecorderEntry {
    /// Returns the number of bytes that count for the queue.
    fn len(&self) -> usize {
        match self {
            Self::Frames { bytes, .. } => bytes.len(),
            Self::Overlong { head, tail, .. } => head.len() + tail.len(),
            Self::Event(_) | Self::End => 0,
        }
    }

    /// Returns the number of records that the entry becomes, about.
    fn count(&self) -> u64 {
        match self {
            Self::Frames { bytes, .. } => {
                let lines = memchr::memchr_iter(b'\n', bytes).count();
                u64::try_from(lines).unwrap_or(u64::MAX).max(1)
            }
            Self::Overlong { .. } | Self::Event(_) => 1,
            Self::End => 0,
        }
    }
}

impl Drop for RecorderThread {
    fn drop(&mut self) {
        let since = Instant::now();
        let entries = &self.recorder.0.entries;
        let mut end = entries.try_send(RecorderEntry::End);
        // The loop has ended, so the wait for a place in the queue delays nothing else.
        while matches!(end, Err(TrySendError::Full(_))) && since.elapsed() < FINISH_LIMIT {
            std::thread::sleep(FULL_QUEUE_PAUSE);
            end = entries.try_send(RecorderEntry::End);
        }
        let left = FINISH_LIMIT.saturating_sub(since.elapsed());
        if self.finished.recv_timeout(left) == Err(RecvTimeoutError::Timeout) {
            warn!("the end of the tape is missing: the disk takes too long");
        }
    }
}

/// Recorder of one agent process, or of an HTTP exchange.
#[derive(Debug, Clone)]
pub struct ProcessRecorder {
    recorder: Recorder,
    process: Arc<TapeProcess>,
    /// Program and arguments.
    command: Vec<String>,
}

impl ProcessRecorder {
    /// Records lines that acpipe wrote to the process.
    pub(super) fn sent(&self, lines: &[u8]) {
        if !self.recorder.is_full() {
            self.frames(Direction::Out, Bytes::copy_from_slice(lines));
        }
    }

    /// Records lines that the process wrote.
    pub(super) fn received(&self, batch: &Batch) {
        if self.recorder.is_full() {
            return;
        }
        match batch {
            Batch::Lines(lines) => self.frames(Direction::In, lines.clone()),
            Batch::TooLong(Overlong { len, head, tail }) => {
                self.recorder.push(RecorderEntry::Overlong {
                    at: self.recorder.now(),
                    process: Some(Arc::clone(&self.process)),
                    head: head.clone(),
                    tail: tail.clone(),
                    len: *len,
                });
            }
        }
    }

    fn frames(&self, direction: Direction, bytes: Bytes) {
        let process = Some(Arc::clone(&self.process));
        self.recorder.frames(Side::Agent, direction, process, bytes);
    }

    /// Records that the process runs.
    pub(super) fn started(&self) {
        self.event(TapeEvent {
            command: self.command.clone(),
            ..TapeEvent::of(EventKind::Started)
        });
    }

    /// Records that the process could not be started.
    pub(super) fn failed(&self, reason: &str) {
        self.event(TapeEvent {
            command: self.command.clone(),
            stderr: Some(clip(reason)),
            ..TapeEvent::of(EventKind::Failed)
        });
    }

    /// Records that acpipe closed the process's stdin.
    pub(super) fn closed(&self) {
        self.event(TapeEvent::of(EventKind::Closed));
    }

    /// Records that acpipe ended the process: `at_once`, or with a request to end itself.
    pub(super) fn killed(&self, at_once: bool) {
        self.event(TapeEvent {
            signal: Some(if at_once { SIGKILL } else { SIGTERM }),
            ..TapeEvent::of(EventKind::Killed)
        });
    }

    /// Records the exit of the process.
    pub(super) fn exited(&self, code: Option<i32>, signal: Option<i32>, stderr: &str) {
        self.event(TapeEvent {
            code,
            signal,
            stderr: (!stderr.is_empty()).then(|| stderr.to_owned()),
            ..TapeEvent::of(EventKind::Exited)
        });
    }

    fn event(&self, event: TapeEvent) {
        self.recorder.push(RecorderEntry::Event(TapeEvent {
            at: self.recorder.now(),
            process: (*self.process).clone(),
            ..event
        }));
    }
}

#[cfg(test)]
mod tests;
