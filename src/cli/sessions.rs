//! What is stored, seen without a bridge.

mod newest;

use crate::core::error::{Error, ErrorKind};
use crate::core::store::Card;
use crate::shell;
pub use newest::newest;
use std::path::Path;

/// The cards of all sessions, those that changed last first.
pub fn cards(state: &Path) -> Result<Vec<Card>, Error> {
    let mut cards = shell::cards(state).map_err(|e| {
        let message = format!("the sessions in {} cannot be read: {e}", state.display());
        Error::new(ErrorKind::Storage, message)
    })?;
    cards.sort_by(|a, b| (&b.updated_at, &b.session_id).cmp(&(&a.updated_at, &a.session_id)));
    Ok(cards)
}
