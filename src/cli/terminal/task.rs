//! The commands that are clients at a terminal, and how they differ.

use super::target::AttachTarget;
use acpipe_protocol::wire::Role;

/// The task of a client at a terminal.
#[derive(Debug)]
pub enum TerminalTask {
    /// Runs one turn, and ends with it: `acpipe run`.
    Turn,
    /// Runs a turn for each of the user's lines: a chat.
    Chat,
    /// Shows all turns of a session that others have opened, and sends the user's lines to it: `acpipe attach`.
    Follow(Follow),
}

/// The task of `acpipe attach`.
#[derive(Debug)]
pub struct Follow {
    pub target: AttachTarget,
    /// Number of stored messages to show first; `None` for those of the last turn.
    pub last: Option<usize>,
    pub role: Role,
    /// `true` if the user's lines are read; otherwise the client leaves at the end of the running turn.
    pub reads_lines: bool,
    /// `true` if the session is open at its agent for this client.
    pub is_ensured: bool,
}

impl TerminalTask {
    /// Returns the role of a client that follows a session.
    pub fn role(&self) -> Option<Role> {
        match self {
            Self::Turn | Self::Chat => None,
            Self::Follow(follow) => Some(follow.role),
        }
    }
}
