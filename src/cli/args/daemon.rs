//! Arguments of `acpipe daemon`.

use super::shared::PlaceArgs;
use super::{AgentArgs, LimitArgs};
#[cfg(feature = "listen")]
use crate::cli::http::ListenArgs;
use clap::{Args, Subcommand};

#[derive(Debug, Args)]
#[command(
    after_help = "The daemon keeps sessions and their agents while windows come and go. A client uses it with --daemon:\n  \
        acpipe acp --daemon --agent claude       an editor's agent that survives the editor\n  \
        acpipe run --daemon \"fix the tests\"      a prompt that goes on if the terminal is closed\n  \
        acpipe attach                            follow a session in the terminal, and answer its questions\n\n\
        `attach = true` in the configuration stands for --daemon. A client starts the daemon when it is needed."
)]
pub struct DaemonArgs {
    #[command(subcommand)]
    pub verb: DaemonVerb,
}

#[derive(Debug, Subcommand)]
pub enum DaemonVerb {
    /// Start the daemon in the background
    Start(StartArgs),
    /// Show whether the daemon runs, its clients and sessions
    ///
    /// Exit codes: 0 it runs, 1 it does not.
    Status(StatusArgs),
    /// Stop the daemon: cancel running turns, store everything, stop all agents
    Stop(PlaceArgs),
    /// Stop the daemon and start it again, with the options that it had unless others are given
    Restart(StartArgs),
    /// Print the log of the daemon
    Logs(LogsArgs),
    /// Run the daemon in the foreground, for service managers and containers
    Run(RunDaemonArgs),
}

#[derive(Debug, Args)]
pub struct StartArgs {
    #[command(flatten)]
    pub resident: ResidentArgs,
}

/// Options of the daemon itself. Agents, permissions and limits are those of clients without settings of their
/// own: browsers and apps that connect over HTTP.
#[derive(Debug, Args)]
pub struct ResidentArgs {
    #[command(flatten)]
    pub limits: LimitArgs,
    #[command(flatten)]
    pub agent: AgentArgs,
    // Its heading in the help would be that of all options behind it.
    #[cfg(feature = "listen")]
    #[command(flatten)]
    pub listen: ListenArgs,
}

#[derive(Debug, Args)]
pub struct RunDaemonArgs {
    /// Read options from stdin as a JSON array, detach from the terminal, and report the start on stdout
    #[arg(long, hide = true)]
    pub detached: bool,
    /// Options of this command line, for a restart
    #[arg(skip)]
    pub options: Vec<String>,
    #[command(flatten)]
    pub resident: ResidentArgs,
}

#[derive(Debug, Args)]
pub struct StatusArgs {
    /// Print one JSON object, with the address of the page and its token
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub place: PlaceArgs,
}

#[derive(Debug, Args)]
pub struct LogsArgs {
    /// Number of lines from the end; 0 prints the whole log
    #[arg(short, long, value_name = "N", default_value_t = 100)]
    pub lines: usize,
    /// Print new lines as they are written, until Ctrl-C
    #[arg(short, long)]
    pub follow: bool,
    #[command(flatten)]
    pub place: PlaceArgs,
}
