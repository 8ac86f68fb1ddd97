//! File and terminal capabilities that are offered to agents.

use super::HostRequest;

/// Kinds of host requests that an agent may send.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HostServices {
    /// `true` if the agent may read text files.
    pub read_files: bool,
    /// `true` if the agent may write text files.
    pub write_files: bool,
    /// `true` if the agent may use terminals.
    pub terminals: bool,
}

impl HostServices {
    /// Returns `true` if the offer includes this request.
    #[must_use]
    pub fn covers(self, request: &HostRequest) -> bool {
        match request {
            HostRequest::ReadFile { .. } => self.read_files,
            HostRequest::WriteFile { .. } => self.write_files,
            _ => self.terminals,
        }
    }

    /// Returns the union of two offers.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            read_files: self.read_files || other.read_files,
            write_files: self.write_files || other.write_files,
            terminals: self.terminals || other.terminals,
        }
    }
}
