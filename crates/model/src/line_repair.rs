//! Lines that a reader cannot use as they are: repaired and read again, or given up with the reason.

use acpipe_json::frame::Overlong;
use acpipe_json::repair;
use acpipe_json::repair::Faults;
use acpipe_protocol::wire::LineFaults;
use serde::de::IgnoredAny;
use std::borrow::Cow;
use tracing::warn;

/// Maximum size of the text of a line that is given up, in bytes.
const MAX_TEXT: usize = 4096;

/// A line is not a message of the protocol. Its reader has done nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnusableLine;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineOutcome {
    Read,
    Unusable,
    /// The line was read, and no further one is to be read.
    Last,
}

/// Reader of the lines of a transport.
pub trait LineReader {
    fn read(&mut self, line: &[u8]) -> LineOutcome;

    /// Prepares for the next object, which has other text beside it. Returns `false` if the object is not to be read,
    /// such as a message of acpipe that a log quotes.
    fn takes_beside_text(&mut self, _object: &str) -> bool {
        true
    }

    /// Returns `true` for a response to a request of acpipe.
    fn is_response(&mut self, _object: &str) -> bool {
        false
    }

    fn repaired(&mut self, faults: Faults);

    fn lost(&mut self, line: &LostLine<'_>);
}

/// Reason why a line is given up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LostReason {
    TooLong,
    /// The line has so many bytes that are not UTF-8 that it is not decoded.
    NotUtf8,
    /// The line is not JSON; the parser's error.
    NotJson(String),
    /// The line is JSON, but not a message of the protocol.
    NotAMessage,
}

/// Fault of a line that is JSON, but not a message of the protocol, for a sentence that begins with "the line".
pub const NOT_A_MESSAGE: &str = "is not a message of the protocol";

/// Line that is given up.
#[derive(Debug)]
pub struct LostLine<'a> {
    /// Beginning of the line, or all of it.
    pub head: &'a [u8],
    /// End of the line, or all of it.
    pub tail: &'a [u8],
    /// Length of the line in bytes.
    pub len: u64,
    pub reason: LostReason,
}

impl<'a> LostLine<'a> {
    #[must_use]
    pub fn overlong(line: &'a Overlong) -> Self {
        Self {
            head: &line.head,
            tail: &line.tail,
            len: line.len,
            reason: LostReason::TooLong,
        }
    }

    fn of(line: &'a [u8], reason: LostReason) -> Self {
        Self {
            head: line,
            tail: line,
            len: line.len() as u64,
            reason,
        }
    }

    /// Describes what is wrong with the line, for a sentence that begins with "the line".
    pub fn fault(&self) -> String {
        match &self.reason {
            LostReason::TooLong => format!(
                "is longer than the limit ({} bytes); raise it with --max-line",
                self.len
            ),
            LostReason::NotUtf8 => "is not UTF-8".to_owned(),
            LostReason::NotJson(error) => format!("is not valid JSON: {error}"),
            LostReason::NotAMessage => NOT_A_MESSAGE.to_owned(),
        }
    }

    /// Returns the beginning of a line that is text for people, such as the output of a forgotten `print()`. `None` for
    /// a line that looks like JSON: it may be part of a conversation.
    pub fn text(&self) -> Option<Cow<'a, str>> {
        let head = &self.head[..self.head.len().min(MAX_TEXT)];
        let text = String::from_utf8_lossy(head.trim_ascii());
        let is_text = !text.is_empty() && !text.starts_with(['{', '[', '"']);
        is_text.then_some(text)
    }

    /// Returns `true` if a part of the line that is kept contains the text.
    pub fn contains(&self, text: &str) -> bool {
        let mut parts = [self.head, self.tail].into_iter();
        parts.any(|part| memchr::memmem::find(part, text.as_bytes()).is_some())
    }

    /// Returns the values of this member that are strings, numbers or literals, as JSON, in the parts of the line that
    /// are kept. In the text of a string, the quotes of the key would be escaped.
    pub fn values_of<'l>(&'l self, key: &'l str) -> impl Iterator<Item = &'l str> {
        // A line that is kept as a whole is both parts.
        let is_whole = std::ptr::eq(self.head, self.tail);
        let tail = (!is_whole).then_some(self.tail);
        let parts = std::iter::once(self.head).chain(tail);
        parts.flat_map(move |part| values_of(part, key))
    }

    pub fn has_member(&self, key: &str, value: &str) -> bool {
        let is_value = |found: &str| {
            let text = found
                .strip_prefix('"')
                .and_then(|rest| rest.strip_suffix('"'));
            text == Some(value)
        };
        self.values_of(key).any(is_value)
    }

    pub fn count(&self, faults: &mut LineFaults) {
        match self.reason {
            LostReason::TooLong => faults.too_long += 1,
            LostReason::NotUtf8 => faults.invalid_utf8 += 1,
            LostReason::NotJson(_) | LostReason::NotAMessage => faults.malformed += 1,
        }
    }

    /// Counts the line, and logs the first one, then at every power of two; each that is too long.
    pub fn report(&self, faults: &mut LineFaults) {
        self.count(faults);
        let count = faults.malformed + faults.invalid_utf8;
        if self.reason == LostReason::TooLong || count.is_power_of_two() {
            let (bytes, fault) = (self.len, self.fault());
            warn!(bytes, count, "skipped a line of the agent: it {fault}");
        }
    }
}

/// Returns the scalar values of a member in a text that need not be JSON as a whole.
pub fn values_of<'t>(text: &'t [u8], key: &str) -> impl Iterator<Item = &'t str> {
    let key = format!("\"{key}\"");
    let ends: Vec<usize> = memchr::memmem::find_iter(text, &key)
        .map(|at| at + key.len())
        .collect();
    ends.into_iter().filter_map(move |end| {
        let value = text[end..].trim_ascii_start().strip_prefix(b":")?;
        scalar(value.trim_ascii_start())
    })
}

/// Returns the string, number or literal with which the text begins.
fn scalar(text: &[u8]) -> Option<&str> {
    let len = match text.first()? {
        b'"' => {
            let mut escaped = false;
            let ends = |byte: &u8| {
                let is_end = *byte == b'"' && !escaped;
                escaped = *byte == b'\\' && !escaped;
                is_end
            };
            text[1..].iter().position(ends)? + 2
        }
        _ => text
            .iter()
            .position(|byte| matches!(byte, b',' | b'}' | b']') || byte.is_ascii_whitespace())
            .unwrap_or(text.len()),
    };
    let value = std::str::from_utf8(&text[..len]).ok()?;
    let parsed: Result<IgnoredAny, _> = serde_json::from_str(value);
    parsed.ok().map(|_| value)
}

/// Counts a line that was repaired, and logs the first one, then at every power of two.
pub fn count_repaired(repaired: Faults, faults: &mut LineFaults) {
    let count = if repaired.not_utf8 {
        &mut faults.invalid_utf8
    } else {
        &mut faults.malformed
    };
    *count += 1;
    if count.is_power_of_two() {
        warn!(
            count,
            "repaired a line of the agent, which is not valid JSON or text: it has {repaired}"
        );
    }
}

/// Repairs a whole answer that is one object or array, and logs that; `None` if it cannot be read.
pub fn repaired_answer(text: &str) -> Option<Cow<'_, str>> {
    let (value, faults) = repair::whole(text)?;
    warn!("repaired the answer of the agent, which is not valid JSON: it has {faults}");
    Some(value)
}

/// Reads a line that the reader could not use: without the bytes that are not UTF-8, then each object in it,
/// repaired. Returns `false` if no further line is to be read.
pub fn read_again(line: &[u8], reader: &mut impl LineReader) -> bool {
    let Some(text) = repair::decoded(line) else {
        reader.lost(&LostLine::of(line, LostReason::NotUtf8));
        return true;
    };
    let not_utf8 = matches!(text, Cow::Owned(_));
    let faults = |faults| Faults { not_utf8, ..faults };
    if not_utf8 {
        let outcome = reader.read(text.as_bytes());
        if outcome != LineOutcome::Unusable {
            reader.repaired(faults(Faults::default()));
            return outcome == LineOutcome::Read;
        }
    }
    let mut objects = repair::objects(&text);
    let (mut is_read, mut is_quoted) = (false, false);
    let mut goes_on = true;
    while let Some(object) = objects.next() {
        let is_same = object.len() == text.trim().len();
        if is_same && matches!(object, Cow::Borrowed(_)) {
            continue;
        }
        if objects.is_quoted() && reader.is_response(&object) {
            warn!(
                "ignored a response in a line of the agent that has other text behind or around it"
            );
            is_quoted = true;
            continue;
        }
        if objects.faults().other_text && !reader.takes_beside_text(&object) {
            is_quoted = true;
            continue;
        }
        let outcome = reader.read(object.as_bytes());
        is_read |= outcome != LineOutcome::Unusable;
        if outcome == LineOutcome::Last {
            goes_on = false;
            break;
        }
    }
    if is_read {
        reader.repaired(faults(objects.faults()));
    }
    let lost = match (objects.rest(), is_read) {
        (None, true) => return goes_on,
        (Some(rest), _) => rest,
        // The message in it is not the agent's, and must not be answered.
        (None, false) if is_quoted => "",
        (None, false) => &text,
    };
    let parsed: Result<IgnoredAny, _> = serde_json::from_str(lost);
    let reason = match parsed {
        _ if not_utf8 && !is_read => LostReason::NotUtf8,
        Ok(_) => LostReason::NotAMessage,
        Err(error) => LostReason::NotJson(error.to_string()),
    };
    reader.lost(&LostLine::of(lost.as_bytes(), reason));
    goes_on
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_a_member_are_found_in_text_that_is_not_json() {
        for (text, found) in [
            (r#""id" : "a\"b", x"#, &[r#""a\"b""#][..]),
            (
                r#"{"id":7,"b":{"id":null},"c":[{"id":true}]}"#,
                &["7", "null", "true"],
            ),
            (r#""id":"cut"#, &[]),
            (r#""id":{"id":1.5e3"#, &["1.5e3"]),
            (r#"{"text":"\"id\": 1"}"#, &[]),
            (r#""id" 1, "id": x1"#, &[]),
            (r#""id":"#, &[]),
        ] {
            let values: Vec<&str> = values_of(text.as_bytes(), "id").collect();
            assert_eq!(values, found, "{text}");
        }
    }
}
