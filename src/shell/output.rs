//! The client's stdout: batches are written so that a client which does not read never blocks the loop.
//!
//! A small batch is written directly as far as a pipe or socket is certain to accept it, which saves a paced
//! stream the hop to another thread. Everything else goes to a writer thread, one batch at a time, while the
//! next batch is collected. The descriptor's flags are never changed because the client shares them.

use super::clock::running_now;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{FileType, fstat};
use rustix::io::{Errno, write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc as thread};
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// Number of bytes that a writable pipe accepts without blocking (POSIX `PIPE_BUF`; Linux has 4096).
const ATOMIC: usize = 4096;

/// Maximum size of a batch that is written directly: a slice of an agent's output (16 KiB) in the
/// notifications of `serve`.
const DIRECT: usize = 6 * ATOMIC;

/// Number of queued output bytes above which agents are slowed.
pub const FULL: usize = 256 * 1024;

/// Number of queued output bytes above which the client is behind, if the writer is busy.
const BEHIND: usize = 64 * 1024;

/// The client's stdout.
pub struct Output {
    /// Output collected for the next batch.
    pub buffer: Vec<u8>,
    spare: Vec<u8>,
    batches: thread::SyncSender<Vec<u8>>,
    written: mpsc::Receiver<Written>,
    left: mpsc::Receiver<()>,
    busy: bool,
    direct: bool,
    closed: Option<Closed>,
    /// Number of bytes that the writer thread wrote.
    progress: Arc<AtomicU64>,
    /// Last observed value of `progress`, and when it last rose.
    seen: (u64, Instant),
}

/// Amount of output queued for a client that reads slowly or not at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pressure {
    /// At most 64 KiB, or the writer is idle and at most [`FULL`] bytes.
    None,
    /// More than 64 KiB while the writer is busy: chunks are coalesced.
    Behind,
    /// More than [`FULL`] bytes: agents are slowed, and read-only calls wait.
    Full,
}

/// Reason why nothing more is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Closed {
    /// The reader closed the pipe, as `head` does.
    ReaderLeft,
    /// A write failed, for example because the disk is full.
    Failed(Errno),
    /// The client did not read for too long during the shutdown.
    GivenUp,
}

/// Maximum size in bytes of a write by the writer thread; it reports progress after each.
const PIECE: usize = 64 * 1024;

/// The buffer of a written batch, or the error that ended the output.
type Written = Result<Vec<u8>, Errno>;

impl Output {
    /// Starts the threads that write and watch stdout.
    pub fn new() -> std::io::Result<Self> {
        let (batches, receiver) = thread::sync_channel::<Vec<u8>>(1);
        let (sender, written) = mpsc::channel(1);
        let progress = Arc::new(AtomicU64::new(0));
        let written_bytes = progress.clone();
        std::thread::Builder::new()
            .name("stdout".into())
            .spawn(move || {
                while let Ok(mut batch) = receiver.recv() {
                    let result = write_all(&batch, &written_bytes).map(|()| {
                        batch.clear();
                        batch
                    });
                    if sender.blocking_send(result).is_err() {
                        return;
                    }
                }
            })?;
        let (leaving, left) = mpsc::channel(1);
        let kind = fstat(rustix::stdio::stdout()).map(|s| FileType::from_raw_mode(s.st_mode));
        let direct = matches!(kind, Ok(FileType::Fifo | FileType::Socket));
        if direct {
            std::thread::Builder::new()
                .name("stdout reader".into())
                .spawn(move || watch_reader(&leaving))?;
        }
        Ok(Self {
            buffer: Vec::new(),
            spare: Vec::new(),
            batches,
            written,
            left,
            busy: false,
            direct,
            closed: None,
            progress,
            seen: (0, running_now()),
        })
    }

    /// Starts to write the collected output, unless the writer is busy with a batch.
    pub fn flush(&mut self) {
        if self.busy
            && let Ok(written) = self.written.try_recv()
        {
            self.finished(written);
        }
        if self.busy || self.closed.is_some() || self.buffer.is_empty() {
            if self.closed.is_some() {
                self.buffer.clear();
            }
            return;
        }
        if self.direct && self.buffer.len() <= DIRECT {
            match write_directly(&self.buffer) {
                Ok(n) if n == self.buffer.len() => {
                    self.buffer.clear();
                    return;
                }
                Ok(n) => {
                    self.buffer.drain(..n);
                }
                Err(error) => {
                    self.close(Closed::of(error));
                    return;
                }
            }
        }
        let next = std::mem::take(&mut self.spare);
        let batch = std::mem::replace(&mut self.buffer, next);
        if self.batches.send(batch).is_ok() {
            self.busy = true;
            self.seen.1 = running_now();
        } else {
            self.close(Closed::GivenUp);
        }
    }

    /// Waits until the writer has finished a batch and starts the next one, or until the reader closes
    /// stdout.
    pub async fn progress(&mut self) {
        let written = tokio::select! {
            written = self.written.recv(), if self.busy => written,
            Some(()) = self.left.recv() => Some(Err(Errno::PIPE)),
            else => std::future::pending().await,
        };
        match written {
            Some(written) => {
                self.finished(written);
                self.flush();
            }
            None => self.close(Closed::GivenUp),
        }
    }

    /// Handles a finished batch; its buffer is reused.
    fn finished(&mut self, written: Written) {
        match written {
            Ok(mut empty) => {
                self.busy = false;
                if empty.capacity() > 2 * FULL {
                    empty = Vec::new();
                }
                self.spare = empty;
            }
            Err(error) => self.close(Closed::of(error)),
        }
    }

    fn close(&mut self, why: Closed) {
        self.closed.get_or_insert(why);
        self.busy = false;
        self.buffer.clear();
    }

    /// Returns `true` if agents must wait for the client.
    pub fn is_full(&self) -> bool {
        self.buffer.len() > FULL
    }

    /// Returns the amount of queued output.
    pub fn pressure(&self) -> Pressure {
        match self.buffer.len() {
            len if len > FULL => Pressure::Full,
            len if len > BEHIND && self.busy => Pressure::Behind,
            _ => Pressure::None,
        }
    }

    /// Returns why the output ended; `None` while it is open.
    pub fn closed(&self) -> Option<Closed> {
        self.closed
    }

    /// Returns when a client that does not read for `patience` is given up; progress postpones that. `None`
    /// if nothing is pending.
    pub fn stalled_at(&mut self, patience: Duration) -> Option<Instant> {
        let written = self.progress.load(Ordering::Relaxed);
        if written != self.seen.0 {
            self.seen = (written, running_now());
        }
        self.is_pending().then(|| self.seen.1 + patience)
    }

    /// Drops the pending output and closes stdout.
    pub fn give_up(&mut self) {
        self.close(Closed::GivenUp);
    }

    /// Returns `true` while output is not written yet.
    pub fn is_pending(&self) -> bool {
        self.closed.is_none() && (self.busy || !self.buffer.is_empty())
    }
}

/// Waits until the reader of stdout is gone, so that this is detected even if nothing is written.
fn watch_reader(leaving: &mpsc::Sender<()>) {
    let stdout = rustix::stdio::stdout();
    loop {
        let mut fds = [PollFd::new(&stdout, PollFlags::empty())];
        match poll(&mut fds, None) {
            Err(Errno::INTR) => {}
            Err(_) => return,
            Ok(_) => {
                // Fails only if the loop has ended.
                let _ = leaving.blocking_send(());
                return;
            }
        }
    }
}

/// Moves a client's output to the buffer for stdout, without a copy if the buffer is empty.
pub fn hand_over(formed: &mut Vec<u8>, buffer: &mut Vec<u8>) {
    if buffer.is_empty() {
        std::mem::swap(buffer, formed);
    } else {
        buffer.append(formed);
    }
}

/// Writes as much as is certain not to block; returns the number of bytes written.
fn write_directly(bytes: &[u8]) -> Result<usize, Errno> {
    let mut written = 0;
    while written < bytes.len() && writable() {
        let piece = &bytes[written..bytes.len().min(written + ATOMIC)];
        match write(rustix::stdio::stdout(), piece) {
            Ok(n) => written += n,
            Err(Errno::INTR | Errno::AGAIN) => break,
            Err(error) => return Err(error),
        }
    }
    Ok(written)
}

fn writable() -> bool {
    let stdout = rustix::stdio::stdout();
    let mut fds = [PollFd::new(&stdout, PollFlags::OUT)];
    let now = rustix::event::Timespec::default();
    matches!(poll(&mut fds, Some(&now)), Ok(1)) && fds[0].revents() == PollFlags::OUT
}

impl Closed {
    fn of(error: Errno) -> Self {
        match error {
            // A socket returns CONNRESET if unread data was left in it.
            Errno::PIPE | Errno::CONNRESET => Self::ReaderLeft,
            _ => Self::Failed(error),
        }
    }
}

fn write_all(mut bytes: &[u8], progress: &AtomicU64) -> Result<(), Errno> {
    while !bytes.is_empty() {
        match write(rustix::stdio::stdout(), &bytes[..bytes.len().min(PIECE)]) {
            Ok(n) => {
                bytes = &bytes[n..];
                progress.fetch_add(n as u64, Ordering::Relaxed);
            }
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => {
                // The client made its end non-blocking: wait without spinning.
                let stdout = rustix::stdio::stdout();
                let mut fds = [PollFd::new(&stdout, PollFlags::OUT)];
                poll(&mut fds, None)?;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
