//! Errors after which another attempt helps only later than a retry makes it: usage limits that name their reset, and
//! requests to wait longer.

use super::RETRY_PAUSE;
use acpipe_model::error::Error;
use serde_json::Value;

/// Words before the time at which a limit ends.
const RESETS: &[&str] = &[
    "resets ",
    "will reset",
    "reset at",
    "reset on",
    "reset in",
    "reset after",
];

/// Words before the time to wait.
const WAITS: &[&str] = &["again in ", "again after ", "retry after ", "retry in "];

/// Returns `true` if the agent or the service asks for a longer pause than a retry makes.
pub fn needs_longer_wait(error: &Error) -> bool {
    if error.data.contains_key("retryAfterMs") {
        return true;
    }
    let raw = error.data.get("raw").and_then(Value::as_str);
    let raw = raw.unwrap_or_default();
    let details: Value = serde_json::from_str(raw).unwrap_or_default();
    let named = [&details, &details["data"]];
    named.into_iter().any(names_pause) || is_in_text(&format!("{} {raw}", error.message))
}

/// Returns `true` if the members of an error have a pause, in seconds or in milliseconds, that is too long.
fn names_pause(members: &Value) -> bool {
    let limit = RETRY_PAUSE.as_secs_f64();
    let is_longer = |name: &str, unit: f64| {
        let value = &members[name];
        let number = value.as_f64();
        let number = number.or_else(|| value.as_str()?.trim().parse().ok());
        number.is_some_and(|number| number * unit > limit)
    };
    ["retryAfter", "retry_after", "retry-after"]
        .iter()
        .any(|name| is_longer(name, 1.0))
        || ["retryAfterMs", "retry_after_ms"]
            .iter()
            .any(|name| is_longer(name, 0.001))
}

fn is_in_text(text: &str) -> bool {
    let text = text.to_lowercase();
    let is_limit = ["limit", "quota"].iter().any(|word| text.contains(word));
    if is_limit && RESETS.iter().any(|words| text.contains(words)) {
        return true;
    }
    if is_limit && text.contains("again at ") {
        return true;
    }
    WAITS.iter().any(|words| {
        let mut places = text.match_indices(words);
        places.any(|(at, words)| is_longer_pause(&text[at + words.len()..]))
    })
}

/// Returns `true` if a text begins with a longer time than the pause, such as `20s` or `30 minutes`.
fn is_longer_pause(text: &str) -> bool {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.');
    let (number, unit) = text.split_at(end.unwrap_or(text.len()));
    let Ok(number) = number.parse::<f64>() else {
        return false;
    };
    let unit = unit.trim_start();
    if unit.starts_with("ms") || unit.starts_with("milli") {
        return number * 0.001 > RETRY_PAUSE.as_secs_f64();
    }
    match unit.bytes().next() {
        Some(b'm' | b'h' | b'd' | b'w') => true,
        _ => number > RETRY_PAUSE.as_secs_f64(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use acpipe_model::error::ErrorKind;

    #[test]
    fn limits_that_name_a_later_time_need_a_longer_wait() {
        let cases = [
            (
                "You have hit your weekly limit - resets 4am (Europe/Paris)",
                "",
                true,
            ),
            (
                "Usage limit reached. Your limit will reset at 3pm.",
                "",
                true,
            ),
            (
                "You've hit your usage limit. Try again at 3:05 PM.",
                "",
                true,
            ),
            (
                "You've hit your usage limit, or try again in 3 days 4 hours",
                "",
                true,
            ),
            ("Rate limit reached. Please try again in 20s.", "", true),
            ("Rate limit reached. Please try again in 7m12s.", "", true),
            (
                "rate limited",
                r#"{"data":{"retryAfter":1800,"status":429}}"#,
                true,
            ),
            ("rate limited", r#"{"data":{"retry_after":"30"}}"#, true),
            // As long as the pause, or shorter.
            ("Rate limit reached. Please try again in 1.2s.", "", false),
            ("Rate limit reached. Please try again in 350ms.", "", false),
            ("rate limited", r#"{"data":{"retryAfter":1}}"#, false),
            ("529 overloaded, please try again in a moment", "", false),
            ("API Error: 500 connection reset", "", false),
            ("rate_limit_error", "", false),
        ];
        for (message, raw, want) in cases {
            let error = Error::new(ErrorKind::Session, message).with("raw", raw);
            assert_eq!(needs_longer_wait(&error), want, "{message} {raw}");
        }
    }
}
