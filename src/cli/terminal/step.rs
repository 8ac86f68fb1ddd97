//! Steps of a client at a terminal.

use super::calls::Steps;

/// Reply or input that the client waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TerminalStep {
    Initialize,
    /// The list in which `acpipe attach` finds its session.
    List,
    Connect,
    Ensure,
    /// The first `session/attach`: finds the other clients and the running turn of a session in the daemon. Chunks are
    /// ignored until the second one.
    Look,
    /// The second `session/attach`, for the chunks of the running turn.
    Join,
    /// Opens a second session, in place of the open one.
    Replace,
    /// The user's next line, or the chunks of a session that is followed.
    Line,
    /// The end of the client's own turn. A client that follows a session sees its turns as all others.
    Prompt,
    /// A change of the mode or model.
    Setting,
    Over,
}

impl TerminalStep {
    /// Returns the progress to show during the step.
    pub fn progress(self, steps: &Steps) -> Option<String> {
        match self {
            Self::Connect => Some(steps.start()),
            Self::Ensure | Self::Replace => Some(steps.open()),
            Self::Prompt => Some(steps.prompt()),
            Self::Initialize
            | Self::List
            | Self::Look
            | Self::Join
            | Self::Line
            | Self::Setting
            | Self::Over => None,
        }
    }

    /// Returns `true` while the session is being opened.
    pub fn is_opening(self) -> bool {
        matches!(
            self,
            Self::Initialize | Self::List | Self::Connect | Self::Ensure | Self::Look | Self::Join
        )
    }
}

/// How often the user has pressed Ctrl-C since the last step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interrupted {
    No,
    Once,
    /// The client ends with the exit code of a cancelled run.
    Leaves,
}
