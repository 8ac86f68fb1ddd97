//! Errors of HTTP requests.

use acpipe_model::error::{Error, ErrorKind};
use acpipe_model::http::{HttpLimits, shown_url};
use acpipe_model::idle_timer::format_duration;
use acpipe_model::limits::Timeout;
use std::error::Error as _;
use std::time::Duration;

/// Joins the messages of an error and its causes. The address is left out, since it may contain a secret.
pub fn causes(error: &reqwest::Error) -> String {
    let mut texts: Vec<String> = Vec::new();
    let mut next = error.source();
    while let Some(cause) = next {
        let text = cause.to_string();
        if !texts.iter().any(|known| known.contains(&text)) {
            texts.push(text);
        }
        next = cause.source();
    }
    if texts.is_empty() {
        return "unknown cause".to_owned();
    }
    texts.join(": ")
}

/// Returns `true` if another attempt cannot succeed: the certificate of the endpoint is not valid.
pub fn is_permanent(error: &reqwest::Error) -> bool {
    causes(error).contains("certificate")
}

/// Converts an error before the head of the response.
pub fn not_sent(error: &reqwest::Error, url: &str, limits: &HttpLimits, attempts: u32) -> Error {
    if error.is_timeout() {
        let limit = limits.connect.unwrap_or_default();
        return timed_out(Timeout::Connect, limit, url, attempts);
    }
    let (at, why) = (shown_url(url), causes(error));
    let advice = if error.is_builder() {
        "correct the address and the headers of the agent"
    } else if is_permanent(error) {
        "add the certificate of a company's proxy to the system's certificates, or set SSL_CERT_FILE"
    } else {
        "check that the endpoint runs, the address and the proxy settings (HTTPS_PROXY, NO_PROXY)"
    };
    let kind = if error.is_builder() {
        ErrorKind::InvalidParams
    } else {
        ErrorKind::Network
    };
    let message = format!("cannot reach {at}: {why}; {advice}");
    Error::new(kind, message).with("attempts", attempts)
}

/// Error for an endpoint that exceeds a time limit before the head of its response.
pub fn timed_out(stage: Timeout, limit: Duration, url: &str, attempts: u32) -> Error {
    let at = shown_url(url);
    let what = match stage {
        Timeout::Connect => "no connection",
        Timeout::FirstByte => "no response",
        _ => "no data",
    };
    let (limit_text, stage_name) = (format_duration(limit), stage.name());
    let message = format!(
        "{at} timed out: {what} within {limit_text}; check the endpoint, or raise the limit with --timeout \
         {stage_name}=DURATION"
    );
    let waited = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
    Error::new(ErrorKind::Timeout, message)
        .with("stage", stage_name)
        .with("waitedMs", waited)
        .with("attempts", attempts)
}

/// Error for a body that breaks off.
pub fn broken(error: &reqwest::Error, url: &str) -> Error {
    let (at, why) = (shown_url(url), causes(error));
    let message =
        format!("the answer of {at} broke off: {why}; the part before it was kept, try again");
    Error::new(ErrorKind::Streaming, message)
}
