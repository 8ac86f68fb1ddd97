//! Failures that agents report outside of their results.

/// Whether a turn fails, as the agent reports it outside of its result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureReport {
    /// The turn fails; the text that follows is the reason.
    Yes,
    /// The turn fails unless its result has token counts; the text that follows may be the reason.
    UnlessUsage,
    No,
}
