//! Timeout options on the command line.

use super::duration::duration;
use acpipe_model::limits::{Limits, Timeout};
use clap::Args;
use std::time::Duration;

/// Waits that are not to last as long as usual.
#[derive(Debug, Args)]
pub struct TimeoutArgs {
    /// Set the timeout of a stage, for example initialize=90s or turn=none (repeatable)
    ///
    /// Stages: spawn, initialize, open, restore, set, authenticate, list, prompt, turn, answer, client, closeSession,
    /// cancel, close, terminate, store, connect, firstByte and stream.
    ///
    /// prompt and open limit the time without any output of the agent, in a turn and while it opens a session. turn and
    /// restore limit the whole turn and the whole opening. connect, firstByte and stream limit the exchange with an HTTP
    /// endpoint. Units are ms, s, m and h. A timeout that the configuration sets for an agent has precedence.
    #[arg(long = "timeout", value_name = "STAGE=DURATION", value_parser = timeout)]
    timeouts: Vec<(Timeout, Option<Duration>)>,
}

impl TimeoutArgs {
    /// Returns `true` if an option sets a timeout.
    pub fn is_given(&self) -> bool {
        !self.timeouts.is_empty()
    }

    /// Returns the default limits, changed by these options.
    pub fn limits(&self) -> Limits {
        let mut limits = Limits::default();
        for (wait, limit) in &self.timeouts {
            limits.set(*wait, *limit);
        }
        limits
    }
}

fn timeout(text: &str) -> Result<(Timeout, Option<Duration>), String> {
    let (name, limit) = text
        .split_once('=')
        .ok_or("a timeout must have the form STAGE=DURATION, for example initialize=90s")?;
    stage(name, limit)
}

/// Parses the limit of a stage.
///
/// # Errors
/// The stage does not exist, or the limit is not valid for it.
pub fn stage(name: &str, limit: &str) -> Result<(Timeout, Option<Duration>), String> {
    let wait = Timeout::ALL.into_iter().find(|wait| wait.name() == name);
    let wait = wait.ok_or_else(|| {
        let names = Timeout::ALL.map(Timeout::name).join(", ");
        format!("{name:?} is not a stage; use one of {names}")
    })?;
    match duration(limit)? {
        None if !wait.may_be_unlimited() => Err(format!(
            "{name} must have a limit; give a duration, for example {name}=10s"
        )),
        limit => Ok((wait, limit)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_units() {
        let cases = [
            ("initialize=90s", Timeout::Initialize, Some(90_000)),
            ("open=2m", Timeout::Open, Some(120_000)),
            ("cancel=500ms", Timeout::Cancel, Some(500)),
            ("prompt=1h", Timeout::Prompt, Some(3_600_000)),
            ("prompt=none", Timeout::Prompt, None),
        ];
        for (text, wait, ms) in cases {
            let want = (wait, ms.map(Duration::from_millis));
            assert_eq!(timeout(text), Ok(want), "{text}");
        }
    }

    #[test]
    fn invalid_timeout_is_reported() {
        let cases = [
            ("open", "STAGE=DURATION"),
            ("=2s", "initialize, open"),
            ("Open=2s", "initialize, open"),
            ("cancel=none", "must have a limit"),
            ("cancel=0", "must have a limit"),
            ("open=2", "example 90s"),
        ];
        for (text, why) in cases {
            let error = timeout(text).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }

    #[test]
    fn the_help_names_every_stage() {
        use clap::Args as _;
        let command = TimeoutArgs::augment_args(clap::Command::new("x"));
        let help = command.clone().render_long_help().to_string();
        let words: Vec<&str> = help.split(|c: char| !c.is_ascii_alphabetic()).collect();
        for wait in Timeout::ALL {
            assert!(words.contains(&wait.name()), "{wait:?}: {help}");
        }
    }
}
