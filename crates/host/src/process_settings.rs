//! Settings shared by all processes that acpipe starts: agents, terminals and the login shell.

use super::launches::Launch;
use super::starter::Starter;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Settings shared by all processes of one acpipe.
#[derive(Debug, Clone)]
pub struct ProcessSettings {
    /// Maximum length of an agent's line in bytes; longer lines are dropped.
    pub max_line: usize,
    /// Grace period of the supervisor between SIGTERM and SIGKILL after the end of acpipe.
    pub grace: Duration,
    /// Soft limit of open files that is restored in each process, if acpipe raised its own.
    pub descriptors: Option<u64>,
    /// Launch that the processes belong to.
    pub launch: Arc<Launch>,
    /// Thread that starts processes.
    pub starter: Starter,
    /// How processes are supervised.
    pub supervision: Supervision,
}

/// How processes are supervised.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Supervision {
    /// The running program is started as the supervisor: its `main` calls [`keep`](super::supervisor::keep).
    OwnProgram,
    /// This program is started as the supervisor: an acpipe of the same version.
    Program(PathBuf),
    /// No supervisor: processes are started directly, and only their process group and the processes with
    /// their mark are killed. They outlive this program if it is killed.
    Direct,
}
