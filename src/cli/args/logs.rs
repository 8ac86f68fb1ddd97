//! Options of the log.

use clap::{Args, ValueEnum};
use std::path::PathBuf;
use tracing_subscriber::filter::{LevelFilter, Targets};

/// Level, form and destination of the log.
#[derive(Debug, Args)]
#[command(next_help_heading = "Logs")]
pub struct LogArgs {
    /// More log output: -v info, -vv debug, -vvv trace
    #[arg(short, long, action = clap::ArgAction::Count, global = true)]
    pub verbose: u8,
    /// Log level: off, error, warn, info, debug or trace
    ///
    /// Add MODULE=LEVEL to set the level of one module, for example `warn,acpipe::shell=debug`.
    #[arg(
        long,
        value_name = "LEVEL",
        env = "ACPIPE_LOG",
        default_value = "warn",
        value_parser = levels,
        global = true
    )]
    pub log_level: Targets,
    /// Append the log to this file instead of writing it to stderr
    #[arg(long, value_name = "FILE", global = true)]
    pub log_file: Option<PathBuf>,
    /// Log format
    #[arg(long, value_enum, default_value_t = LogFormat::Text, value_name = "FORMAT", global = true)]
    pub log_format: LogFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// Readable lines
    Text,
    /// One JSON object per line
    Json,
}

/// Parses log levels, global and per module. An invalid level is rejected here because `Targets` would parse
/// it as a module name.
fn levels(text: &str) -> Result<Targets, String> {
    // An empty variable counts as unset.
    let text = if text.is_empty() { "warn" } else { text };
    let words = text.split(',').filter(|word| !word.contains('='));
    for word in words {
        if word.is_empty() || word.parse::<LevelFilter>().is_err() {
            return Err(format!(
                "{word:?} is not a log level; use off, error, warn, info, debug or trace"
            ));
        }
    }
    text.parse().map_err(|error| format!("{error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_of_all_or_of_parts() {
        for good in [
            "",
            "off",
            "DEBUG",
            "warn,acpipe::shell=debug",
            "acpipe::shell=trace",
        ] {
            assert!(levels(good).is_ok(), "{good}");
        }
        for bad in [",", "loud", "debug,acpipe", "acpipe=loud", "warn,"] {
            assert!(levels(bad).is_err(), "{bad}");
        }
    }
}
