//! The client's stdout: output is written so that a client which does not read never blocks the loop.
//!
//! On Linux the loop itself writes to a pipe or socket, without blocking, and waits for room in its reactor
//! (`nonblocking`). Everything else is written by a thread, one batch at a time, while the next batch is
//! collected (`blocking`). The descriptor's flags are never changed because the client shares them.

mod blocking;
#[cfg(target_os = "linux")]
mod kernel_buffer;
#[cfg(target_os = "linux")]
mod nonblocking;
mod stdout;

use super::clock::running_now;
use blocking::Blocking;
#[cfg(target_os = "linux")]
use nonblocking::{Nonblocking, WriteError};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{FileType, fstat};
use rustix::io::Errno;
use std::io;
use std::time::Instant;
use stdout::is_reader_gone;
pub use stdout::{StdoutError, StdoutWriter};
use tokio::sync::mpsc;

/// Number of queued output bytes above which agents are slowed.
pub const FULL: usize = 256 * 1024;

/// [`FULL`] while several agents share stdout. Queued output is ahead of that of an agent which sends little, and
/// a slow client reads [`FULL`] bytes in a second.
const FULL_IF_SHARED: usize = 8 * 1024;

/// Maximum capacity of a written buffer that is kept for the next batch.
const KEPT: usize = 2 * FULL;

/// The client's stdout.
pub struct ClientStdout {
    /// Output collected for the next batch.
    pub buffer: Vec<u8>,
    way: Way,
    /// Number of queued bytes above which agents are slowed.
    window: usize,
    left: mpsc::Receiver<()>,
    closed: Option<CloseReason>,
    /// Last observed number of written bytes, and when it last rose or was the whole output.
    seen: (u64, Instant),
}

/// How stdout is written.
enum Way {
    #[cfg(target_os = "linux")]
    Nonblocking(Nonblocking),
    Blocking(Blocking),
}

/// Amount of output queued for a client that reads slowly or not at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pressure {
    /// At most a quarter of the window, or the window if the client need not read first.
    None,
    /// More than a quarter of the window, and the client has to read first: chunks are coalesced.
    Behind,
    /// More than the window ([`FULL`] bytes for a single agent): agents are slowed, and read-only calls wait.
    Full,
}

/// Output that waits for its reader.
#[derive(Debug, Clone, Copy)]
pub struct OutputWait {
    /// When the reader read last.
    pub last_progress: Instant,
    /// `true` while agents wait for the reader.
    pub is_full: bool,
    /// `true` if the loop ends and no more output follows.
    pub is_ending: bool,
}

/// Reason why nothing more is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CloseReason {
    /// The reader closed the pipe, as `head` does.
    ReaderLeft,
    /// A write failed, for example because the disk is full.
    Failed(Errno),
    /// The client did not read for too long during the shutdown, or until the limit of the run.
    GivenUp,
}

impl ClientStdout {
    /// Prepares stdout, and starts the thread that notices when its reader leaves.
    ///
    /// # Errors
    /// A thread could not be started.
    pub fn new() -> io::Result<Self> {
        let (leaving, left) = mpsc::channel(1);
        let kind = fstat(rustix::stdio::stdout()).map(|s| FileType::from_raw_mode(s.st_mode));
        let kind = kind.unwrap_or(FileType::Unknown);
        if matches!(kind, FileType::Fifo | FileType::Socket) {
            std::thread::Builder::new()
                .name("stdout reader".into())
                .spawn(move || watch_reader(&leaving))?;
        }
        Ok(Self {
            buffer: Vec::new(),
            way: Way::of(kind)?,
            window: FULL,
            left,
            closed: None,
            seen: (0, running_now()),
        })
    }

    /// Writes the collected output as far as possible without waiting for the reader.
    pub fn flush(&mut self) {
        if self.closed.is_some() {
            self.buffer.clear();
            return;
        }
        let was_pending = self.way.is_blocked();
        if let Err(error) = self.way.write(&mut self.buffer) {
            self.close(CloseReason::of(error));
        } else if !was_pending && self.way.is_blocked() {
            self.seen.1 = running_now();
        }
    }

    /// Waits until more is written, or until the reader closes stdout. Cancel safe.
    pub async fn progress(&mut self) {
        let room = tokio::select! {
            room = self.way.room(), if self.closed.is_none() => room,
            Some(()) = self.left.recv() => Err(Errno::PIPE),
            else => std::future::pending().await,
        };
        match room {
            Ok(()) => self.flush(),
            Err(error) => self.close(CloseReason::of(error)),
        }
    }

    fn close(&mut self, why: CloseReason) {
        self.closed.get_or_insert(why);
        self.buffer.clear();
    }

    /// Sets whether several agents share stdout. Less is then queued here and in the kernel, so that the output of
    /// one agent does not wait long behind that of the others.
    pub fn set_shared(&mut self, shared: bool) {
        self.window = if shared { FULL_IF_SHARED } else { FULL };
        self.way.set_small_buffer(shared);
    }

    /// Returns the number of queued bytes above which agents are slowed.
    pub fn window(&self) -> usize {
        self.window
    }

    fn queued(&self) -> usize {
        self.buffer.len() + self.way.pending()
    }

    /// Returns `true` if agents must wait for the client.
    pub fn is_full(&self) -> bool {
        self.closed.is_none() && self.queued() > self.window
    }

    /// Returns the amount of queued output.
    pub fn pressure(&self) -> Pressure {
        match self.queued() {
            _ if self.closed.is_some() => Pressure::None,
            len if len > self.window => Pressure::Full,
            len if len > self.window / 4 && self.way.is_blocked() => Pressure::Behind,
            _ => Pressure::None,
        }
    }

    /// Returns `true` once nothing more is written.
    pub fn is_closed(&self) -> bool {
        self.closed.is_some()
    }

    /// Returns the error of a write that failed. A reader that left is none.
    ///
    /// # Errors
    /// A write has failed; the error is a [`StdoutError`].
    pub fn result(&self) -> io::Result<()> {
        match self.closed {
            Some(CloseReason::Failed(errno)) => Err(StdoutError::wrap(errno)),
            Some(CloseReason::ReaderLeft | CloseReason::GivenUp) | None => Ok(()),
        }
    }

    /// Returns the wait for the reader; `None` if nothing is pending.
    pub fn wait(&mut self, is_ending: bool) -> Option<OutputWait> {
        if !self.is_pending() {
            return None;
        }
        let written = self.way.written();
        if written != self.seen.0 {
            self.seen = (written, running_now());
        }
        Some(OutputWait {
            last_progress: self.seen.1,
            is_full: self.is_full(),
            is_ending,
        })
    }

    /// Drops the pending output and closes stdout.
    pub fn give_up(&mut self) {
        self.close(CloseReason::GivenUp);
    }

    /// Returns `true` while output is not written yet.
    pub fn is_pending(&self) -> bool {
        self.closed.is_none() && (self.way.is_blocked() || self.queued() > 0)
    }
}

impl Way {
    /// Chooses how a file of this kind is written.
    fn of(kind: FileType) -> io::Result<Self> {
        let direct = matches!(kind, FileType::Fifo | FileType::Socket);
        #[cfg(target_os = "linux")]
        if direct {
            let is_socket = kind == FileType::Socket;
            return Ok(Self::Nonblocking(Nonblocking::new(is_socket)));
        }
        Blocking::new(direct).map(Self::Blocking)
    }

    /// Takes the content of `buffer` and writes it as far as possible without waiting for the reader.
    fn write(&mut self, buffer: &mut Vec<u8>) -> Result<(), Errno> {
        #[cfg(target_os = "linux")]
        if let Self::Nonblocking(way) = self {
            match way.write(buffer) {
                Ok(()) => return Ok(()),
                Err(WriteError::Failed(error)) => return Err(error),
                Err(WriteError::Unsupported) => {
                    let mut rest = way.take_rest();
                    rest.append(buffer);
                    *buffer = rest;
                    let way = Blocking::new(true);
                    let way = way.map_err(|e| Errno::from_io_error(&e).unwrap_or(Errno::IO))?;
                    *self = Self::Blocking(way);
                }
            }
        }
        match self {
            #[cfg(target_os = "linux")]
            Self::Nonblocking(_) => Ok(()),
            Self::Blocking(way) => way.write(buffer),
        }
    }

    /// Makes the kernel's buffer small, or as large as it was at first.
    #[cfg_attr(
        not(target_os = "linux"),
        expect(
            clippy::unused_self,
            unused_variables,
            reason = "only Linux has such calls"
        )
    )]
    fn set_small_buffer(&mut self, small: bool) {
        #[cfg(target_os = "linux")]
        if let Self::Nonblocking(way) = self {
            way.set_small_buffer(small);
        }
    }

    /// Waits until the reader has made room for more; never ends if nothing is pending. Cancel safe.
    async fn room(&mut self) -> Result<(), Errno> {
        match self {
            #[cfg(target_os = "linux")]
            Self::Nonblocking(way) => {
                way.room().await;
                Ok(())
            }
            Self::Blocking(way) => way.room().await,
        }
    }

    /// Returns `true` while the reader has to make room first.
    fn is_blocked(&self) -> bool {
        match self {
            #[cfg(target_os = "linux")]
            Self::Nonblocking(way) => way.is_blocked(),
            Self::Blocking(way) => way.is_busy(),
        }
    }

    /// Returns the number of bytes that are taken but not written, apart from those of the thread.
    fn pending(&self) -> usize {
        match self {
            #[cfg(target_os = "linux")]
            Self::Nonblocking(way) => way.pending(),
            Self::Blocking(_) => 0,
        }
    }

    /// Returns the number of bytes written in total.
    fn written(&self) -> u64 {
        match self {
            #[cfg(target_os = "linux")]
            Self::Nonblocking(way) => way.written(),
            Self::Blocking(way) => way.written(),
        }
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

/// Returns `true` if a short message can be written to stderr at once.
#[must_use]
pub fn stderr_has_room() -> bool {
    blocking::has_room(rustix::stdio::stderr())
}

/// Moves a client's output to the buffer for stdout, without a copy if the buffer is empty.
pub fn hand_over(formed: &mut Vec<u8>, buffer: &mut Vec<u8>) {
    if buffer.is_empty() {
        std::mem::swap(buffer, formed);
    } else {
        buffer.append(formed);
    }
}

impl CloseReason {
    fn of(error: Errno) -> Self {
        if is_reader_gone(error) {
            Self::ReaderLeft
        } else {
            Self::Failed(error)
        }
    }
}
