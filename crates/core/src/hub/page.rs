//! Sizes of pages.

use acpipe_model::error::{Error, invalid};

/// Maximum and default number of messages in a page.
pub(super) const MESSAGES: (u32, u32) = (1000, 100);

/// Returns the size of a page: the requested or default size, up to the maximum.
pub(super) fn limit(given: Option<u32>, (most, usual): (u32, u32)) -> Result<usize, Error> {
    match given {
        Some(0) => Err(invalid("limit", "must be at least 1")),
        given => Ok(given.unwrap_or(usual).min(most) as usize),
    }
}
