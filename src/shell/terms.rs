//! Settings that every process that acpipe starts shares: agents, terminals and the login shell.

use super::launches::Launch;
use super::starter::Starter;
use std::sync::Arc;
use std::time::Duration;

/// Settings shared by all processes of one acpipe.
#[derive(Debug, Clone)]
pub struct Terms {
    /// The longest line of an agent that is kept, in bytes.
    pub max_line: usize,
    /// How long the supervisor waits between SIGTERM and SIGKILL once acpipe is gone.
    pub grace: Duration,
    /// The soft limit of open files that each process gets back, if acpipe raised its own.
    pub descriptors: Option<u64>,
    /// The launch of acpipe that the processes belong to.
    pub launch: Arc<Launch>,
    /// The thread that starts processes.
    pub starter: Starter,
}
