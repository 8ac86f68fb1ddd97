//! Command-line definition of `acpipe man`.

use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
        acpipe man | man -l -                        read the page of acpipe\n  \
        acpipe man --dir ~/.local/share/man/man1     install all pages; then: man acpipe-run")]
pub struct ManArgs {
    /// Write the pages of all commands to this directory: acpipe.1, acpipe-run.1 and so on
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
}
