//! Arguments of `acpipe trace`.

use crate::cli::args::shared::PlaceArgs;
use crate::cli::pager::PagerArgs;
use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
        acpipe trace failure.tape                 write failure.tape.html and print its name\n  \
        acpipe trace failure.tape -o timeline.html\n  \
        acpipe trace --text failure.tape          read it in the terminal\n  \
        acpipe trace --text fix-tests             the stored session fix-tests of this directory\n\n\
        The page loads nothing from the network. It contains all frames of the tape: look through it before you send it \
        to others.\n\
        docs/guides/trace.md explains the page.")]
pub struct TraceArgs {
    /// Tape, session (name or full id), or log that acpipe sessions export wrote
    ///
    /// If a file of this name exists, the file is read.
    #[arg(value_name = "TAPE|SESSION")]
    pub source: String,
    /// Print a readable timeline instead of a page
    #[arg(long)]
    pub text: bool,
    /// Write to this file, - for stdout [default: stdout; at a terminal, a page goes to TAPE.html or SESSION.trace.html]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Directory of the session [default: the working directory]
    #[arg(long, value_name = "DIR")]
    pub cwd: Option<PathBuf>,
    #[command(flatten)]
    pub place: PlaceArgs,
    #[command(flatten)]
    pub pager: PagerArgs,
}
