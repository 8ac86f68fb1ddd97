//! Sends a request, again after transient failures, until its response can be delivered.

use super::failure::{is_permanent, not_sent, timed_out};
use super::{Cut, retry_after};
use crate::inbox::EventSender;
use crate::recorder::ProcessRecorder;
use acpipe_core::hub::{AgentId, AgentInput};
use acpipe_json::frame::Batch;
use acpipe_model::error::{Error, ErrorKind};
use acpipe_model::http::{HttpHead, HttpHeader, HttpLine, HttpRequest, HttpRetry, shown_url};
use acpipe_model::limits::Timeout;
use jiff::Timestamp;
use reqwest::header::{
    CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION,
};
use reqwest::{Client, Response, StatusCode, Url};
use std::time::Duration;
use tracing::{debug, info};

/// Maximum number of times that a request is sent. Nothing was answered before, so that sending it again is
/// safe.
const MAX_ATTEMPTS: u32 = 3;

/// Longest pause between two attempts. If the endpoint requests a longer one, its error is reported at once.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Maximum number of redirects that are followed, each to the same origin.
const MAX_REDIRECTS: u32 = 5;

/// Headers with the endpoint's id of a request.
const REQUEST_IDS: &[&str] = &["x-request-id", "request-id", "x-vercel-id", "cf-ray"];

/// A request and its attempts.
pub struct HttpAttempts {
    id: AgentId,
    request: HttpRequest,
    client: Client,
    events: EventSender,
    recorder: Option<ProcessRecorder>,
    /// Number of attempts so far.
    sent: u32,
}

impl HttpAttempts {
    /// Creates the state before the first attempt.
    pub fn new(
        id: AgentId,
        request: HttpRequest,
        client: Client,
        (events, recorder): (EventSender, Option<ProcessRecorder>),
    ) -> Self {
        Self {
            id,
            request,
            client,
            events,
            recorder,
            sent: 0,
        }
    }

    /// The request.
    pub fn request(&self) -> &HttpRequest {
        &self.request
    }

    /// Number of attempts so far.
    pub fn sent(&self) -> u32 {
        self.sent
    }

    /// Passes an event on.
    pub async fn send(&mut self, input: AgentInput) -> Result<(), Cut> {
        if let (Some(recorder), AgentInput::Batch(batch)) = (&self.recorder, &input) {
            recorder.received(batch);
        }
        let sent = self.events.send(self.id, input).await;
        sent.map_err(|_| Cut::LoopEnded)
    }

    /// Sends the request until there is a response to deliver, and delivers its head.
    pub async fn response(&mut self) -> Result<Response, Cut> {
        loop {
            self.sent += 1;
            let failure = match self.send_once().await {
                Ok(response) => {
                    let Some((pause, reason)) = self.retry_of(&response) else {
                        self.deliver_head(&response).await?;
                        return Ok(response);
                    };
                    (pause, reason)
                }
                Err(NotSent::Retriable(error)) if self.sent < MAX_ATTEMPTS => {
                    let pause = retry_after::growing(self.sent, random());
                    (pause, error.message)
                }
                Err(NotSent::Retriable(error) | NotSent::Final(error)) => {
                    return Err(Cut::Failed(error));
                }
            };
            self.pause(failure).await?;
        }
    }

    async fn pause(&mut self, (pause, reason): (Duration, String)) -> Result<(), Cut> {
        info!(attempt = self.sent, ?pause, "sending the request again");
        debug!(reason, "reason of the next attempt");
        let after_ms = u64::try_from(pause.as_millis()).unwrap_or(u64::MAX);
        self.line(&HttpLine::Retry(HttpRetry { reason, after_ms }))
            .await?;
        tokio::time::sleep(pause).await;
        Ok(())
    }

    /// Returns the pause before the next attempt and its reason; `None` if the response is to be delivered.
    fn retry_of(&self, response: &Response) -> Option<(Duration, String)> {
        let status = response.status();
        if self.sent >= MAX_ATTEMPTS || !is_transient(status) {
            return None;
        }
        let requested = retry_after::requested(response.headers(), Timestamp::now());
        let pause = requested.unwrap_or_else(|| retry_after::growing(self.sent, random()));
        (pause <= LONGEST_PAUSE).then(|| (pause, format!("HTTP {}", status.as_u16())))
    }

    /// Sends the request once, and again to where the endpoint redirects it within its origin.
    async fn send_once(&mut self) -> Result<Response, NotSent> {
        let mut url = Url::parse(&self.request.url).map_err(|error| {
            let at = shown_url(&self.request.url);
            let message = format!(
                "cannot send the request: {at} is not a valid address: {error}; correct it"
            );
            NotSent::Final(Error::new(ErrorKind::InvalidParams, message))
        })?;
        let headers = self.headers()?;
        for _ in 0..=MAX_REDIRECTS {
            let response = self.exchange(url.clone(), headers.clone()).await?;
            match same_origin_target(&url, &response) {
                Some(target) => url = target,
                None => return Ok(response),
            }
        }
        let at = shown_url(&self.request.url);
        let message =
            format!("{at} redirects without end; set the address of the agent to the final one");
        Err(NotSent::Final(Error::new(ErrorKind::Network, message)))
    }

    async fn exchange(&self, url: Url, headers: HeaderMap) -> Result<Response, NotSent> {
        let limits = &self.request.limits;
        let sent = self
            .client
            .post(url)
            .headers(headers)
            .body(self.request.body.clone())
            .send();
        let limit = limits.first_byte;
        let response = match limit {
            // It includes the connection, whose limit is shorter by default and has its own error.
            Some(limit) => tokio::time::timeout(limit, sent).await.map_err(|_| {
                NotSent::Final(timed_out(
                    Timeout::FirstByte,
                    limit,
                    &self.request.url,
                    self.sent,
                ))
            })?,
            None => sent.await,
        };
        response.map_err(|error| {
            let is_retriable = error.is_connect() && !is_permanent(&error);
            let error = not_sent(&error, &self.request.url, limits, self.sent);
            if is_retriable {
                NotSent::Retriable(error)
            } else {
                NotSent::Final(error)
            }
        })
    }

    fn headers(&self) -> Result<HeaderMap, NotSent> {
        header_map(&self.request.headers).map_err(NotSent::Final)
    }

    async fn deliver_head(&mut self, response: &Response) -> Result<(), Cut> {
        let headers = response.headers();
        let text = |name: &str| headers.get(name)?.to_str().ok().map(str::to_owned);
        let content_type = text(CONTENT_TYPE.as_str()).unwrap_or_default();
        let media_type = content_type.split(';').next().unwrap_or_default();
        let encoding = text(CONTENT_ENCODING.as_str());
        let pause = retry_after::requested(headers, Timestamp::now());
        let location = text(LOCATION.as_str()).map(|target| shown_target(response.url(), &target));
        let head = HttpHead {
            status: response.status().as_u16(),
            content_type: media_type.trim().to_owned(),
            content_encoding: encoding.filter(|coding| !coding.eq_ignore_ascii_case("identity")),
            retry_after_ms: pause.map(|pause| u64::try_from(pause.as_millis()).unwrap_or(u64::MAX)),
            request_id: REQUEST_IDS.iter().find_map(|name| text(name)),
            location: location.filter(|_| response.status().is_redirection()),
            attempts: self.sent,
        };
        self.line(&HttpLine::Head(head)).await
    }

    async fn line(&mut self, line: &HttpLine) -> Result<(), Cut> {
        let mut json = serde_json::to_vec(line).unwrap_or_default();
        json.push(b'\n');
        self.send(AgentInput::Batch(Batch::Lines(json.into())))
            .await
    }
}

/// Reason why there is no response.
enum NotSent {
    /// Another attempt may succeed.
    Retriable(Error),
    /// Another attempt would fail, too, or may do something twice.
    Final(Error),
}

/// Returns `true` for a status after which the same request may succeed.
fn is_transient(status: StatusCode) -> bool {
    let is_permanent = matches!(
        status,
        StatusCode::NOT_IMPLEMENTED | StatusCode::HTTP_VERSION_NOT_SUPPORTED
    );
    matches!(
        status,
        StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS
    ) || (status.is_server_error() && !is_permanent)
}

/// Returns the target of a redirect that repeats the request at the same origin. Other redirects are not
/// followed: they would change the request, or send it with its keys to another server.
fn same_origin_target(from: &Url, response: &Response) -> Option<Url> {
    let keeps_request = matches!(
        response.status(),
        StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT
    );
    let location = response.headers().get(LOCATION)?.to_str().ok()?;
    let target = from.join(location).ok()?;
    (keeps_request && target.origin() == from.origin()).then_some(target)
}

/// Returns the target of a redirect as errors show it. An address is shown as the endpoint wrote it: a parsed one has its
/// host in small letters, and a key that stands there would not be recognised.
fn shown_target(from: &Url, location: &str) -> String {
    let is_whole = Url::parse(location).is_ok();
    let is_host = location.starts_with(['/', '\\']) && location[1..].starts_with(['/', '\\']);
    if is_whole {
        shown_url(location)
    } else if is_host {
        shown_url(&format!("{}:{location}", from.scheme()))
    } else {
        let target = from.join(location).map(String::from);
        shown_url(&target.unwrap_or_default())
    }
}

/// Returns a number that differs between attempts of several sessions.
fn random() -> u32 {
    Timestamp::now().subsec_nanosecond().unsigned_abs() / 1000
}

/// Returns the headers of a request, or the error about one that is not valid. A name that is not valid may hold a value, so
/// it is not quoted.
fn header_map(given: &[HttpHeader]) -> Result<HeaderMap, Error> {
    let mut headers = HeaderMap::new();
    for header in given {
        let Ok(name) = HeaderName::from_bytes(header.name.as_bytes()) else {
            let message = "cannot send the request: the name of a header is not valid; give the name alone, without a value";
            return Err(Error::new(ErrorKind::InvalidParams, message));
        };
        let Ok(mut value) = HeaderValue::from_str(&header.value) else {
            let message = format!(
                "cannot send the request: header {name:?} is not valid; check the variables in its value"
            );
            return Err(Error::new(ErrorKind::InvalidParams, message));
        };
        // The value is not indexed by HTTP/2 and not printed.
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    Ok(headers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn target_of_a_redirect_keeps_the_letters_of_the_endpoint() {
        let from = Url::parse("http://h:1/v1/chat").unwrap();
        for (location, want) in [
            ("https://KeY.h/KeY?KeY#KeY", "https://KeY.h/KeY"),
            ("http://u:KeY@h/x", "http://h/x"),
            ("//KeY/x", "http://KeY/x"),
            ("javascript:KeY", "javascript:KeY"),
            ("/KeY?KeY", "http://h:1/KeY"),
            ("KeY", "http://h:1/v1/KeY"),
            ("http://KeY:KeY@", ""),
        ] {
            assert_eq!(shown_target(&from, location), want, "{location}");
        }
    }

    #[test]
    fn header_that_is_not_valid_is_named_only_by_a_valid_name() {
        for (name, value, is_named) in [("x-key: s3cret", "a", false), ("x-key", "s3\ncret", true)]
        {
            let header = HttpHeader {
                name: name.to_owned(),
                value: value.to_owned(),
            };
            let error = header_map(&[header]).unwrap_err();
            assert_eq!(error.message.contains("x-key"), is_named, "{error}");
            assert!(!error.message.contains("cret"), "{error}");
        }
    }
}
