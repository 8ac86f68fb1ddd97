//! Store for sessions that are kept in memory only.

use super::real_path;
use crate::core::error::Error;
use crate::core::store::{CardQuery, LogFile, MemoryStore, Store};

/// [`MemoryStore`] store that compares paths like the store on disk.
#[derive(Debug, Default)]
pub struct Memory(MemoryStore);

impl Store for Memory {
    fn has(&self, id: &str) -> Result<bool, Error> {
        self.0.has(id)
    }

    fn real_path(&self, path: &str) -> String {
        real_path(path)
    }

    fn open(&mut self, id: &str) -> Result<Box<dyn LogFile>, Error> {
        self.0.open(id)
    }

    fn list(&mut self, ticket: u64, query: CardQuery) -> bool {
        self.0.list(ticket, query)
    }
}
