//! Settings shared by all processes that acpipe starts: agents, terminals and the login shell.

use super::launches::Launch;
use super::starter::Starter;
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
}
