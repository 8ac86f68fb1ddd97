//! Arguments of `acpipe permissions`.

use crate::cli::args::shared::PlaceArgs;
use clap::{Args, Subcommand};
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
        acpipe permissions show --cwd .              what agents were allowed and refused here\n  \
        acpipe permissions show fix-tests --refused  what was refused in one session\n  \
        acpipe permissions show --json | jq -r 'select(.by == \"client\") | .command'\n\n\
        What is allowed is said when an agent is started: acpipe run --permissions ask, say, or rules in a file,\n\
        --config FILE. docs/guides/permissions.md has whole files to begin with.")]
pub struct PermissionsArgs {
    #[command(subcommand)]
    pub verb: PermissionsVerb,
    #[command(flatten)]
    pub place: PlaceArgs,
}

#[derive(Debug, Subcommand)]
pub enum PermissionsVerb {
    /// List the decisions that are stored, the oldest first
    Show(ShowArgs),
}

#[derive(Debug, Args)]
#[command(
    after_help = "The columns: time (local), session, tool, decision, who decided (policy, client, timeout, agent, \
    cancel, end), the rule, and what it was about: a command, paths, or a title. --json has more, the reason in a \
    sentence among it."
)]
pub struct ShowArgs {
    /// Only these sessions: their names, or their full ids
    #[arg(value_name = "SESSION")]
    pub ids: Vec<String>,
    /// Only sessions of this directory; names of sessions are looked up there, else in the working directory
    #[arg(long, value_name = "DIR")]
    pub cwd: Option<PathBuf>,
    /// Only what was not allowed, or not answered
    #[arg(long)]
    pub refused: bool,
    /// One JSON object a line
    #[arg(long)]
    pub json: bool,
}
