//! In-memory log on a disk that may be full or not answer.

use crate::store::{AppendProgress, Card, LogFile};
use crate::testing::SharedCell;
use std::io;
use std::ops::Range;
use std::time::Duration;

/// Behaviour of the disk on a write.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Answer {
    #[default]
    Takes,
    IsFull,
    None,
}

/// In-memory log on a disk that may be full or not answer.
#[derive(Debug)]
pub(super) struct Disk {
    pub file: Box<dyn LogFile>,
    pub answer: SharedCell<Answer>,
}

impl LogFile for Disk {
    fn end(&self) -> u64 {
        self.file.end()
    }
    fn append(&mut self, lines: &[u8]) -> io::Result<()> {
        if self.answer.get() == Answer::IsFull {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.file.append(lines)
    }
    fn append_within(&mut self, lines: &[u8], _: Duration) -> io::Result<AppendProgress> {
        if self.answer.get() == Answer::None {
            return Ok(AppendProgress::Waiting);
        }
        self.append(lines).map(|()| AppendProgress::Written)
    }
    /// The disk keeps its behaviour: pending writes stay unwritten.
    fn appended(&mut self, _: Duration) -> io::Result<AppendProgress> {
        Ok(AppendProgress::Waiting)
    }
    fn read(&self, range: Range<u64>) -> io::Result<Vec<u8>> {
        self.file.read(range)
    }
    fn cut(&mut self, len: u64) -> io::Result<()> {
        self.file.cut(len)
    }
    fn sync(&mut self, ticket: u64) -> bool {
        self.file.sync(ticket)
    }
    fn describe(&mut self, card: &Card) {
        self.file.describe(card);
    }
    fn replace(&mut self, lines: &[u8], archive: bool) -> io::Result<()> {
        self.file.replace(lines, archive)
    }
    fn remove(&mut self, archive: bool) -> io::Result<()> {
        self.file.remove(archive)
    }
}
