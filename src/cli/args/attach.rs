//! The option with which a command uses the daemon.

use clap::Args;

/// How a command gets at its agents: in its own process, or in the daemon.
#[derive(Debug, Clone, Copy, Args)]
pub struct AttachArgs {
    /// Use the daemon, and start it if it does not run: sessions and agents survive this command
    ///
    /// `attach = true` in the user's configuration has the same effect.
    #[arg(long, overrides_with = "no_daemon")]
    pub daemon: bool,
    /// Do not use the daemon, whatever the configuration says
    #[arg(long, overrides_with = "daemon")]
    pub no_daemon: bool,
}
