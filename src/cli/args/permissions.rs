//! Permission options on the command line.

use acpipe_policy::Mode;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Permissions of agents.
#[derive(Debug, Args)]
pub struct PermissionArgs {
    /// Answer to tool calls that match no rule of the configuration [default: approve, and ask
    /// for `acpipe acp`]
    ///
    /// Overrides `default` and `preset` of the configuration.
    #[arg(long, value_enum, value_name = "POLICY")]
    pub permissions: Option<Permissions>,
    /// Configuration file with permission rules; see docs/guides/permissions.md for examples
    ///
    /// The default is the file named by the environment variable `ACPIPE_CONFIG`, else acpipe/config.toml in the
    /// platform's configuration directory, if it exists.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Permissions {
    /// Allow every call
    Approve,
    /// Allow calls that only read, ask about all others
    Reads,
    /// Ask about every call
    Ask,
    /// Deny every call
    Deny,
}

impl From<Permissions> for Mode {
    fn from(p: Permissions) -> Self {
        match p {
            Permissions::Approve => Self::Approve,
            Permissions::Reads => Self::Reads,
            Permissions::Ask => Self::Ask,
            Permissions::Deny => Self::Deny,
        }
    }
}
