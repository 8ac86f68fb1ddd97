//! Lines in, lines out: JSON-RPC 2.0 as ACP puts it on a pipe, one message a line.

use std::collections::VecDeque;
use std::io;

use agent_client_protocol_schema::v1::{Error, RawValue};
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

/// The longest line that is read; large enough for a prompt with pictures in it.
const LINE_LIMIT: usize = 64 << 20;

/// One line of input.
pub enum Line {
    /// What stood before the newline.
    Whole(Vec<u8>),
    /// More than [`LINE_LIMIT`] bytes: skipped up to its newline, so that the next line is read as usual.
    TooLong,
}

/// Reads lines of bounded length.
pub struct Lines<R> {
    reader: BufReader<R>,
    line: Vec<u8>,
    too_long: bool,
    limit: usize,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    /// Lines of at most [`LINE_LIMIT`] bytes.
    pub fn new(reader: R) -> Self {
        Self {
            reader: BufReader::new(reader),
            line: Vec::new(),
            too_long: false,
            limit: LINE_LIMIT,
        }
    }

    /// The next line, or `None` at the end of input.
    ///
    /// What was read of an unfinished line stays in `self`, so a `select!` may drop this future at any time.
    pub async fn next(&mut self) -> io::Result<Option<Line>> {
        loop {
            let bytes = self.reader.fill_buf().await?;
            if bytes.is_empty() {
                // A last line without its newline is a line all the same.
                let ended = self.line.is_empty() && !self.too_long;
                return Ok((!ended).then(|| self.take()));
            }
            let newline = bytes.iter().position(|byte| *byte == b'\n');
            let (text, _) = bytes.split_at(newline.unwrap_or(bytes.len()));
            if self.line.len() + text.len() > self.limit {
                self.too_long = true;
                self.line = Vec::new();
            }
            if !self.too_long {
                self.line.extend_from_slice(text);
            }
            let used = text.len() + usize::from(newline.is_some());
            self.reader.consume(used);
            if newline.is_some() {
                return Ok(Some(self.take()));
            }
        }
    }

    fn take(&mut self) -> Line {
        let line = std::mem::take(&mut self.line);
        if std::mem::take(&mut self.too_long) {
            Line::TooLong
        } else {
            Line::Whole(line)
        }
    }
}

/// What the client sent.
pub enum Incoming<'a> {
    /// A call which is owed exactly one answer.
    Request {
        id: &'a RawValue,
        method: String,
        params: Option<&'a RawValue>,
    },
    /// A call which is never answered.
    Notification {
        method: String,
        params: Option<&'a RawValue>,
    },
    /// The answer to a request of ours; `Err` holds the client's error object.
    Response {
        id: &'a RawValue,
        outcome: Result<&'a RawValue, &'a RawValue>,
    },
}

/// Every key a message can have, unread. Ids stay raw because an answer has to repeat them exactly.
#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    method: Option<&'a RawValue>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

/// Keeps `null` apart from a missing key: `"id": null` asks for an answer, no id does not.
fn present<'de, D: Deserializer<'de>>(value: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(value).map(Some)
}

/// Reads one message. The error comes with the id its answer carries: `null` where none could be read.
pub fn read(line: &[u8]) -> Result<Incoming<'_>, (&RawValue, Error)> {
    if serde_json::from_slice::<IgnoredAny>(line).is_err() {
        let error = Error::new(-32700, "this line is not JSON; send one message a line");
        return Err((RawValue::NULL, error));
    }
    let refuse = |id, why: &str| Err((id, Error::new(-32600, why)));
    // Without this, serde would also read an array as the struct, field by field.
    if !line.trim_ascii_start().starts_with(b"{") {
        return refuse(
            RawValue::NULL,
            "a message is a JSON object; ACP has no batches",
        );
    }
    let Ok(message) = serde_json::from_slice::<Message<'_>>(line) else {
        return refuse(RawValue::NULL, "a message has each of its keys once");
    };
    let Message {
        id,
        method,
        params,
        result,
        error,
    } = message;
    let Some(method) = method else {
        let outcome = error.map(Err).or(result.map(Ok));
        return match (id, outcome) {
            (Some(id), Some(outcome)) => Ok(Incoming::Response { id, outcome }),
            (id, _) => refuse(
                id.unwrap_or(RawValue::NULL),
                "a message has a `method`, or an `id` with a `result` or an `error`",
            ),
        };
    };
    let Ok(method) = serde_json::from_str::<String>(method.get()) else {
        return refuse(id.unwrap_or(RawValue::NULL), "`method` must be a string");
    };
    Ok(match id {
        Some(id) => Incoming::Request { id, method, params },
        None => Incoming::Notification { method, params },
    })
}

/// What is to be written, in order. The loop writes as fast as the client reads.
#[derive(Default)]
pub struct Outbox {
    bytes: VecDeque<u8>,
}

impl Outbox {
    /// Answers the client's request `id`.
    pub fn answer(&mut self, id: &RawValue, answer: Result<Value, Error>) {
        #[derive(Serialize)]
        struct Answer<'a> {
            jsonrpc: &'a str,
            id: &'a RawValue,
            #[serde(skip_serializing_if = "Option::is_none")]
            result: Option<Value>,
            #[serde(skip_serializing_if = "Option::is_none")]
            error: Option<Error>,
        }
        let (result, error) = match answer {
            Ok(result) => (Some(result), None),
            Err(error) => (None, Some(error)),
        };
        self.push(&Answer {
            jsonrpc: "2.0",
            id,
            result,
            error,
        });
    }

    /// Tells the client something that needs no answer.
    pub fn notify(&mut self, method: &str, params: &Value) {
        self.push(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    }

    /// Asks the client something; its answer will carry the same `id`.
    pub fn request(&mut self, id: u64, method: &str, params: &Value) {
        self.push(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
    }

    fn push(&mut self, message: &impl Serialize) {
        match serde_json::to_vec(message) {
            // JSON has no raw newline inside a message, so the one at its end is the only one.
            Ok(line) => self.bytes.extend(line.into_iter().chain([b'\n'])),
            Err(error) => tracing::error!(%error, "a message could not be written as JSON"),
        }
    }

    /// How many bytes wait.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The bytes to write next; not empty unless the outbox is.
    pub fn front(&self) -> &[u8] {
        self.bytes.as_slices().0
    }

    /// Forgets the first `count` bytes, which have been written.
    pub fn written(&mut self, count: usize) {
        self.bytes.drain(..count.min(self.bytes.len()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_line_too_long_costs_that_line_only() {
        let mut lines = Lines::new(&b"four\nfive!\n\nno newline"[..]);
        lines.limit = 4;
        let mut read = Vec::new();
        while let Some(line) = lines.next().await.unwrap() {
            read.push(match line {
                Line::Whole(line) => String::from_utf8(line).unwrap(),
                Line::TooLong => "too long".to_owned(),
            });
        }
        assert_eq!(read, ["four", "too long", "", "too long"]);
    }
}
