//! Reads an HTTP exchange: its attempts, the head of the response, and the body.

use super::failure::Caller;
use crate::backend::{AnswerReader, UnusableLine};
use acpipe_json::Members;
use acpipe_model::error::{Error, ErrorKind};
use acpipe_model::event::{Exit, Original, TurnEnd, Update};
use acpipe_model::http::{HttpHead, HttpLine};
use acpipe_model::idle_timer::format_duration;
use serde_json::value::RawValue;
use std::time::Duration;

/// Maximum size of a body that is not a stream, in bytes.
const MAX_BODY: usize = 64 << 20;

/// Maximum size of the body of an error that is kept, in bytes.
const MAX_ERROR_BODY: usize = 64 << 10;

/// Reader of the body of a successful response.
pub trait BodyReader: Send {
    /// Reads the data of one event of a stream.
    ///
    /// # Errors
    /// The data cannot be used; it is counted, and the stream continues.
    fn read<'a>(
        &mut self,
        data: &'a str,
        updates: &mut Vec<(Update<'a>, Original<'a>)>,
    ) -> Result<(), UnusableLine>;

    /// Reads a body that is not a stream.
    ///
    /// # Errors
    /// The body is not a valid answer.
    fn read_whole(&mut self, body: &str, updates: &mut Vec<Update<'static>>) -> Result<(), Error>;

    /// Returns `true` once the stream has said that it is complete.
    fn is_complete(&self) -> bool;

    /// Returns `true` if the endpoint has said that nothing follows.
    fn is_over(&self) -> bool;

    /// Returns the end of the turn after the whole body.
    ///
    /// # Errors
    /// The endpoint reported an error, or the body is not complete.
    fn end(&mut self, updates: &mut Vec<Update<'static>>) -> Result<TurnEnd, Error>;
}

/// Reader of an exchange.
#[derive(Debug)]
pub struct HttpAnswer<B> {
    body: B,
    caller: Caller,
    head: Option<HttpHead>,
    /// Text of a body that is not a stream.
    text: String,
    is_too_large: bool,
}

impl<B> HttpAnswer<B> {
    #[must_use]
    pub fn new(body: B, caller: Caller) -> Self {
        Self {
            body,
            caller,
            head: None,
            text: String::new(),
            is_too_large: false,
        }
    }

    fn add_text(&mut self, line: &str, is_success: bool) {
        let max = if is_success { MAX_BODY } else { MAX_ERROR_BODY };
        if self.text.len() + line.len() > max {
            self.is_too_large = true;
            return;
        }
        self.text.push_str(line);
        self.text.push('\n');
    }
}

impl<B: BodyReader> HttpAnswer<B> {
    fn result(
        &mut self,
        how: Result<&Exit, &Error>,
        updates: &mut Vec<Update<'static>>,
    ) -> Result<TurnEnd, Error> {
        let Some(head) = &self.head else {
            how.map_err(Clone::clone)?;
            let message = "the exchange with the endpoint ended without a response; try again";
            return Err(Error::new(ErrorKind::Streaming, message));
        };
        if !head.is_success() {
            return Err(self.caller.status_error(head, &self.text));
        }
        if let Some(coding) = &head.content_encoding {
            let what = format!("is compressed ({coding}), which was not requested");
            return Err(self.caller.malformed(&what, ""));
        }
        if head.is_event_stream() {
            // A connection that breaks after the last event has lost nothing.
            if !self.body.is_complete() {
                how.map_err(Clone::clone)?;
            }
            return self.body.end(updates);
        }
        how.map_err(Clone::clone)?;
        if self.is_too_large {
            return Err(self.caller.malformed("is larger than 64 MiB", ""));
        }
        self.body.read_whole(&self.text, updates)?;
        self.body.end(updates)
    }
}

impl<B: BodyReader> AnswerReader for HttpAnswer<B> {
    fn read<'a>(
        &mut self,
        line: &'a str,
        updates: &mut Vec<(Update<'a>, Original<'a>)>,
    ) -> Result<(), UnusableLine> {
        let Some(head) = &self.head else {
            match serde_json::from_str(line).map_err(|_| UnusableLine)? {
                HttpLine::Retry(_) => updates.push((Update::Notice, retry_notice(line))),
                HttpLine::Head(head) => self.head = Some(head),
            }
            return Ok(());
        };
        let is_success = head.is_success();
        if is_success && head.is_event_stream() {
            return self.body.read(line, updates);
        }
        self.add_text(line, is_success);
        Ok(())
    }

    fn is_complete(&self) -> bool {
        self.is_too_large || self.body.is_over()
    }

    fn end(
        &mut self,
        how: Result<&Exit, &Error>,
        updates: &mut Vec<Update<'static>>,
    ) -> Result<TurnEnd, Error> {
        let attempts = self.head.as_ref().map_or(1, |head| head.attempts);
        let mut end = self.result(how, updates)?;
        if attempts > 1 {
            end.other.set_owned("attempts", &attempts);
        }
        Ok(end)
    }
}

fn retry_notice(line: &str) -> Original<'_> {
    fn cut(line: &str) -> Option<&RawValue> {
        serde_json::from_str(line).ok()
    }
    fn fields(line: &str) -> Members<'_> {
        let mut notice = Members::default();
        if let Ok(HttpLine::Retry(retry)) = serde_json::from_str(line) {
            let pause = format_duration(Duration::from_millis(retry.after_ms));
            let title = format!("The request to the endpoint failed; retrying in {pause}");
            notice.set_owned("severity", &"warning");
            notice.set_owned("title", &title);
            notice.set_owned("description", &retry.reason);
        }
        notice
    }
    Original { line, cut, fields }
}
