//! Limit on the output for states that replace each other, in proportion to what is new in them.
//!
//! Tools, terminals, plans and subagents are shown whole at every change, since readers replace the previous state.
//! An agent that sends many small changes of a large state would fill the log, and so would an agent that sends a
//! growing state whole each time. So a change is shown only while the output for its item stays below what the agent
//! reported of it, and while the output of large states stays in proportion to what was new in the reports. A change
//! that is not shown is contained in the next one, and each item is shown once more at its end.
//!
//! In total the output is at most about twice what the agent reported, and about [`REPEATS`] times what was new in it.

use super::store::Count;
use serde::Serialize;

/// Output that is always allowed for an item, in bytes, so that small items are shown at every change.
const FREE_OUTPUT: usize = 16 * 1024;

/// Size of a state that is shown at every change, however little of it is new, in bytes.
pub const SMALL: usize = 2 * 1024;

/// Number of times that what is new in large states may be shown. A growing state is thus shown again when it has grown
/// by an eighth.
pub const REPEATS: usize = 8;

/// Size added to the payload of each message for its frame, in bytes.
pub const FRAME: usize = 150;

/// Returns the size of a value as JSON, in bytes.
pub fn size(json: &impl Serialize) -> usize {
    let mut size = Count::default();
    // Counting cannot fail.
    let _ = serde_json::to_writer(&mut size, json);
    usize::try_from(size.0).unwrap_or(usize::MAX)
}

/// Reports and output of an item, in bytes.
#[derive(Debug, Clone, Copy, Default)]
pub struct OutputBudget {
    reported: usize,
    /// Part of the reports that the states before did not have.
    added: usize,
    shown: usize,
    /// Part of the output that is of large states.
    shown_large: usize,
}

impl OutputBudget {
    /// Counts a report of the item: its size, and how much of it is new.
    pub fn grow(&mut self, reported: usize, added: usize) {
        self.reported = self.reported.saturating_add(reported);
        self.added = self.added.saturating_add(added);
    }

    pub fn allows(&self, bytes: usize) -> bool {
        let fits = |shown: usize, room: usize| {
            shown.saturating_add(bytes) <= room.saturating_add(FREE_OUTPUT)
        };
        let repeats = self.added.saturating_mul(REPEATS);
        fits(self.shown, self.reported) && (bytes <= SMALL || fits(self.shown_large, repeats))
    }

    /// Counts output for the item.
    pub fn show(&mut self, bytes: usize) {
        self.shown = self.shown.saturating_add(bytes);
        if bytes > SMALL {
            self.shown_large = self.shown_large.saturating_add(bytes);
        }
    }
}
