//! A log in memory, on a disk that may be full.

use crate::core::store::{Card, LogFile};
use std::cell::Cell;
use std::io;
use std::ops::Range;
use std::rc::Rc;

/// A log in memory, on a disk that may be full.
#[derive(Debug)]
pub(super) struct Disk {
    pub file: Box<dyn LogFile>,
    pub full: Rc<Cell<bool>>,
}

impl LogFile for Disk {
    fn end(&self) -> u64 {
        self.file.end()
    }
    fn append(&mut self, lines: &[u8]) -> io::Result<()> {
        if self.full.get() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.file.append(lines)
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
