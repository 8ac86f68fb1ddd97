//! Outcome of a turn: the agent's response, or the error in its place.

use acpipe_model::error::Error;
use acpipe_model::event::TurnEnd;

#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "a turn has one")]
pub enum Ending {
    Answered(TurnEnd),
    /// The agent did not answer the prompt, or answered with an error.
    Failed(Error),
}

impl Ending {
    pub fn error(&self) -> Option<&Error> {
        match self {
            Self::Answered(end) => end.error.as_ref(),
            Self::Failed(error) => Some(error),
        }
    }

    /// Replaces the error and keeps everything else of the outcome.
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
