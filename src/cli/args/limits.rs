//! How much is kept alive, on the command line.

use clap::Args;
use std::time::Duration;

/// What is let go that nobody uses.
#[derive(Debug, Args)]
pub struct LimitArgs {
    /// How long a session, or an agent without any, may be idle until it is let go: 30s, 30m, 2h; 0 for ever
    #[arg(long, value_name = "DURATION", default_value = "30m", value_parser = duration)]
    pub idle_timeout: Duration,
    /// How many sessions are live at most; the idlest is let go for another [default: 64 where each has a process,
    /// else 1024]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_sessions: Option<u32>,
}

fn duration(text: &str) -> Result<Duration, String> {
    let split = text.find(|c: char| !c.is_ascii_digit());
    let (number, unit) = text.split_at(split.unwrap_or(text.len()));
    let ms: u64 = match unit {
        "" if number == "0" => 1,
        "ms" => 1,
        "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return Err(format!("{unit:?} is no unit: use ms, s, m or h")),
    };
    let number = number.parse::<u64>().ok();
    let all = number.and_then(|number| number.checked_mul(ms));
    // Ten years: an instant that far away can still be told.
    let sane = all.filter(|all| *all <= 10 * 365 * 24 * 3_600_000);
    let sane =
        sane.ok_or("a whole number is needed before the unit, and no more than ten years")?;
    Ok(Duration::from_millis(sane))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_units() {
        let cases = [
            ("0", 0),
            ("50ms", 50),
            ("90s", 90_000),
            ("30m", 1_800_000),
            ("2h", 7_200_000),
        ];
        for (text, ms) in cases {
            assert_eq!(duration(text), Ok(Duration::from_millis(ms)), "{text}");
        }
        for bad in [
            "",
            "5",
            "s",
            "1d",
            "-1s",
            "1.5h",
            "99999999999999999999s",
            "99999999999h",
        ] {
            assert!(duration(bad).is_err(), "{bad}");
        }
    }
}
