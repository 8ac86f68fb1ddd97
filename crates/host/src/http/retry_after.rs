//! Pauses between attempts: what the endpoint requests, or a pause that grows.

use jiff::Timestamp;
use jiff::fmt::rfc2822;
use reqwest::header::{HeaderMap, RETRY_AFTER};
use std::time::Duration;

/// First pause if the endpoint requests none; it doubles with each attempt.
const FIRST_PAUSE: Duration = Duration::from_millis(500);

/// Returns the pause that a response requests: in milliseconds, in seconds, or until a date.
pub fn requested(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    let milliseconds = text("retry-after-ms").and_then(|text| text.parse::<f64>().ok());
    if let Some(milliseconds) = milliseconds {
        return Duration::try_from_secs_f64(milliseconds / 1000.0).ok();
    }
    let text = text(RETRY_AFTER.as_str())?;
    if let Ok(seconds) = text.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let until = rfc2822::parse(text).ok()?.timestamp();
    let pause = until.duration_since(now);
    Some(Duration::try_from(pause).unwrap_or_default())
}

/// Returns the pause after an attempt for which the endpoint requests none. `random` spreads the attempts of
/// several sessions.
pub fn growing(attempt: u32, random: u32) -> Duration {
    let pause = FIRST_PAUSE * 2_u32.saturating_pow(attempt.saturating_sub(1));
    pause + pause / 4 * (random % 100) / 100
}

#[cfg(test)]
mod tests {
    use super::*;
    use reqwest::header::HeaderValue;

    #[test]
    fn requested_pause_is_read_in_each_form() {
        let now: Timestamp = "2026-11-24T10:00:00Z".parse().unwrap();
        let cases = [
            ("retry-after", "3", Some(3000)),
            ("retry-after", "1.5", Some(1500)),
            ("retry-after", "Tue, 24 Nov 2026 10:00:07 GMT", Some(7000)),
            ("retry-after", "Tue, 24 Nov 2026 09:00:00 GMT", Some(0)),
            ("retry-after-ms", "250", Some(250)),
            ("retry-after", "soon", None),
            ("retry-after", "-1", None),
            ("x-other", "3", None),
        ];
        for (name, value, want) in cases {
            let mut headers = HeaderMap::new();
            headers.insert(name, HeaderValue::from_static(value));
            let got = requested(&headers, now).map(|pause| pause.as_millis());
            assert_eq!(got, want, "{name}: {value}");
        }
    }

    #[test]
    fn pause_grows_with_each_attempt() {
        assert_eq!(growing(1, 0), Duration::from_millis(500));
        assert_eq!(growing(2, 0), Duration::from_secs(1));
        assert!(growing(2, 99) < Duration::from_millis(1250));
    }
}
