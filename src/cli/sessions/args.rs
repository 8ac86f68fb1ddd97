//! Arguments of `acpipe sessions`.

use super::age::age;
use crate::cli::UsageError;
use crate::cli::args::shared::{ChunkProfileArg, PlaceArgs};
use crate::cli::pager::PagerArgs;
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
        acpipe sessions list                         list all sessions, newest first\n  \
        acpipe sessions list --cwd . --json          list the sessions of this directory as JSON\n  \
        acpipe sessions show fix-tests               read a conversation\n  \
        acpipe sessions search \"race condition\"      find it again\n  \
        acpipe sessions export fix-tests > it.json   save its messages as UIMessages\n  \
        acpipe sessions export -f html fix-tests > it.html\n  \
        acpipe sessions gc --older-than 2w           delete sessions unused for two weeks\n\n\
        Give a session by its name in the directory or by its full id.\n\
        To continue one, use acpipe run --session NAME \"…\", or acpipe run --continue \"…\" for the newest here.")]
pub struct SessionsArgs {
    #[command(subcommand)]
    pub verb: SessionsVerb,
    #[command(flatten)]
    pub place: PlaceArgs,
    #[command(flatten)]
    pub pager: PagerArgs,
}

#[derive(Debug, Subcommand)]
pub enum SessionsVerb {
    /// List the sessions, newest first
    #[command(visible_alias = "ls")]
    List(ListSessionsArgs),
    /// Show the conversation of a session
    Show(ShowSessionArgs),
    /// Find text in the titles and messages of the sessions
    Search(SearchArgs),
    /// Print a session as JSON, or as a document to read
    Export(ExportArgs),
    /// Delete sessions
    #[command(visible_alias = "rm")]
    Delete(DeleteArgs),
    /// Delete old sessions and the leftovers of crashes
    Gc(GcArgs),
}

/// Where names of sessions are looked up.
#[derive(Debug, Args)]
pub struct SessionLookupArgs {
    /// Directory of the session [default: the working directory]
    #[arg(long, value_name = "DIR")]
    pub cwd: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct ShowSessionArgs {
    /// Session (name or full id)
    pub id: String,
    #[command(flatten)]
    pub place: SessionLookupArgs,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Columns: name, full id if it differs from the name, state in the daemon if one is running (running, \
    waiting for an answer, or idle), number of messages, last change (local time), agent, \
    directory and title. In a terminal, lines are cut to its width. Unnamed runs that were not continued are summarized \
    in one line; --all and --json list each of them."
)]
pub struct ListSessionsArgs {
    /// List only the sessions of this directory
    #[arg(long, value_name = "DIR")]
    pub cwd: Option<PathBuf>,
    /// List each unnamed run, too
    #[arg(short, long)]
    pub all: bool,
    /// Print one JSON object per line
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct ExportArgs {
    /// Session (name or full id)
    pub id: String,
    #[command(flatten)]
    pub place: SessionLookupArgs,
    /// Content to print as JSON
    #[arg(short, long, value_enum, default_value_t = ExportContent::Messages, value_name = "CONTENT")]
    pub output: ExportContent,
    /// Format of the messages
    #[arg(short, long, value_enum, default_value_t = ExportFormat::Json, value_name = "FORMAT", conflicts_with = "output")]
    pub format: ExportFormat,
    /// Major version of the AI SDK that messages and chunks are for, or discobot for the names of that system
    #[arg(long, value_enum, default_value_t = ChunkProfileArg::V7, value_name = "PROFILE")]
    pub chunk_profile: ChunkProfileArg,
}

impl ExportArgs {
    /// Refuses an option that has no effect with the others.
    pub fn check(&self) -> Result<(), UsageError> {
        let has_profile = self.format == ExportFormat::Json && self.output != ExportContent::Log;
        if has_profile || self.chunk_profile == ChunkProfileArg::V7 {
            return Ok(());
        }
        let why = "--chunk-profile is for messages and chunks as JSON; leave it out, or leave out -f and -o log";
        Err(UsageError(why.to_owned()))
    }
}

/// Format of exported messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    /// JSON
    Json,
    /// Markdown, with the tools and thoughts folded
    Md,
    /// One HTML page that loads nothing
    Html,
}

#[derive(Debug, Args)]
#[command(
    after_help = "The output has the session, the local time, the author and the line with the text, newest first. \
    Damaged logs are searched as far as they can be read, with a note on stderr.\n\n\
    Exit codes: 0 found, 1 not found, 2 usage error."
)]
pub struct SearchArgs {
    /// Text to find; capital and small letters are the same unless TEXT has a capital letter
    pub text: String,
    /// Search for a regular expression
    #[arg(short = 'E', long)]
    pub regex: bool,
    /// Search only the sessions of this directory
    #[arg(long, value_name = "DIR")]
    pub cwd: Option<PathBuf>,
    /// Maximum number of results
    #[arg(short = 'n', long, value_name = "N")]
    pub limit: Option<usize>,
    /// Print one JSON object per line
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ExportContent {
    /// The messages, as a JSON array of `UIMessage` objects
    Messages,
    /// The chunks with their numbers and turns, one JSON object per line, as from session/replay
    Chunks,
    /// The stored log file, unchanged
    Log,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Sessions that another process has open are not deleted (exit code 75). If a session is not found, the \
    others are deleted (exit code 1)."
)]
pub struct DeleteArgs {
    /// Sessions to delete (names or full ids)
    #[arg(required = true, value_name = "ID")]
    pub ids: Vec<String>,
    #[command(flatten)]
    pub place: SessionLookupArgs,
    /// Move the logs to the archive, where gc deletes them later
    #[arg(long)]
    pub archive: bool,
}

#[derive(Debug, Args)]
pub struct GcArgs {
    /// Delete sessions and archived logs that have not changed for this time: 90s, 30m, 12h, 30d or 2w
    #[arg(long, value_name = "AGE", default_value = "30d", value_parser = age)]
    pub older_than: Duration,
    /// Show what would be deleted, without deleting it
    #[arg(short = 'n', long)]
    pub dry_run: bool,
}
