//! Sessions that their agent no longer remembers.

/// Treatment of the stored history of a session whose agent has lost its memory of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OnLost {
    /// `true` archives the history and starts with an empty one; `false` keeps it.
    pub clear: bool,
    /// Maximum number of characters of the history that are sent to the agent with its next prompt; 0 sends
    /// none.
    pub reinject: usize,
}
