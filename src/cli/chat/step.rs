//! Steps of a chat.

use crate::cli::run::calls::Steps;

/// Reply or input that the chat waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChatStep {
    Initialize,
    Connect,
    Ensure,
    /// The first `session/attach`: finds the other clients and the running turn of a session in the daemon.
    Look,
    /// The second `session/attach`, for the chunks of the running turn.
    Join,
    /// Opens a second session, in place of the open one.
    Replace,
    /// The user's next line.
    Line,
    Prompt,
    /// A change of the mode or model.
    Setting,
    Over,
}

impl ChatStep {
    /// Returns the progress to show during the step.
    pub fn progress(self, steps: &Steps) -> Option<String> {
        match self {
            Self::Connect => Some(steps.start()),
            Self::Ensure | Self::Replace => Some(steps.open()),
            Self::Prompt => Some(steps.prompt()),
            Self::Initialize
            | Self::Look
            | Self::Join
            | Self::Line
            | Self::Setting
            | Self::Over => None,
        }
    }
}

/// How often the user has pressed Ctrl-C since the last step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interrupted {
    No,
    Once,
    /// The chat ends with the exit code of a cancelled run.
    Leaves,
}
