//! The client's stdout: whole batches, written so that a client that does not read never stops the loop.
//!
//! A small batch is written directly as far as a pipe or socket surely takes it, which spares a paced
//! stream the hop to another thread; everything else goes to a writer thread, one batch at a time, while
//! the next one gathers. The descriptor's flags are never touched: they are the client's too.

use super::clock::running_now;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{FileType, fstat};
use rustix::io::{Errno, write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc as thread};
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// What a pipe takes without blocking once it is writable (POSIX `PIPE_BUF`; Linux has 4096).
const ATOMIC: usize = 4096;

/// The largest batch that is written directly: a slice of an agent's output (16 KiB) in the notifications of `serve`.
const DIRECT: usize = 6 * ATOMIC;

/// How much may gather while the writer is busy before agents are slowed.
pub const FULL: usize = 256 * 1024;

/// How much may gather while the writer is busy before the client is behind.
const BEHIND: usize = 64 * 1024;

/// The client's stdout.
pub struct Output {
    /// What gathers for the next batch.
    pub buffer: Vec<u8>,
    spare: Vec<u8>,
    batches: thread::SyncSender<Vec<u8>>,
    written: mpsc::Receiver<Written>,
    left: mpsc::Receiver<()>,
    busy: bool,
    direct: bool,
    closed: Option<Closed>,
    /// Bytes that the writer thread wrote, and when that was last seen to rise.
    progress: Arc<AtomicU64>,
    seen: (u64, Instant),
}

/// How much waits for a client that reads slowly, or not at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pressure {
    None,
    /// What can be merged is.
    Behind,
    /// Agents are slowed, and calls that only read wait.
    Full,
}

/// Why nothing is written any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Closed {
    /// The reader left, as `head` does.
    ReaderLeft,
    /// Writing failed: the disk is full, say.
    Failed(Errno),
    /// The client did not read for too long while acpipe was ending.
    GivenUp,
}

/// How much the writer thread writes between two signs of life.
const PIECE: usize = 64 * 1024;

/// A batch that was written, or the news that nobody reads any more.
type Written = Result<Vec<u8>, Errno>;

impl Output {
    /// Takes stdout over.
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

    /// Hands over what gathered, unless the writer is still busy with the last batch.
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

    /// Waits until the writer is done with a batch, and hands over the next; or until the reader leaves.
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

    /// Takes back the memory of a batch that the writer thread has written.
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

    /// True while agents should wait for the client.
    pub fn is_full(&self) -> bool {
        self.buffer.len() > FULL
    }

    /// How much waits because the reader has not taken the last batch yet.
    pub fn pressure(&self) -> Pressure {
        match self.buffer.len() {
            len if len > FULL => Pressure::Full,
            len if len > BEHIND && self.busy => Pressure::Behind,
            _ => Pressure::None,
        }
    }

    /// Set once nothing can be written any more.
    pub fn closed(&self) -> Option<Closed> {
        self.closed
    }

    /// When a client that does not read for `patience` is given up; later if it reads meanwhile.
    pub fn stalled_at(&mut self, patience: Duration) -> Option<Instant> {
        let written = self.progress.load(Ordering::Relaxed);
        if written != self.seen.0 {
            self.seen = (written, running_now());
        }
        self.is_pending().then(|| self.seen.1 + patience)
    }

    /// Nothing more is written: the client had its time.
    pub fn give_up(&mut self) {
        self.close(Closed::GivenUp);
    }

    /// True while something is not written yet.
    pub fn is_pending(&self) -> bool {
        self.closed.is_none() && (self.busy || !self.buffer.is_empty())
    }
}

/// Sleeps until nobody reads stdout any more: a stream that is silent must notice it too.
fn watch_reader(leaving: &mpsc::Sender<()>) {
    let stdout = rustix::stdio::stdout();
    loop {
        let mut fds = [PollFd::new(&stdout, PollFlags::empty())];
        match poll(&mut fds, None) {
            Err(Errno::INTR) => {}
            Err(_) => return,
            Ok(_) => {
                // The loop is gone only when nobody cares any more.
                let _ = leaving.blocking_send(());
                return;
            }
        }
    }
}

/// Moves what a client formed to what is to be written, without a copy where nothing waits there.
pub fn hand_over(formed: &mut Vec<u8>, buffer: &mut Vec<u8>) {
    if buffer.is_empty() {
        std::mem::swap(buffer, formed);
    } else {
        buffer.append(formed);
    }
}

/// Writes as much as surely does not block; returns how much that is.
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
            // The latter from a socket in which something was left unread.
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
