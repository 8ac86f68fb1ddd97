//! Writes to stdout that never block, although the descriptor itself does (Linux).

use super::KEPT;
use super::kernel_buffer::KernelBuffer;
use rustix::io::{Errno, ReadWriteFlags, pwritev2};
use std::io::{ErrorKind, IoSlice};
use std::os::fd::AsFd as _;
use tokio::net::unix::pipe::Sender;

/// Offset with which `pwritev2` writes like `write`.
const NO_OFFSET: u64 = u64::MAX;

/// Pipe or socket to which the loop writes without blocking: `RWF_NOWAIT` concerns one write only.
#[derive(Debug)]
pub struct Nonblocking {
    /// Batch that is being written, and the number of its bytes that are written.
    batch: Vec<u8>,
    sent: usize,
    /// Number of bytes written in total.
    written: u64,
    /// Registration of stdout with the reactor; `None` until the reader had to make room.
    registered: Option<Sender>,
    is_socket: bool,
    blocked: bool,
    kernel_buffer: KernelBuffer,
}

/// Error of a write.
#[derive(Debug)]
pub enum WriteError {
    /// The system does not support such writes. The rest must be written in another way.
    Unsupported,
    Failed(Errno),
}

impl Nonblocking {
    pub fn new(is_socket: bool) -> Self {
        Self {
            batch: Vec::new(),
            sent: 0,
            written: 0,
            registered: None,
            is_socket,
            blocked: false,
            kernel_buffer: KernelBuffer::new(is_socket),
        }
    }

    /// Makes the kernel's buffer small, or as large as it was at first.
    pub fn set_small_buffer(&mut self, small: bool) {
        self.kernel_buffer.set_small(small);
    }

    /// Returns `true` while the reader has to make room first.
    pub fn is_blocked(&self) -> bool {
        self.blocked
    }

    /// Returns the number of bytes taken but not written.
    pub fn pending(&self) -> usize {
        self.batch.len() - self.sent
    }

    /// Returns the number of bytes written in total.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Takes the content of `buffer` and writes all that stdout has room for.
    ///
    /// # Errors
    /// Writes to stdout fail, or are not possible in this way.
    pub fn write(&mut self, buffer: &mut Vec<u8>) -> Result<(), WriteError> {
        while !self.blocked {
            if self.pending() == 0 {
                self.batch.clear();
                self.sent = 0;
                if self.batch.capacity() > KEPT {
                    self.batch = Vec::new();
                }
                if buffer.is_empty() {
                    self.note_drained();
                    return Ok(());
                }
                std::mem::swap(&mut self.batch, buffer);
            }
            let n = write(&self.batch[self.sent..])?;
            self.sent += n;
            self.written += n as u64;
            if self.pending() > 0 {
                self.block()?;
            }
        }
        Ok(())
    }

    /// Takes what is not written.
    pub fn take_rest(&mut self) -> Vec<u8> {
        let mut rest = std::mem::take(&mut self.batch);
        rest.drain(..std::mem::take(&mut self.sent));
        rest
    }

    /// Prepares the wait for room after a write that found too little.
    fn block(&mut self) -> Result<(), WriteError> {
        if let Some(registered) = &self.registered {
            // Clears the readiness that was reported before the write.
            let full = || std::io::Error::from(ErrorKind::WouldBlock);
            let _ = registered.try_io(|| Err::<(), _>(full()));
        } else {
            // Only its readiness is used: the descriptor stays a blocking one.
            let stdout = rustix::stdio::stdout().as_fd().try_clone_to_owned();
            let registered = stdout.and_then(Sender::from_owned_fd_unchecked);
            self.registered = Some(registered.map_err(|_| WriteError::Unsupported)?);
        }
        self.blocked = true;
        Ok(())
    }

    /// Waits until the reader has made room; never ends if nothing is pending. Cancel safe.
    pub async fn room(&mut self) {
        let Some(registered) = self.registered.as_ref().filter(|_| self.blocked) else {
            return std::future::pending().await;
        };
        // After an error of the reactor the next write reports what is wrong.
        let _ = registered.writable().await;
        self.blocked = false;
    }

    /// Ends the registration of a socket: it reports each read of its peer, which would wake the loop.
    fn note_drained(&mut self) {
        if self.is_socket {
            self.registered = None;
        }
    }
}

/// Writes what stdout has room for; returns the number of bytes written.
fn write(bytes: &[u8]) -> Result<usize, WriteError> {
    let bytes = [IoSlice::new(bytes)];
    loop {
        let stdout = rustix::stdio::stdout();
        match pwritev2(stdout, &bytes, NO_OFFSET, ReadWriteFlags::NOWAIT) {
            Ok(n) => return Ok(n),
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => return Ok(0),
            Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::PERM) => {
                return Err(WriteError::Unsupported);
            }
            Err(error) => return Err(WriteError::Failed(error)),
        }
    }
}
