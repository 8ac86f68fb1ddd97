//! Failures that agents report beside their answers.

/// Whether a turn fails, as the agent reports it beside its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failing {
    /// It fails: the text that follows is the reason.
    Yes,
    /// It fails unless its answer has token counts: the text that follows may be the reason.
    UnlessUsage,
    /// It goes on.
    No,
}
