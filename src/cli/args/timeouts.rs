//! How long is waited for what, on the command line.

use crate::core::limits::{Limits, Wait};
use clap::Args;
use std::time::Duration;

/// Waits that are not to last as long as usual.
#[derive(Debug, Args)]
pub struct TimeoutArgs {
    /// How long a wait lasts at most: 500ms, 90s, 2m, 1h or none; repeat for more. STAGE is spawn, initialize,
    /// open, set, list, prompt, cancel, close or terminate
    #[arg(long = "timeout", value_name = "STAGE=DURATION", value_parser = timeout)]
    timeouts: Vec<(Wait, Option<Duration>)>,
}

impl TimeoutArgs {
    /// What they make of the usual ones.
    pub fn limits(&self) -> Limits {
        let mut limits = Limits::default();
        for (wait, limit) in &self.timeouts {
            limits.set(*wait, *limit);
        }
        limits
    }
}

fn timeout(text: &str) -> Result<(Wait, Option<Duration>), String> {
    let (name, limit) = text
        .split_once('=')
        .ok_or("it is written STAGE=DURATION, initialize=90s say")?;
    let wait = Wait::ALL.into_iter().find(|wait| wait.name() == name);
    let wait = wait.ok_or_else(|| {
        let names = Wait::ALL.map(Wait::name).join(", ");
        format!("there is no stage {name:?}, only {names}")
    })?;
    if limit == "none" {
        return if wait.may_last() {
            Ok((wait, None))
        } else {
            Err(format!("{name} needs an end"))
        };
    }
    let split = limit.find(|c: char| !c.is_ascii_digit());
    let (number, unit) = limit.split_at(split.unwrap_or(limit.len()));
    let ms: u64 = match unit {
        "ms" => 1,
        "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return Err(format!("{unit:?} is no unit: use ms, s, m or h")),
    };
    let number = number.parse::<u64>().ok();
    match number.and_then(|n| n.checked_mul(ms)) {
        Some(0) => Err("it must be longer than nothing".to_owned()),
        Some(ms) => Ok((wait, Some(Duration::from_millis(ms)))),
        None => Err("a whole number is needed before the unit".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_units() {
        let cases = [
            ("initialize=90s", Wait::Initialize, Some(90_000)),
            ("open=2m", Wait::Open, Some(120_000)),
            ("cancel=500ms", Wait::Cancel, Some(500)),
            ("prompt=1h", Wait::Prompt, Some(3_600_000)),
            ("prompt=none", Wait::Prompt, None),
        ];
        for (text, wait, ms) in cases {
            let want = (wait, ms.map(Duration::from_millis));
            assert_eq!(timeout(text), Ok(want), "{text}");
        }
    }

    #[test]
    fn what_is_no_timeout_is_told() {
        let cases = [
            ("open", "STAGE=DURATION"),
            ("=2s", "initialize, open"),
            ("Open=2s", "initialize, open"),
            ("cancel=none", "needs an end"),
            ("open=2", "no unit"),
            ("open=", "no unit"),
            ("open=s", "whole number"),
            ("open=1.5s", "no unit"),
            ("open=-1s", "no unit"),
            ("open=0ms", "longer than nothing"),
            ("open=99999999999999999h", "whole number"),
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
        let words: Vec<&str> = help.split(|c: char| !c.is_ascii_lowercase()).collect();
        for wait in Wait::ALL {
            assert!(words.contains(&wait.name()), "{wait:?}: {help}");
        }
    }
}
