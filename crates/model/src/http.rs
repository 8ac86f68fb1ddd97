//! HTTP exchanges as pure data: the request of a transport, and the lines that the transport delivers.
//!
//! A transport delivers [`HttpLine`]s, then the body of the response as lines. A line of a body is the data of
//! one server-sent event (`text/event-stream`) or a line of the text (all other types).

use super::secret::{is_parameter, is_secret, shown_address};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// HTTP request (`POST`) of one exchange.
#[derive(Clone, PartialEq, Eq)]
pub struct HttpRequest {
    pub url: String,
    /// Headers, without those that describe the body's length and the connection.
    pub headers: Vec<HttpHeader>,
    pub body: Vec<u8>,
    pub limits: HttpLimits,
}

/// Header of a request. The value is not printed, since it may be a secret.
#[derive(Clone, PartialEq, Eq)]
pub struct HttpHeader {
    pub name: String,
    pub value: String,
}

/// Time limits of an exchange; `None` for no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HttpLimits {
    /// Limit on the connection: name resolution, TCP and TLS.
    pub connect: Option<Duration>,
    /// Limit on the time from the request to the head of the response.
    pub first_byte: Option<Duration>,
    /// Limit on the time without data in the body of the response.
    pub idle: Option<Duration>,
}

impl fmt::Debug for HttpRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpRequest")
            .field("url", &shown_url(&self.url))
            .field("headers", &self.headers)
            .field("body", &self.body.len())
            .field("limits", &self.limits)
            .finish()
    }
}

impl fmt::Debug for HttpHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: …", self.name)
    }
}

/// Line that an HTTP transport delivers before the body of the response.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum HttpLine {
    /// An attempt failed and the request is sent again after a pause.
    Retry(HttpRetry),
    /// Head of the response; the body follows.
    Head(HttpHead),
}

/// A failed attempt after which the request is sent again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HttpRetry {
    pub reason: String,
    pub after_ms: u64,
}

/// Head of a response.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HttpHead {
    pub status: u16,
    /// Media type of the body without parameters; empty if the endpoint names none.
    pub content_type: String,
    /// Coding of the body, such as `gzip`; `None` if the body is not coded.
    pub content_encoding: Option<String>,
    pub retry_after_ms: Option<u64>,
    /// The endpoint's id of the request.
    pub request_id: Option<String>,
    /// Target of a redirect that was not followed, without its query, in the letters of the endpoint.
    pub location: Option<String>,
    pub attempts: u32,
}

impl HttpHead {
    pub fn is_event_stream(&self) -> bool {
        self.content_type.eq_ignore_ascii_case("text/event-stream")
    }

    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

/// Returns an address as errors and logs show it: without user, password, query and fragment.
pub fn shown_url(url: &str) -> String {
    let end = url.find(['?', '#']).unwrap_or(url.len());
    // An address that is not valid may have its password elsewhere.
    let url = shown_address(&url[..end]);
    let Some((scheme, rest)) = url.split_once("://") else {
        return url.into_owned();
    };
    let authority_end = rest.find('/').unwrap_or(rest.len());
    let (authority, path) = rest.split_at(authority_end);
    let host = authority.rsplit('@').next().unwrap_or(authority);
    format!("{scheme}://{host}{path}")
}

pub fn url_fault(url: &str) -> Option<&'static str> {
    let rest = url
        .strip_prefix("https://")
        .or_else(|| url.strip_prefix("http://"));
    let Some(rest) = rest else {
        return Some("must be an address that begins with http:// or https://");
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if authority.is_empty() || url.contains(char::is_whitespace) {
        return Some("is not a valid address");
    }
    if authority.contains('@') {
        return Some(
            "must not contain a user or password; use `api_key_env` or `headers` of a configured agent",
        );
    }
    let query = url.split_once('?').map_or("", |(_, query)| query);
    let query = query.split('#').next().unwrap_or_default();
    let mut pairs = query
        .split('&')
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")));
    let has_key = pairs.any(|(name, value)| is_parameter(name) || is_secret("", value));
    has_key.then_some(
        "must not contain a key in its query, since addresses are stored and shown; use `api_key_env` or `headers` of a \
         configured agent",
    )
}

/// Returns the host of an address, without its port.
pub fn host(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if let Some(inside) = authority.strip_prefix('[') {
        return inside.split(']').next().unwrap_or_default();
    }
    authority.split(':').next().unwrap_or_default()
}

pub fn is_on_this_machine(url: &str) -> bool {
    let host = host(url);
    let is_v4 = |host: &str| host.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    matches!(host, "localhost" | "::1") || (host.starts_with("127.") && is_v4(host))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_output_contains_no_secret() {
        let request = HttpRequest {
            url: "https://user:pass@host/v1?key=topsecret".to_owned(),
            headers: vec![HttpHeader {
                name: "authorization".to_owned(),
                value: "Bearer topsecret".to_owned(),
            }],
            body: b"topsecret".to_vec(),
            limits: HttpLimits::default(),
        };
        let shown = format!("{request:?}");
        assert!(shown.contains("https://host/v1"), "{shown}");
        assert!(
            !shown.contains("topsecret") && !shown.contains("pass"),
            "{shown}"
        );
    }

    #[test]
    fn addresses_are_checked() {
        for (url, is_valid) in [
            ("http://localhost:11434/v1", true),
            ("https://api.example.com", true),
            ("http://[::1]:80/", true),
            ("localhost:11434", false),
            ("ftp://host/", false),
            ("https://", false),
            ("https://user:pass@host/", false),
            ("https://host/a b", false),
            ("https://host/v1?api-version=2024-10-21&stream=1", true),
            ("https://host/v1?key=abc", false),
            ("https://host/v1?%6Bey=abc", false),
            ("https://host/v1?X-Amz-Signature=abc", false),
            ("https://host/v1?a=1&api_key=abc#x", false),
            ("https://host/f?code=abc", false),
            ("https://host/v1?x=sk-ant-api03-AbCdEf0123456789", false),
        ] {
            assert_eq!(url_fault(url).is_none(), is_valid, "{url}");
        }
        assert_eq!(host("http://[::1]:80/x"), "::1");
        assert_eq!(host("http://localhost:11434/v1"), "localhost");
    }
}
