//! Arguments of `acpipe doctor`.

use crate::cli::args::duration::duration;
use crate::cli::args::shared::PlaceArgs;
use crate::cli::args::timeouts::TimeoutArgs;
use clap::Args;
use clap::builder::FalseyValueParser;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
        acpipe doctor                          check this machine, list the agents found on it\n  \
        acpipe doctor codex                    start an agent by name, open a session, stop it\n  \
        acpipe doctor -- my-agent --acp        the same with a command line\n  \
        acpipe doctor codex --probe            measure its faults with a few short prompts\n  \
        acpipe doctor codex --json | jq .checks\n\n\
        Each line begins with ok, warning or problem. A fault that acpipe works around is a warning.\n\n\
        --probe writes a profile of the agent into the state directory (profiles/NAME.json). acpipe run and acpipe\n\
        serve read it, and work around the faults in it. To forget it, delete the file.\n\
        See docs/guides/doctor.md.\n\n\
        Exit codes: 0 no problem, 1 at least one problem, 2 usage error, 130 interrupted.")]
#[expect(clippy::struct_excessive_bools, reason = "they are flags")]
pub struct DoctorArgs {
    /// Agent to check: the name of a configured or built-in agent, or a prefix of it
    ///
    /// Without a name and a command, the machine is checked and its agents are listed; none is started.
    #[arg(value_name = "NAME", conflicts_with = "command")]
    pub name: Option<String>,
    /// Also send a few short prompts, to measure the faults of the agent
    ///
    /// The prompts go to the agent's model and may cost tokens. One of them asks the agent to run the command
    /// `touch acpipe-probe && sleep 30`; everything else that the agent asks for is refused.
    #[arg(long)]
    pub probe: bool,
    /// Send the prompts of --probe without asking
    #[arg(long, requires = "probe")]
    pub yes: bool,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
    /// Working directory of the agent and its sessions [default: a new temporary directory]
    ///
    /// Without an agent, it is the directory whose project's configuration is checked; the default is then this one.
    #[arg(long, value_name = "DIR")]
    pub cwd: Option<PathBuf>,
    /// Configuration file to check
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Do not search the PATH of the login shell for programs
    #[arg(long, env = "ACPIPE_NO_PATH_PROBE", value_parser = FalseyValueParser::new())]
    pub no_path_probe: bool,
    #[command(flatten)]
    pub place: PlaceArgs,
    #[command(flatten)]
    pub timeouts: TimeoutArgs,
    /// Time for an answer during --probe; a prompt gets six times as long
    #[arg(long, value_name = "DURATION", default_value = "5s", hide = true, value_parser = limit)]
    pub probe_limit: Duration,
    /// Command line of the agent
    #[arg(last = true, value_name = "COMMAND", help_heading = None::<&'static str>)]
    pub command: Vec<String>,
}

fn limit(text: &str) -> Result<Duration, String> {
    let limit = duration(text)?;
    limit.ok_or_else(|| "must have a limit; give a duration, for example 5s".to_owned())
}
