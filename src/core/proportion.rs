//! What is shown of a thing that grows stays in proportion to what was said of it.
//!
//! Tools, terminals and subagents are shown whole at a change, since readers replace what they had. An agent that says
//! little, often, of something large would fill the log with it. So changes are shown as long as all that is shown is less than
//! what was said; one that is not shown waits for the next, and at its end each thing is shown once more. In all that is about
//! twice what was said.

use super::store::Count;
use serde::Serialize;

/// What anything may be shown beyond what was said of it, in bytes: small things are shown at every change.
const FREE: usize = 16 * 1024;

/// What is counted of a message beside what it says, in bytes: its frame.
pub const FRAME: usize = 150;

/// How large something is as JSON, in bytes.
#[must_use]
pub fn size(json: &impl Serialize) -> usize {
    let mut size = Count::default();
    // Counting cannot fail.
    let _ = serde_json::to_writer(&mut size, json);
    usize::try_from(size.0).unwrap_or(usize::MAX)
}

/// How much was said of a thing, and how much was shown.
#[derive(Debug, Clone, Copy, Default)]
pub struct Proportion {
    said: usize,
    shown: usize,
}

impl Proportion {
    /// So many bytes were said of it.
    pub fn hear(&mut self, bytes: usize) {
        self.said = self.said.saturating_add(bytes);
    }

    /// Whether as much as this may be shown for a change.
    #[must_use]
    pub fn allows(&self, bytes: usize) -> bool {
        let room = self.said.saturating_add(FREE);
        self.shown.saturating_add(bytes) <= room
    }

    /// So many bytes were shown.
    pub fn show(&mut self, bytes: usize) {
        self.shown = self.shown.saturating_add(bytes);
    }
}
