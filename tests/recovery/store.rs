//! A store that outlives the hub, as a disk does.

use acpipe::testing::SharedCell;
use acpipe_core::store::{Card, CardQuery, LogFile, Store};
use acpipe_model::error::Error;
use std::collections::BTreeMap;
use std::io;
use std::ops::Range;

/// Bytes of the logs by session, and of the archived logs.
#[derive(Debug, Clone, Default)]
pub struct Disk {
    pub logs: BTreeMap<String, Vec<u8>>,
    pub archived: Vec<Vec<u8>>,
}

/// A hub's handle to a disk.
#[derive(Debug, Clone, Default)]
pub struct Shared(pub SharedCell<Disk>);

impl Store for Shared {
    fn has(&self, id: &str) -> Result<bool, Error> {
        Ok(self.0.borrow().logs.contains_key(id))
    }

    fn open(&mut self, id: &str) -> Result<Box<dyn LogFile>, Error> {
        self.0.borrow_mut().logs.entry(id.to_owned()).or_default();
        let (disk, id) = (self.clone(), id.to_owned());
        Ok(Box::new(Log { disk, id }))
    }

    fn list(&mut self, _: u64, _: CardQuery) -> bool {
        false
    }
}

#[derive(Debug)]
struct Log {
    disk: Shared,
    id: String,
}

impl Log {
    fn with<T>(&self, act: impl FnOnce(&mut Vec<u8>) -> T) -> T {
        act(self
            .disk
            .0
            .borrow_mut()
            .logs
            .entry(self.id.clone())
            .or_default())
    }
}

fn place(at: u64) -> usize {
    usize::try_from(at).unwrap()
}

impl LogFile for Log {
    fn end(&self) -> u64 {
        self.with(|bytes| bytes.len() as u64)
    }

    fn append(&mut self, lines: &[u8]) -> io::Result<()> {
        self.with(|bytes| bytes.extend_from_slice(lines));
        Ok(())
    }

    fn read(&self, range: Range<u64>) -> io::Result<Vec<u8>> {
        Ok(self.with(|bytes| bytes[place(range.start)..place(range.end)].to_vec()))
    }

    fn cut(&mut self, len: u64) -> io::Result<()> {
        self.with(|bytes| bytes.truncate(place(len)));
        Ok(())
    }

    fn sync(&mut self, _: u64) -> bool {
        false
    }

    fn describe(&mut self, _: &Card) {}

    fn replace(&mut self, lines: &[u8], archive: bool) -> io::Result<()> {
        let before = self.with(|bytes| std::mem::replace(bytes, lines.to_vec()));
        self.disk
            .0
            .borrow_mut()
            .archived
            .extend(archive.then_some(before));
        Ok(())
    }

    fn remove(&mut self, archive: bool) -> io::Result<()> {
        let mut disk = self.disk.0.borrow_mut();
        let before = disk.logs.remove(&self.id);
        disk.archived.extend(before.filter(|_| archive));
        Ok(())
    }
}
