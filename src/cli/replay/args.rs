//! Command line of `acpipe replay`.

use crate::cli::args::duration::duration;
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Args)]
#[command(
    after_help = "Record a tape, then repeat its agent wherever an agent is started:\n  \
        acpipe run --record bug.tape \"fix the tests\" -- opencode acp\n  \
        acpipe run \"fix the tests\" -- acpipe replay bug.tape\n\n\
        A tape of Claude Code is repeated with its protocol:\n  \
        acpipe run --protocol claude \"hello\" -- acpipe replay bug.tape\n\n\
        Requests are matched with those of the tape by their method, in order. A request that the tape does not have is \
        answered with an error, and stderr says what differs. The format of tapes is described in \
        docs/reference/tapes.md."
)]
pub struct ReplayArgs {
    /// Tape that was recorded with --record
    pub tape: PathBuf,
    /// Keep the recorded pauses; this is the default
    #[arg(long)]
    pub paced: bool,
    /// Make no pauses
    #[arg(long, conflicts_with_all = ["paced", "speed", "max_pause"])]
    pub at_once: bool,
    /// Divide the pauses by this number
    #[arg(long, value_name = "N", default_value_t = 1.0, value_parser = speed)]
    pub speed: f64,
    /// Longest pause, for example 500ms, 10s or 1m
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = LongestPause::parse)]
    pub max_pause: LongestPause,
    /// Process of the tape to repeat, by its number [default: the first one that exchanges messages]
    #[arg(long, value_name = "N")]
    pub child: Option<u64>,
    /// Agent of the tape to repeat, by its name [default: the first one]
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,
    /// Arguments of the agent, which acpipe appends for Claude Code
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "ARGS"
    )]
    pub args: Vec<String>,
}

/// Longest pause; `None` for no limit.
#[derive(Debug, Clone, Copy)]
pub struct LongestPause(pub Option<Duration>);

impl LongestPause {
    fn parse(text: &str) -> Result<Self, String> {
        duration(text).map(Self)
    }
}

fn speed(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(speed) if (0.001..=1e6).contains(&speed) => Ok(speed),
        _ => Err("the speed must be a number between 0.001 and 1000000, for example 2".to_owned()),
    }
}
