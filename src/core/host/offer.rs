//! Which files and terminals are offered to agents.

use super::HostRequest;

/// Which of its requests an agent may make.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Offer {
    pub read_files: bool,
    pub write_files: bool,
    pub terminals: bool,
}

impl Offer {
    /// Whether a request is one of them.
    #[must_use]
    pub fn covers(self, request: &HostRequest) -> bool {
        match request {
            HostRequest::ReadFile { .. } => self.read_files,
            HostRequest::WriteFile { .. } => self.write_files,
            _ => self.terminals,
        }
    }

    /// All that one of both covers.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            read_files: self.read_files || other.read_files,
            write_files: self.write_files || other.write_files,
            terminals: self.terminals || other.terminals,
        }
    }
}
