//! Durations on the command line.

use std::time::Duration;

/// Maximum of ten years, in milliseconds: a later instant might not be representable.
const LONGEST: u64 = 10 * 365 * 24 * 3_600_000;

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
            return Err("a duration is a whole number and ms, s, m or h: 90s, say".to_owned());
        }
    };
    let all = number.parse::<u64>().ok().and_then(|n| n.checked_mul(ms));
    match all {
        Some(0) => Err("it must be longer than nothing; none is without an end".to_owned()),
        Some(ms) if ms <= LONGEST => Ok(Some(Duration::from_millis(ms))),
        _ => Err("a whole number is needed before the unit, ten years at most".to_owned()),
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
            ("", "90s, say"),
            ("5", "90s, say"),
            ("1d", "90s, say"),
            ("-1s", "90s, say"),
            ("1.5h", "90s, say"),
            ("s", "whole number"),
            ("99999999999999999999s", "whole number"),
            ("99999999999h", "ten years"),
            ("0ms", "longer than nothing"),
        ];
        for (text, why) in wrong {
            let error = duration(text).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
