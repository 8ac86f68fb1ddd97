//! Reading the ledger: the decisions that a log has.

use super::{Log, cannot};
use crate::core::error::Error;
use crate::proto::json::shallow_stored;
use crate::proto::wire::LedgerEntry;
use serde::Deserialize;

/// What the line of a decision begins with.
const BEGINNING: &[u8] = br#"{"record":"decision","#;

/// A decision, and when and where it was made.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Decided {
    /// RFC 3339.
    pub at: String,
    pub turn_id: String,
    pub decision: LedgerEntry,
}

impl Log {
    /// Hands over all decisions in their order; gives how many cannot be read.
    ///
    /// # Errors
    /// The disk fails.
    pub fn decisions(&self, mut take: impl FnMut(Decided)) -> Result<u64, Error> {
        let mut unread = 0;
        let read = self.lines(self.file.begin()..self.end(), |line, _| {
            if line.starts_with(BEGINNING) {
                match serde_json::from_slice(&shallow_stored(line)) {
                    Ok(decided) => take(decided),
                    Err(_) => unread += 1,
                }
            }
            true
        });
        read.map_err(|e| cannot("read", &e))?;
        Ok(unread)
    }
}
