//! Repair of text that is almost JSON: reads what a strict parser rejects although its meaning is clear.
//!
//! Only text that the parser has rejected is repaired. Time and memory are linear in the length of the text.

use memchr::memchr;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;

/// Maximum number of objects that are read from one line.
const MOST_OBJECTS: usize = 256;

/// Number of bytes that a repair may add beyond doubling the text.
const GROWTH: usize = 1024;

/// Numbers that JSON does not have, as Python, JavaScript and C print them.
const NOT_NUMBERS: [&str; 7] = ["NaN", "Infinity", "-Infinity", "nan", "-nan", "inf", "-inf"];

/// Faults of a text that was repaired.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct Faults {
    /// Bytes that are not UTF-8; they became U+FFFD.
    pub not_utf8: bool,
    /// `NaN` or `Infinity`; it became `null`.
    pub not_a_number: bool,
    /// A control character in a string; it was escaped.
    pub control: bool,
    /// A comma before a closing bracket; it was removed.
    pub trailing_comma: bool,
    /// Several objects in one line; each is a message.
    pub several: bool,
    /// Text beside the objects, such as a log line; it was skipped.
    pub other_text: bool,
}

impl Faults {
    /// Returns `true` if anything was wrong.
    #[must_use]
    pub fn any(self) -> bool {
        self != Self::default()
    }

    fn add(&mut self, other: Self) {
        self.not_utf8 |= other.not_utf8;
        self.not_a_number |= other.not_a_number;
        self.control |= other.control;
        self.trailing_comma |= other.trailing_comma;
        self.several |= other.several;
        self.other_text |= other.other_text;
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = [
            (self.not_utf8, "bytes that are not UTF-8"),
            (self.not_a_number, "NaN or Infinity"),
            (self.control, "an unescaped control character"),
            (self.trailing_comma, "a trailing comma"),
            (self.several, "several messages"),
            (self.other_text, "other text beside the message"),
        ];
        let found: Vec<&str> = all
            .iter()
            .filter(|(is, _)| *is)
            .map(|(_, it)| *it)
            .collect();
        f.write_str(&found.join(", "))
    }
}

/// Decodes a line, with U+FFFD in place of bytes that are not UTF-8; `None` if there are so many that the text
/// would more than double.
#[must_use]
pub fn decoded(line: &[u8]) -> Option<Cow<'_, str>> {
    if let Ok(text) = std::str::from_utf8(line) {
        return Some(Cow::Borrowed(text));
    }
    let most = most_bytes(line.len());
    let mut text = String::with_capacity(line.len());
    for chunk in line.utf8_chunks() {
        text.push_str(chunk.valid());
        if !chunk.invalid().is_empty() {
            text.push('\u{fffd}');
        }
        if text.len() > most {
            return None;
        }
    }
    Some(Cow::Owned(text))
}

/// Repairs a text that is one object or array; `None` if it cannot be read.
#[must_use]
pub fn whole(text: &str) -> Option<(Cow<'_, str>, Faults)> {
    let text = text.trim();
    let (value, end, faults) = Repair::of(text, 0)?;
    (text.starts_with(['{', '[']) && end == text.len()).then_some((value, faults))
}

/// Iterator over the objects in a line, each repaired.
///
/// It ends at an object that cannot be read: text after it may belong to one of its strings.
#[derive(Debug)]
pub struct Objects<'a> {
    text: &'a str,
    /// Place of the last object.
    begin: usize,
    at: usize,
    count: usize,
    rest: Option<usize>,
    faults: Faults,
}

/// Iterates over the objects in a line.
#[must_use]
pub fn objects(text: &str) -> Objects<'_> {
    Objects {
        text,
        begin: 0,
        at: 0,
        count: 0,
        rest: None,
        faults: Faults::default(),
    }
}

impl<'a> Objects<'a> {
    /// Returns what was wrong with the text that was read so far.
    #[must_use]
    pub fn faults(&self) -> Faults {
        self.faults
    }

    /// Returns the text from the object on that could not be read; `None` if all were read.
    #[must_use]
    pub fn rest(&self) -> Option<&'a str> {
        self.rest.map(|at| &self.text[at..])
    }

    /// Returns `true` if other text quotes the last object: it has quotes around it, or text behind it.
    #[must_use]
    pub fn is_quoted(&self) -> bool {
        let before = self.text[..self.begin].trim_end();
        let after = self.text[self.at..].trim_start();
        let is_in_list = self.text.trim_start().starts_with('[') && after.starts_with([',', ']']);
        before.ends_with(['"', '\'', '`'])
            || !(after.is_empty() || after.starts_with('{') || is_in_list)
    }

    /// Skips text up to an offset.
    fn skip_to(&mut self, at: usize) {
        self.faults.other_text |= !self.text[self.at..at].trim().is_empty();
        self.at = at;
    }
}

impl<'a> Iterator for Objects<'a> {
    type Item = Cow<'a, str>;

    fn next(&mut self) -> Option<Cow<'a, str>> {
        if self.rest.is_some() {
            return None;
        }
        let Some(skipped) = memchr(b'{', &self.text.as_bytes()[self.at..]) else {
            self.skip_to(self.text.len());
            return None;
        };
        self.skip_to(self.at + skipped);
        let found = (self.count < MOST_OBJECTS).then(|| Repair::of(self.text, self.at));
        let Some((object, end, faults)) = found.flatten() else {
            self.rest = Some(self.at);
            return None;
        };
        (self.begin, self.at) = (self.at, end);
        self.count += 1;
        self.faults.add(faults);
        self.faults.several |= self.count > 1;
        Some(object)
    }
}

fn most_bytes(len: usize) -> usize {
    len.saturating_mul(2).saturating_add(GROWTH)
}

/// A value that is being read.
struct Repair<'a> {
    text: &'a str,
    at: usize,
    /// The value up to `copied`, with the changes; empty if there are none.
    out: String,
    copied: usize,
    faults: Faults,
}

impl<'a> Repair<'a> {
    /// Reads the value at an offset; returns it with its end.
    fn of(text: &'a str, begin: usize) -> Option<(Cow<'a, str>, usize, Faults)> {
        let mut repair = Self {
            text,
            at: begin,
            out: String::new(),
            copied: begin,
            faults: Faults::default(),
        };
        repair.value()?;
        let Self {
            at,
            copied,
            faults,
            mut out,
            ..
        } = repair;
        if !faults.any() {
            return Some((Cow::Borrowed(&text[begin..at]), at, faults));
        }
        out.push_str(&text[copied..at]);
        Some((Cow::Owned(out), at, faults))
    }

    fn value(&mut self) -> Option<()> {
        // Closing brackets of the open arrays and objects.
        let mut open = Vec::new();
        loop {
            self.skip_space();
            match self.peek()? {
                bracket @ (b'{' | b'[') => {
                    self.at += 1;
                    let close = bracket + 2;
                    self.skip_space();
                    if self.peek()? == close {
                        self.at += 1;
                    } else {
                        open.push(close);
                        self.key_in(close)?;
                        continue;
                    }
                }
                b'"' => self.string()?,
                _ => self.word()?,
            }
            while let Some(&close) = open.last() {
                self.skip_space();
                if self.peek()? == b',' {
                    let comma = self.at;
                    self.at += 1;
                    self.skip_space();
                    if self.peek()? != close {
                        self.key_in(close)?;
                        break;
                    }
                    self.faults.trailing_comma = true;
                    self.replace(comma, comma + 1, "")?;
                }
                if self.peek()? != close {
                    return None;
                }
                self.at += 1;
                open.pop();
            }
            if open.is_empty() {
                return Some(());
            }
        }
    }

    /// Reads the key and the colon before a value, if the value is a member of an object.
    fn key_in(&mut self, close: u8) -> Option<()> {
        if close == b'}' {
            self.string()?;
            self.skip_space();
            (self.peek()? == b':').then_some(())?;
            self.at += 1;
        }
        Some(())
    }

    fn string(&mut self) -> Option<()> {
        (self.peek()? == b'"').then_some(())?;
        self.at += 1;
        loop {
            match self.peek()? {
                b'"' => {
                    self.at += 1;
                    return Some(());
                }
                b'\\' => {
                    let bytes = self.text.as_bytes();
                    let escape = *bytes.get(self.at + 1)?;
                    let hex = if escape == b'u' { 4 } else { 0 };
                    let digits = bytes.get(self.at + 2..self.at + 2 + hex)?;
                    let is_valid = br#""\/bfnrtu"#.contains(&escape)
                        && digits.iter().all(u8::is_ascii_hexdigit);
                    is_valid.then_some(())?;
                    self.at += 2 + hex;
                }
                control @ 0..0x20 => {
                    self.faults.control = true;
                    self.replace(self.at, self.at + 1, &format!("\\u{control:04x}"))?;
                    self.at += 1;
                }
                _ => self.at += 1,
            }
        }
    }

    /// Reads a number or a literal.
    fn word(&mut self) -> Option<()> {
        let rest = &self.text[self.at..];
        let is_part = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.');
        let len = rest.bytes().position(|b| !is_part(b)).unwrap_or(rest.len());
        let word = &rest[..len];
        let begin = self.at;
        self.at += len;
        if NOT_NUMBERS.contains(&word) {
            self.faults.not_a_number = true;
            return self.replace(begin, self.at, "null");
        }
        serde_json::from_str::<&RawValue>(word)
            .is_ok()
            .then_some(())
    }

    /// Replaces a part of the text; `None` if the result gets too large.
    fn replace(&mut self, begin: usize, end: usize, with: &str) -> Option<()> {
        self.out.push_str(&self.text[self.copied..begin]);
        self.out.push_str(with);
        self.copied = end;
        (self.out.len() <= most_bytes(self.text.len())).then_some(())
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }
}

#[cfg(test)]
mod tests;
