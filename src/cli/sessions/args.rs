//! Arguments of `acpipe sessions`.

use super::age::age;
use crate::cli::args::shared::{ChunkProfile, PlaceArgs};
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
        acpipe sessions list                         what there is, newest first\n  \
        acpipe sessions list --cwd . --json          of this directory, for programs\n  \
        acpipe sessions show fix-tests | less        read a conversation\n  \
        acpipe sessions export fix-tests > it.json   keep one as UIMessages\n  \
        acpipe sessions gc --older-than 2w           remove what nobody went back to\n\n\
        A session is found by its name in the directory, or by its full id.\n\
        acpipe run --session NAME \"…\" goes on with one, acpipe run --continue \"…\" with the newest here.")]
pub struct SessionsArgs {
    #[command(subcommand)]
    pub verb: SessionsVerb,
    #[command(flatten)]
    pub place: PlaceArgs,
}

#[derive(Debug, Subcommand)]
pub enum SessionsVerb {
    /// List the sessions, those that changed last first
    #[command(visible_alias = "ls")]
    List(ListArgs),
    /// Show a conversation, for people
    Show(ShowArgs),
    /// Write a session to stdout, for programs
    Export(ExportArgs),
    /// Remove sessions
    #[command(visible_alias = "rm")]
    Delete(DeleteArgs),
    /// Remove sessions that have not changed for long, and what crashes left behind
    Gc(GcArgs),
}

/// Where names of sessions are looked up.
#[derive(Debug, Args)]
pub struct NameArgs {
    /// The directory of the session [default: the working directory]
    #[arg(long, value_name = "DIR")]
    pub cwd: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct ShowArgs {
    /// The session: its name, or its full id
    pub id: String,
    #[command(flatten)]
    pub place: NameArgs,
}

#[derive(Debug, Args)]
#[command(
    after_help = "The columns: name, full id where it is not the name, messages, last change (local time), agent, directory \
    and title, where there are any. At a terminal they are cut to its width. Runs without a name that were not continued \
    are one line; --all and --json list them."
)]
pub struct ListArgs {
    /// Only those of this working directory
    #[arg(long, value_name = "DIR")]
    pub cwd: Option<PathBuf>,
    /// List each run without a name, too
    #[arg(short, long)]
    pub all: bool,
    /// One JSON object a line
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct ExportArgs {
    /// The session: its name, or its full id
    pub id: String,
    #[command(flatten)]
    pub place: NameArgs,
    /// What of it
    #[arg(short, long, value_enum, default_value_t = Content::Messages, value_name = "CONTENT")]
    pub output: Content,
    /// Major of the AI SDK for which messages and chunks are written
    #[arg(long, value_enum, default_value_t = ChunkProfile::V7, value_name = "MAJOR")]
    pub chunk_profile: ChunkProfile,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Content {
    /// Its messages: a JSON array of `UIMessage`s
    Messages,
    /// Its chunks with their numbers and turns, one JSON object a line, as session/replay has them
    Chunks,
    /// Its log as it is stored: a copy
    Log,
}

#[derive(Debug, Args)]
#[command(
    after_help = "A session that another process has is left alone (exit code 75); of one that is not there \
    the others are removed all the same (exit code 1)."
)]
pub struct DeleteArgs {
    /// The sessions: their names, or their full ids
    #[arg(required = true, value_name = "ID")]
    pub ids: Vec<String>,
    #[command(flatten)]
    pub place: NameArgs,
    /// Keep their logs in the archive, from where gc removes them
    #[arg(long)]
    pub archive: bool,
}

#[derive(Debug, Args)]
pub struct GcArgs {
    /// Remove sessions and archived logs that have not changed for so long: 90s, 30m, 12h, 30d, 2w
    #[arg(long, value_name = "AGE", default_value = "30d", value_parser = age)]
    pub older_than: Duration,
    /// Only say what would be removed
    #[arg(short = 'n', long)]
    pub dry_run: bool,
}
