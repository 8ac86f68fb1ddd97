//! Limit on the output for growing items, in proportion to the agent's input.
//!
//! Tools, terminals and subagents are shown whole at every change, since readers replace the previous state.
//! An agent that sends many small changes of a large item would fill the log. So a change is shown only while
//! the output for its item stays below the input. A change that is not shown is contained in the next one,
//! and each item is shown once more at its end. In total the output is at most about twice the input.

use super::store::Count;
use serde::Serialize;

/// Output that is always allowed for an item, in bytes, so that small items are shown at every change.
const FREE_OUTPUT: usize = 16 * 1024;

/// Size added to the payload of each message for its frame, in bytes.
pub const FRAME: usize = 150;

/// Returns the size of a value as JSON, in bytes.
#[must_use]
pub fn size(json: &impl Serialize) -> usize {
    let mut size = Count::default();
    // Counting cannot fail.
    let _ = serde_json::to_writer(&mut size, json);
    usize::try_from(size.0).unwrap_or(usize::MAX)
}

/// Input and output of an item, in bytes.
#[derive(Debug, Clone, Copy, Default)]
pub struct OutputBudget {
    input: usize,
    output: usize,
}

impl OutputBudget {
    /// Counts input for the item.
    pub fn grow(&mut self, bytes: usize) {
        self.input = self.input.saturating_add(bytes);
    }

    /// Returns `true` if so many bytes may be shown for a change.
    #[must_use]
    pub fn allows(&self, bytes: usize) -> bool {
        let room = self.input.saturating_add(FREE_OUTPUT);
        self.output.saturating_add(bytes) <= room
    }

    /// Counts output for the item.
    pub fn show(&mut self, bytes: usize) {
        self.output = self.output.saturating_add(bytes);
    }
}
