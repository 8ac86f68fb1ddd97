//! Options of the tape that a command records.

use super::size::size;
use clap::Args;
use std::path::PathBuf;

/// Tape that a command records.
#[derive(Debug, Args)]
pub struct RecordArgs {
    /// Record all messages of the client and the agents to this file, a tape
    ///
    /// Secrets are redacted as in logs. `acpipe replay` repeats the agent of a tape. See docs/guides/bug-reports.md.
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,
    /// Maximum size of the tape, in bytes; accepts the suffixes K, M and G
    #[arg(long, value_name = "SIZE", default_value = "256M", value_parser = size, requires = "record")]
    pub record_limit: usize,
}
