//! The list of known secrets that all threads share: the loop and the faces add them, the threads of log and tape hide them.
//!
//! It is the one state in this crate that another thread can change: a value that a client gives must be hidden at once,
//! wherever it is written.

#![allow(
    clippy::disallowed_types,
    reason = "a value is hidden in all threads at once"
)]

use super::known::Known;
use std::ops::Range;
use std::sync::{Arc, PoisonError, RwLock};

/// Handle of the list, for acpipe itself or one of its clients. When it is dropped, its values leave the list.
#[derive(Debug, Default)]
pub(super) struct SharedList {
    owner: u64,
    known: Arc<RwLock<Known>>,
}

impl SharedList {
    /// Returns a handle of the same list for a client, whose values cannot displace those of others.
    pub(super) fn of_client(&self) -> Self {
        let known = self.known.write();
        Self {
            owner: known.unwrap_or_else(PoisonError::into_inner).new_owner(),
            known: Arc::clone(&self.known),
        }
    }

    /// Adds values in the forms in which they are written.
    pub(super) fn add(&self, forms: &[Vec<u8>]) {
        if !forms.is_empty() {
            let known = self.known.write();
            known
                .unwrap_or_else(PoisonError::into_inner)
                .add(self.owner, forms);
        }
    }

    /// Passes the ranges of `text` that are known secrets to `found`.
    pub(super) fn find(&self, text: &[u8], found: &mut dyn FnMut(Range<usize>)) {
        let known = self.known.read();
        known
            .unwrap_or_else(PoisonError::into_inner)
            .find(text, found);
    }
}

impl Drop for SharedList {
    fn drop(&mut self) {
        let known = self.known.write();
        known
            .unwrap_or_else(PoisonError::into_inner)
            .leave(self.owner);
    }
}
