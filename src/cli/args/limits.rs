//! How much is kept alive, on the command line.

use super::duration::duration;
use clap::Args;
use std::time::Duration;

/// What is let go that nobody uses.
#[derive(Debug, Args)]
pub struct LimitArgs {
    /// How long a session, or an agent without any, may be idle until it is let go: 30s, 30m, 2h, or none
    #[arg(long, value_name = "DURATION", default_value = "30m", value_parser = IdleTimeout::parse)]
    pub idle_timeout: IdleTimeout,
    /// How many sessions are live at most; the idlest is let go for another [default: 64 where each has a process,
    /// else 1024]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_sessions: Option<u32>,
}

/// How long a turn may last; `None` for any time.
#[derive(Debug, Clone, Copy)]
pub struct MaxTime(pub Option<Duration>);

impl MaxTime {
    pub fn parse(text: &str) -> Result<Self, String> {
        duration(text).map(Self)
    }
}

/// How long something may be idle; `None` for ever.
#[derive(Debug, Clone, Copy)]
pub struct IdleTimeout(pub Option<Duration>);

impl IdleTimeout {
    fn parse(text: &str) -> Result<Self, String> {
        duration(text).map(Self)
    }
}
