//! Arguments of `acpipe permissions`.

use crate::cli::args::shared::PlaceArgs;
use crate::cli::pager::PagerArgs;
use clap::{Args, Subcommand};
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
        acpipe permissions show --cwd .              decisions in this directory\n  \
        acpipe permissions show fix-tests --refused  refusals in one session\n  \
        acpipe permissions show --json | jq -r 'select(.by == \"client\") | .command'\n\n\
        To set what an agent may do, use --permissions or --config of acpipe run and acpipe serve.\n\
        docs/guides/permissions.md has complete configuration files.")]
pub struct PermissionsArgs {
    #[command(subcommand)]
    pub verb: PermissionsVerb,
    #[command(flatten)]
    pub place: PlaceArgs,
    #[command(flatten)]
    pub pager: PagerArgs,
}

#[derive(Debug, Subcommand)]
pub enum PermissionsVerb {
    /// List the stored decisions, oldest first
    Show(ShowPermissionsArgs),
}

#[derive(Debug, Args)]
#[command(
    after_help = "Columns: local time, session, tool, decision, decided by (policy, client, timeout, agent, cancel or \
    end), rule, and subject (command, paths or title). --json adds more fields, such as the reason."
)]
pub struct ShowPermissionsArgs {
    /// Show only these sessions (names or full ids)
    #[arg(value_name = "SESSION")]
    pub ids: Vec<String>,
    /// Show only sessions of this directory, and look up session names there
    #[arg(long, value_name = "DIR")]
    pub cwd: Option<PathBuf>,
    /// Show only calls that were refused or not answered
    #[arg(long)]
    pub refused: bool,
    /// Print one JSON object per line
    #[arg(long)]
    pub json: bool,
}
