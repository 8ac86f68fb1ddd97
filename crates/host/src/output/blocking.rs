//! Writes to stdout by a thread, which may block.

use super::KEPT;
use super::stdout::write_some;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::{Errno, write};
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc as thread};
use tokio::sync::mpsc;

/// Number of bytes that a writable pipe accepts without blocking (POSIX `PIPE_BUF`; Linux has 4096).
const ATOMIC: usize = 4096;

/// Maximum size of a batch that is written directly: a slice of an agent's output (16 KiB) in the
/// notifications of `serve`.
const DIRECT: usize = 6 * ATOMIC;

/// Maximum size in bytes of a write by the thread; it reports progress after each.
const PIECE: usize = 64 * 1024;

/// The buffer of a written batch, or the error that ended the output.
type WrittenBatch = Result<Vec<u8>, Errno>;

/// The thread that writes. A small batch is written directly if stdout is a pipe or socket that is certain to
/// accept it, which saves a paced stream the hop to the thread.
#[derive(Debug)]
pub struct Blocking {
    batches: thread::SyncSender<Vec<u8>>,
    batches_written: mpsc::Receiver<WrittenBatch>,
    spare: Vec<u8>,
    busy: bool,
    direct: bool,
    /// Number of bytes written in total.
    written: Arc<AtomicU64>,
}

impl Blocking {
    /// Starts the thread. With `direct`, stdout is a pipe or socket.
    ///
    /// # Errors
    /// The thread could not be started.
    pub fn new(direct: bool) -> io::Result<Self> {
        let (batches, receiver) = thread::sync_channel::<Vec<u8>>(1);
        let (sender, batches_written) = mpsc::channel(1);
        let written = Arc::new(AtomicU64::new(0));
        let its = written.clone();
        std::thread::Builder::new()
            .name("stdout".into())
            .spawn(move || {
                while let Ok(mut batch) = receiver.recv() {
                    let result = write_all(&batch, &its).map(|()| {
                        batch.clear();
                        batch
                    });
                    if sender.blocking_send(result).is_err() {
                        return;
                    }
                }
            })?;
        Ok(Self {
            batches,
            batches_written,
            spare: Vec::new(),
            busy: false,
            direct,
            written,
        })
    }

    /// Returns `true` while the thread writes.
    pub fn is_busy(&self) -> bool {
        self.busy
    }

    /// Returns the number of bytes written in total.
    pub fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    /// Takes the content of `buffer` and writes it, unless the thread is busy with the preceding batch.
    ///
    /// # Errors
    /// Writes to stdout fail.
    pub fn write(&mut self, buffer: &mut Vec<u8>) -> Result<(), Errno> {
        if self.busy
            && let Ok(written) = self.batches_written.try_recv()
        {
            self.finished(written)?;
        }
        if self.busy || buffer.is_empty() {
            return Ok(());
        }
        if self.direct && buffer.len() <= DIRECT {
            let n = write_directly(buffer)?;
            self.written.fetch_add(n as u64, Ordering::Relaxed);
            buffer.drain(..n);
            if buffer.is_empty() {
                return Ok(());
            }
        }
        let batch = std::mem::replace(buffer, std::mem::take(&mut self.spare));
        // The thread ends before the sender only if it panics.
        self.batches.send(batch).map_err(|_| Errno::IO)?;
        self.busy = true;
        Ok(())
    }

    /// Waits until the thread has written a batch; never ends while it has none. Cancel safe.
    ///
    /// # Errors
    /// Writes to stdout fail.
    pub async fn room(&mut self) -> Result<(), Errno> {
        if !self.busy {
            return std::future::pending().await;
        }
        let written = self.batches_written.recv().await;
        self.finished(written.unwrap_or(Err(Errno::IO)))
    }

    /// Handles a finished batch; its buffer is reused.
    fn finished(&mut self, written: WrittenBatch) -> Result<(), Errno> {
        self.busy = false;
        let empty = written?;
        if empty.capacity() <= KEPT {
            self.spare = empty;
        }
        Ok(())
    }
}

/// Writes as much as is certain not to block; returns the number of bytes written.
fn write_directly(bytes: &[u8]) -> Result<usize, Errno> {
    let mut written = 0;
    while written < bytes.len() && has_room(rustix::stdio::stdout()) {
        let piece = &bytes[written..bytes.len().min(written + ATOMIC)];
        match write(rustix::stdio::stdout(), piece) {
            Ok(n) => written += n,
            Err(Errno::INTR | Errno::AGAIN) => break,
            Err(error) => return Err(error),
        }
    }
    Ok(written)
}

/// Returns `true` if a pipe or socket takes a small batch at once.
pub fn has_room(file: BorrowedFd<'_>) -> bool {
    let mut fds = [PollFd::new(&file, PollFlags::OUT)];
    let now = rustix::event::Timespec::default();
    matches!(poll(&mut fds, Some(&now)), Ok(1)) && fds[0].revents() == PollFlags::OUT
}

fn write_all(mut bytes: &[u8], written: &AtomicU64) -> Result<(), Errno> {
    while !bytes.is_empty() {
        let n = write_some(&bytes[..bytes.len().min(PIECE)])?;
        bytes = &bytes[n..];
        written.fetch_add(n as u64, Ordering::Relaxed);
    }
    Ok(())
}
