//! How a turn ended: the agent's answer, or the error in its place.

use super::error::Error;
use super::event::TurnEnd;

/// How a turn ended.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "a turn has one")]
pub enum Ending {
    /// The agent answered.
    Answered(TurnEnd),
    /// It did not, or with an error.
    Failed(Error),
}

impl Ending {
    /// Why the turn failed, if it did.
    #[must_use]
    pub fn error(&self) -> Option<&Error> {
        match self {
            Self::Answered(end) => end.error.as_ref(),
            Self::Failed(error) => Some(error),
        }
    }

    /// The same end, but for this reason.
    #[must_use]
    pub fn with_error(self, error: Error) -> Self {
        match self {
            Self::Answered(end) => Self::Answered(TurnEnd {
                error: Some(error),
                ..end
            }),
            Self::Failed(_) => Self::Failed(error),
        }
    }
}
