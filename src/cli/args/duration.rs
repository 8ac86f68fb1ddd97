//! Durations on the command line.

use acpipe_protocol::wire::LONGEST_TIMEOUT_MS;
use std::time::Duration;

/// Parses a duration with a unit, such as `90s`. Returns `None` for `none` and `0`, which mean no limit.
pub fn duration(text: &str) -> Result<Option<Duration>, String> {
    if matches!(text, "none" | "0") {
        return Ok(None);
    }
    let split = text.find(|c: char| !c.is_ascii_digit());
    let (number, unit) = text.split_at(split.unwrap_or(text.len()));
    let ms: u64 = match unit {
        "ms" => 1,
        "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => {
            return Err(
                "a duration must be a whole number with the unit ms, s, m or h, for example 90s"
                    .to_owned(),
            );
        }
    };
    let all = number.parse::<u64>().ok().and_then(|n| n.checked_mul(ms));
    match all {
        Some(0) => Err("a duration must be greater than zero; use none for no limit".to_owned()),
        Some(ms) if ms <= LONGEST_TIMEOUT_MS => Ok(Some(Duration::from_millis(ms))),
        _ => Err(
            "the number before the unit must be a whole number, and the duration at most ten years"
                .to_owned(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_units() {
        let cases = [
            ("none", None),
            ("0", None),
            ("50ms", Some(50)),
            ("90s", Some(90_000)),
            ("30m", Some(1_800_000)),
            ("2h", Some(7_200_000)),
        ];
        for (text, ms) in cases {
            assert_eq!(duration(text), Ok(ms.map(Duration::from_millis)), "{text}");
        }
        let wrong = [
            ("", "example 90s"),
            ("5", "example 90s"),
            ("1d", "example 90s"),
            ("-1s", "example 90s"),
            ("1.5h", "example 90s"),
            ("s", "whole number"),
            ("99999999999999999999s", "whole number"),
            ("99999999999h", "ten years"),
            ("0ms", "greater than zero"),
        ];
        for (text, why) in wrong {
            let error = duration(text).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
