//! Cards: summaries of logs for lists of sessions.

use super::names;
use crate::regular;
use acpipe_core::store::Card;
use acpipe_json::read_bytes;
use std::path::Path;

/// Maximum size of a card in bytes; for a larger one the log is read instead.
const MAX_CARD_BYTES: u64 = 16 << 20;

/// Reads the card of a log; `None` if it is missing or not valid.
pub fn read(log: &Path) -> Option<Card> {
    let json = regular::read(&log.with_extension(names::CARD), MAX_CARD_BYTES).ok()?;
    read_bytes(&json).ok()
}
