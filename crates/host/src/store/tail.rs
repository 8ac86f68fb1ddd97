//! The end of a log, where lines are appended, all or none.

use super::unlinked;
use acpipe_core::store::{Count, Write};
use std::fs;
use std::io;

/// State of the end of a log.
#[derive(Debug, Clone, Copy)]
pub struct LogEnd {
    /// Length of the log in bytes.
    pub len: u64,
    /// Whether a part of a failed append is still in the file after `len`.
    pub torn: bool,
    /// Whether the file is known to exist; checked once a turn.
    pub seen: bool,
}

impl LogEnd {
    /// Appends everything that `write` writes, or nothing.
    ///
    /// # Errors
    /// The disk is full or fails, or the file was removed.
    pub fn append(&mut self, file: &fs::File, write: &Write<'_>) -> io::Result<()> {
        if !self.seen {
            unlinked::check(file)?;
        }
        self.seen = true;
        if self.torn {
            file.set_len(self.len)?;
            self.torn = false;
        }
        let mut lines = CountingWriter(file, Count::default());
        let Err(e) = write(&mut lines) else {
            self.len += lines.1.0;
            return Ok(());
        };
        self.torn = file.set_len(self.len).is_err();
        Err(e)
    }
}

/// Writer that counts the bytes written.
struct CountingWriter<'a>(&'a fs::File, Count);

impl io::Write for CountingWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n = self.0.write(bytes)?;
        self.1.write(&bytes[..n])
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}
