//! Reading of the ledger: the decisions stored in a log.

use super::{Log, storage_error};
use crate::core::error::Error;
use crate::proto::json::shallow_stored;
use crate::proto::wire::LedgerEntry;
use serde::Deserialize;

/// First bytes of a decision's line.
const BEGINNING: &[u8] = br#"{"record":"decision","#;

/// A decision with its time and turn.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StoredDecision {
    /// Time of the decision, RFC 3339.
    pub at: String,
    /// Turn in which the decision was made.
    pub turn_id: String,
    /// The decision.
    pub decision: LedgerEntry,
}

impl Log {
    /// Passes all decisions to `take`, in order; returns the number of decisions that cannot be read.
    ///
    /// # Errors
    /// The disk fails.
    pub fn decisions(&self, mut take: impl FnMut(StoredDecision)) -> Result<u64, Error> {
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
        read.map_err(|e| storage_error("read", &e))?;
        Ok(unread)
    }
}
