//! Sessions in memory, on a machine whose directories can be looked up.

use super::real_path;
use crate::core::error::Error;
use crate::core::store::{LogFile, Store, Volatile};

/// [`Volatile`], with paths compared as those of stored sessions are.
#[derive(Debug, Default)]
pub struct Memory(Volatile);

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

    fn list(&mut self, ticket: u64) -> bool {
        self.0.list(ticket)
    }
}
