//! Ages on the command line, and timestamps in lists.

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use std::time::{Duration, SystemTime};

/// Parses an age such as `30d` or `12h`.
pub fn age(text: &str) -> Result<Duration, String> {
    let split = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let seconds: u64 = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 60 * 60,
        "d" => 24 * 60 * 60,
        "w" => 7 * 24 * 60 * 60,
        _ => {
            return Err(
                "an age must be a whole number with the unit s, m, h, d or w, for example 30d"
                    .to_owned(),
            );
        }
    };
    let number: u64 = number
        .parse()
        .map_err(|_| format!("the number before {unit} must be a whole number, for example 30d"))?;
    let seconds = number.checked_mul(seconds).ok_or("the age is too long")?;
    Ok(Duration::from_secs(seconds))
}

/// Returns the current time, clamped to the valid range because a system clock may be set to any time.
pub fn now() -> Timestamp {
    timestamp(SystemTime::now())
}

fn timestamp(time: SystemTime) -> Timestamp {
    Timestamp::try_from(time).unwrap_or_else(|_| {
        if time < SystemTime::UNIX_EPOCH {
            Timestamp::MIN
        } else {
            Timestamp::MAX
        }
    })
}

/// Returns the time `age` before `now`, or the earliest timestamp if that is out of range.
pub fn ago(now: Timestamp, age: Duration) -> Timestamp {
    let age = SignedDuration::try_from(age).unwrap_or(SignedDuration::MAX);
    now.checked_sub(age).unwrap_or(Timestamp::MIN)
}

/// Returns `true` if an RFC 3339 time is before a limit; `false` if it cannot be parsed.
pub fn is_before(time: &str, limit: Timestamp) -> bool {
    time.parse::<Timestamp>().is_ok_and(|time| time < limit)
}

/// Formats an RFC 3339 time for lists: to the minute, in the local time zone.
pub fn short(time: &str) -> String {
    shown(time, "%Y-%m-%d %H:%M", TimeZone::system())
}

/// Formats how long before `now` an RFC 3339 time was, such as `5m ago`; the units are those of [`age`].
pub fn since(time: &str, now: Timestamp) -> String {
    let Ok(time) = time.parse::<Timestamp>() else {
        return "?".to_owned();
    };
    let seconds = now.duration_since(time).as_secs();
    let units = [(7 * 86_400, 'w'), (86_400, 'd'), (3600, 'h'), (60, 'm')];
    let unit = units.into_iter().find(|(length, _)| seconds >= *length);
    unit.map_or_else(
        || "now".to_owned(),
        |(length, unit)| format!("{}{unit} ago", seconds / length),
    )
}

/// Formats an RFC 3339 time to the second, in the local time zone.
pub fn exact(time: &str) -> String {
    shown(time, "%Y-%m-%d %H:%M:%S", TimeZone::system())
}

fn shown(time: &str, form: &str, zone: TimeZone) -> String {
    match time.parse::<Timestamp>() {
        Ok(time) => time.to_zoned(zone).strftime(form).to_string(),
        Err(_) => "?".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_have_units() {
        let cases = [
            ("45s", 45),
            ("90m", 5400),
            ("12h", 43_200),
            ("30d", 2_592_000),
            ("2w", 1_209_600),
            ("0d", 0),
        ];
        for (text, want) in cases {
            assert_eq!(age(text), Ok(Duration::from_secs(want)), "{text}");
        }
        for bad in [
            "",
            "30",
            "d",
            "3y",
            "-1d",
            "1.5d",
            "30 d",
            "99999999999999999999d",
            "18446744073709551615w",
        ] {
            assert!(age(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_clock_beyond_all_timestamps_is_the_latest_timestamp() {
        let year_33000 = SystemTime::UNIX_EPOCH + Duration::from_secs(31_000 * 365 * 86_400);
        assert_eq!(timestamp(year_33000), Timestamp::MAX);
        let before = SystemTime::UNIX_EPOCH.checked_sub(Duration::from_secs(20_000 * 365 * 86_400));
        assert_eq!(before.map(timestamp), Some(Timestamp::MIN));
        let now = timestamp(SystemTime::UNIX_EPOCH + Duration::from_secs(1));
        assert_eq!(now, Timestamp::from_second(1).unwrap());
    }

    #[test]
    fn age_selects_sessions_by_last_use() {
        let now: Timestamp = "2026-03-31T12:00:00Z".parse().unwrap();
        let limit = ago(now, age("30d").unwrap());
        assert!(is_before("2026-03-01T11:59:59.999Z", limit));
        assert!(!is_before("2026-03-01T12:00:00Z", limit));
        // A session with an unknown time is not removed.
        assert!(!is_before("", limit));
        assert!(!is_before("long ago", limit));
        assert_eq!(ago(now, Duration::MAX), Timestamp::MIN);
        assert_eq!(ago(now, Duration::from_secs(u64::MAX / 2)), Timestamp::MIN);
    }

    #[test]
    fn ages_have_the_largest_unit_that_fits() {
        let now: Timestamp = "2026-03-31T12:00:00Z".parse().unwrap();
        for (time, want) in [
            ("2026-03-31T12:00:00Z", "now"),
            ("2026-03-31T13:00:00Z", "now"),
            ("2026-03-31T11:58:30Z", "1m ago"),
            ("2026-03-31T00:30:00Z", "11h ago"),
            ("2026-03-25T12:00:00Z", "6d ago"),
            ("2026-01-01T00:00:00Z", "12w ago"),
            ("never", "?"),
        ] {
            assert_eq!(since(time, now), want, "{time}");
        }
    }

    #[test]
    fn times_are_shown_to_the_minute_in_a_time_zone() {
        let shown = |zone| shown("2026-03-01T20:05:59.123Z", "%Y-%m-%d %H:%M", zone);
        assert_eq!(shown(TimeZone::UTC), "2026-03-01 20:05");
        assert_eq!(
            shown(TimeZone::fixed(jiff::tz::offset(9))),
            "2026-03-02 05:05"
        );
        assert_eq!(short(""), "?");
    }
}
