//! Cards of logs: what a list needs to know of a session.

use super::names;
use crate::core::store::Card;
use crate::shell::regular;
use std::path::Path;

/// The largest card that is read, in bytes: of a session with a larger one the log is read.
const LONGEST: u64 = 16 << 20;

/// The card of a log, if it can be read.
pub fn read(log: &Path) -> Option<Card> {
    let json = regular::read(&log.with_extension(names::CARD), LONGEST).ok()?;
    serde_json::from_slice(&json).ok()
}
