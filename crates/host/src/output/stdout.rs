//! Writes to stdout. All of acpipe's output goes through this file or, without blocking, through its siblings.

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::{Errno, write};
use std::io;

/// Error of a write to stdout, inside the [`io::Error`] of the write.
#[derive(Debug, thiserror::Error)]
#[error("cannot write to stdout: {0}")]
pub struct StdoutError(io::Error);

impl StdoutError {
    /// Wraps the error of a write, and keeps its kind.
    #[must_use]
    pub fn wrap(errno: Errno) -> io::Error {
        let error = io::Error::from(errno);
        io::Error::new(error.kind(), Self(error))
    }

    /// Returns the error of stdout that an error consists of.
    #[must_use]
    pub fn of(error: &io::Error) -> Option<&Self> {
        error.get_ref()?.downcast_ref()
    }

    /// Returns `true` if the reader closed the pipe, as `head` does: it has read enough, and nothing has failed.
    #[must_use]
    pub fn is_reader_gone(&self) -> bool {
        Errno::from_io_error(&self.0).is_some_and(is_reader_gone)
    }
}

/// Returns `true` for the errors of a pipe or socket whose reader has left.
pub fn is_reader_gone(errno: Errno) -> bool {
    // A socket returns CONNRESET if unread data was left in it.
    matches!(errno, Errno::PIPE | Errno::CONNRESET)
}

/// Writer to stdout without a buffer; blocks while stdout has no room.
///
/// The writer of the standard library reports success for a descriptor that cannot be written, and keeps a last line
/// without a line break until the end of the program, where an error has no reader.
#[derive(Debug, Clone, Copy, Default)]
pub struct StdoutWriter;

impl io::Write for StdoutWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        write_some(bytes).map_err(StdoutError::wrap)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes at least one byte; returns the number of bytes written.
///
/// # Errors
/// Writes to stdout fail.
pub fn write_some(bytes: &[u8]) -> Result<usize, Errno> {
    loop {
        match write(rustix::stdio::stdout(), bytes) {
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => {
                // The client made its end non-blocking: wait without spinning.
                let stdout = rustix::stdio::stdout();
                let mut fds = [PollFd::new(&stdout, PollFlags::OUT)];
                match poll(&mut fds, None) {
                    Ok(_) | Err(Errno::INTR) => {}
                    Err(error) => return Err(error),
                }
            }
            written => return written,
        }
    }
}
