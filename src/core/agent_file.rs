//! Access to the files in which agents store their sessions, without running the agents.

use super::error::Error;
use super::transport::Transport;
use serde_json::Value;

/// Purpose of an access to the file of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileAccess {
    /// Read the messages.
    Read,
    /// Delete the file.
    Delete,
}

/// File of an agent's session, accessed through a sequence of transports without processes.
pub trait AgentFile: std::fmt::Debug {
    /// Returns the first transport to open.
    fn start(&mut self) -> Transport;

    /// Reads a line of the open transport.
    fn line(&mut self, line: &[u8]);

    /// Handles the end of the open transport; returns the next one, or `None` at the end.
    ///
    /// # Errors
    /// The path of the file cannot be determined.
    fn ended(&mut self) -> Result<Option<Transport>, Error>;

    /// Returns the messages that were read, oldest first.
    fn messages(self: Box<Self>) -> Vec<Value>;
}
