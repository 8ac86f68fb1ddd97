//! Access to the files in which agents store their sessions, without running the agents.

use super::error::Error;
use super::event::AgentEvent;
use super::line_repair::{LostLine, UnusableLine};
use super::transport::Transport;
use acpipe_json::repair::Faults;

/// Purpose of an access to the file of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileAccess {
    Read,
    Delete,
}

/// File of an agent's session, accessed through a sequence of transports without processes.
pub trait AgentFile: std::fmt::Debug + Send {
    fn dialect(&self) -> &'static str;

    /// Returns the first transport to open.
    fn start(&mut self) -> Transport;

    /// Reads a line of the open transport: appends its events, which are the history, to `events`.
    ///
    /// # Errors
    /// The line is not a record, and nothing was done.
    fn line<'a>(
        &mut self,
        line: &'a [u8],
        events: &mut Vec<AgentEvent<'a>>,
    ) -> Result<(), UnusableLine>;

    fn count_repaired(&mut self, faults: Faults);

    fn count_lost(&mut self, line: &LostLine<'_>);

    /// Handles the end of the open transport; returns the next one, or `None` at the end.
    ///
    /// # Errors
    /// The path of the file cannot be determined.
    fn ended(&mut self) -> Result<Option<Transport>, Error>;
}
