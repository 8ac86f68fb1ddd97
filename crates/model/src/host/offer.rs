//! File and terminal capabilities that are offered to agents.

use super::HostRequest;

/// Kinds of host requests that an agent may send.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HostServices {
    pub read_files: bool,
    pub write_files: bool,
    pub terminals: bool,
}

impl HostServices {
    #[must_use]
    pub fn covers(self, request: &HostRequest) -> bool {
        match request {
            HostRequest::ReadFile { .. } => self.read_files,
            HostRequest::WriteFile { .. } => self.write_files,
            _ => self.terminals,
        }
    }

    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            read_files: self.read_files || other.read_files,
            write_files: self.write_files || other.write_files,
            terminals: self.terminals || other.terminals,
        }
    }
}
