//! Limits of `acpipe serve` on idle and live sessions, and duration types of options.

use super::duration::duration;
use clap::Args;
use std::time::Duration;

/// Limits on idle sessions and agents.
#[derive(Debug, Args)]
pub struct LimitArgs {
    /// Unload sessions, and stop agents without sessions, after this idle time: 30s, 30m, 2h or none
    #[arg(long, value_name = "DURATION", default_value = "30m", value_parser = IdleTimeout::parse)]
    pub idle_timeout: IdleTimeout,
    /// Maximum number of live sessions [default: 64 if each has its own process, else 1024]
    ///
    /// When the limit is reached, the session that is idle for the longest time is unloaded.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_sessions: Option<u32>,
}

/// Timeout of a turn; `None` for no limit.
#[derive(Debug, Clone, Copy)]
pub struct MaxTime(pub Option<Duration>);

impl MaxTime {
    pub fn parse(text: &str) -> Result<Self, String> {
        duration(text).map(Self)
    }
}

/// Idle timeout of sessions and agents; `None` for no limit.
#[derive(Debug, Clone, Copy)]
pub struct IdleTimeout(pub Option<Duration>);

impl IdleTimeout {
    fn parse(text: &str) -> Result<Self, String> {
        duration(text).map(Self)
    }
}
