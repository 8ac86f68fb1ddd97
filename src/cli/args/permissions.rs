//! Permission options on the command line.

use crate::core::policy::Mode;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// What agents may do.
#[derive(Debug, Args)]
pub struct PermissionArgs {
    /// What is done when the agent asks whether it may run a tool and no rule of the configuration says it; goes
    /// before `default` and `preset` there [default: approve]
    #[arg(long, value_enum, value_name = "POLICY")]
    pub permissions: Option<Permissions>,
    /// The configuration, with rules for permissions (docs/guides/permissions.md has examples) [default: the file that
    /// `ACPIPE_CONFIG` names, else acpipe/config.toml in the platform's configuration directory, if it is there]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Permissions {
    /// Allow everything
    Approve,
    /// Allow what only reads, ask about the rest
    Reads,
    /// Ask about everything
    Ask,
    /// Refuse everything
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
