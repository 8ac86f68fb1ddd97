//! Arguments of `acpipe attach`.

use crate::cli::args::shared::{Format, PlaceArgs};
use clap::{Args, ValueEnum};
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(
    after_help = "At a terminal, a line is sent as a prompt; it is queued while a turn runs. Lines that acpipe handles:\n  \
        /attach FILE    attach a file to the next prompt\n  \
        /cancel         cancel the running turn\n  \
        /detach         leave the session\n  \
        /help           list the commands, also those of the agent\n  \
        /mode [NAME]    show the agent's modes, or choose one\n  \
        /model [NAME]   show the agent's models, or choose one\n\n\
        Ctrl-C cancels the running turn; without a turn, or a second time, it detaches, and so does Ctrl-D. A session and \
        its turn go on after that. Without a terminal on stdin, attach ends with the running turn."
)]
pub struct FollowArgs {
    /// Session (name or full id) [default: the running session of this directory, else its newest one]
    pub session: Option<String>,
    /// Only follow: send no prompts, and answer no questions
    #[arg(long)]
    pub read_only: bool,
    /// Output format of stdout
    #[arg(short, long, value_enum, default_value_t = FollowFormat::Text, value_name = "FORMAT")]
    pub output: FollowFormat,
    /// Print the text of the answer as it is, also at a terminal, where it is otherwise rendered as Markdown
    #[arg(long)]
    pub raw: bool,
    /// Number of stored messages to show first; only with text output [default: those of the last turn]
    #[arg(long, value_name = "N")]
    pub last: Option<usize>,
    /// Directory of the session [default: the working directory]
    #[arg(long, value_name = "DIR")]
    pub cwd: Option<PathBuf>,
    #[command(flatten)]
    pub place: PlaceArgs,
}

/// Output format of `acpipe attach`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FollowFormat {
    /// The text of the prompts and answers
    Text,
    /// AI SDK chunks of the running turn and of later turns, one JSON object per line
    Chunks,
}

impl From<FollowFormat> for Format {
    fn from(format: FollowFormat) -> Self {
        match format {
            FollowFormat::Text => Self::Text,
            FollowFormat::Chunks => Self::Chunks,
        }
    }
}
