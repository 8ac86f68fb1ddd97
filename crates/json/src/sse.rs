//! Server-sent events (`text/event-stream`): splits bytes into the data of events.
//!
//! Each event becomes one line. Line breaks inside the data of an event become spaces: the data is JSON, in
//! which they mean the same. Names, ids and retry times of events are skipped.

use super::frame::{Batch, Overlong};
use bytes::{Bytes, BytesMut};
use memchr::memchr2;

const BOM: &[u8] = "\u{feff}".as_bytes();

/// Lengths of the ends of an event that are kept if it is too long.
const KEPT_HEAD: usize = 4096;
const KEPT_TAIL: usize = 256;

/// Decoder of a stream of server-sent events, which arrives in pieces of any size.
#[derive(Debug)]
pub struct SseEvents {
    max: usize,
    /// Number of bytes at the start of the stream that match a byte order mark; `None` after the start.
    bom: Option<usize>,
    /// Whether the last byte was a CR, so that a LF belongs to the same line break.
    after_cr: bool,
    /// The current line so far.
    line: Vec<u8>,
    /// The data of the current event so far; `None` before its first field `data`.
    data: Option<Vec<u8>>,
    /// Whether an event was too long: the rest of the stream is skipped.
    is_over: bool,
}

impl SseEvents {
    /// Creates a decoder for events of up to `max` bytes.
    #[must_use]
    pub fn new(max: usize) -> Self {
        Self {
            max,
            bom: Some(0),
            after_cr: false,
            line: Vec::new(),
            data: None,
            is_over: false,
        }
    }

    /// Takes the next bytes of the stream; returns the data of the events that they complete.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<Batch> {
        let mut done = PendingBatches::default();
        let mut rest = self.without_bom(bytes);
        while !rest.is_empty() && !self.is_over {
            if std::mem::take(&mut self.after_cr) && rest[0] == b'\n' {
                rest = &rest[1..];
                continue;
            }
            let Some(end) = memchr2(b'\n', b'\r', rest) else {
                self.line.extend_from_slice(rest);
                self.check_length(&mut done);
                break;
            };
            self.line.extend_from_slice(&rest[..end]);
            self.after_cr = rest[end] == b'\r';
            rest = &rest[end + 1..];
            self.end_line(&mut done);
        }
        done.finish()
    }

    /// Ends the stream; returns the data of an event that no empty line ends.
    pub fn finish(&mut self) -> Vec<Batch> {
        let mut done = PendingBatches::default();
        if !self.line.is_empty() && !self.is_over {
            self.end_line(&mut done);
        }
        if !self.is_over {
            self.end_event(&mut done);
        }
        done.finish()
    }

    fn without_bom<'b>(&mut self, bytes: &'b [u8]) -> &'b [u8] {
        let mut rest = bytes;
        while let Some(seen) = self.bom {
            let Some((first, after)) = rest.split_first() else {
                break;
            };
            if *first != BOM[seen] {
                self.line.extend_from_slice(&BOM[..seen]);
                self.bom = None;
                break;
            }
            rest = after;
            self.bom = Some(seen + 1).filter(|seen| *seen < BOM.len());
        }
        rest
    }

    fn end_line(&mut self, done: &mut PendingBatches) {
        if self.line.is_empty() {
            self.end_event(done);
            return;
        }
        if let Some(value) = data_field(&self.line) {
            match &mut self.data {
                Some(data) => {
                    data.push(b' ');
                    data.extend_from_slice(value);
                }
                None => self.data = Some(value.to_vec()),
            }
        }
        self.line.clear();
        self.check_length(done);
    }

    fn end_event(&mut self, done: &mut PendingBatches) {
        if let Some(data) = self.data.take().filter(|data| !data.is_empty()) {
            done.line(&data);
        }
    }

    fn check_length(&mut self, done: &mut PendingBatches) {
        let data = self.data.as_deref().unwrap_or_default();
        let len = data.len() + self.line.len();
        if len <= self.max {
            return;
        }
        let all = [data, &self.line].concat();
        done.too_long(Overlong {
            len: len as u64,
            head: Bytes::copy_from_slice(&all[..len.min(KEPT_HEAD)]),
            tail: Bytes::copy_from_slice(&all[len.saturating_sub(KEPT_TAIL)..]),
        });
        self.is_over = true;
        (self.line, self.data) = (Vec::new(), None);
    }
}

/// Returns the value of a line with the field `data`.
fn data_field(line: &[u8]) -> Option<&[u8]> {
    let value = line.strip_prefix(b"data")?;
    match value.split_first() {
        None => Some(b""),
        Some((b':', value)) => Some(value.strip_prefix(b" ").unwrap_or(value)),
        Some(_) => None,
    }
}

/// Batches of lines in progress.
#[derive(Default)]
struct PendingBatches {
    done: Vec<Batch>,
    lines: BytesMut,
}

impl PendingBatches {
    fn line(&mut self, line: &[u8]) {
        self.lines.extend_from_slice(line);
        self.lines.extend_from_slice(b"\n");
    }

    fn too_long(&mut self, line: Overlong) {
        self.end_batch();
        self.done.push(Batch::TooLong(line));
    }

    fn end_batch(&mut self) {
        if !self.lines.is_empty() {
            let lines = std::mem::take(&mut self.lines).freeze();
            self.done.push(Batch::Lines(lines));
        }
    }

    fn finish(mut self) -> Vec<Batch> {
        self.end_batch();
        self.done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Decodes a stream that arrives in pieces of `size` bytes.
    fn lines(stream: &[u8], size: usize, max: usize) -> String {
        let mut events = SseEvents::new(max);
        let mut all: Vec<Batch> = stream.chunks(size).flat_map(|p| events.push(p)).collect();
        all.extend(events.finish());
        let text = |batch: Batch| match batch {
            Batch::Lines(lines) => String::from_utf8_lossy(&lines).into_owned(),
            Batch::TooLong(line) => format!("too long: {}\n", line.len > max as u64),
        };
        all.into_iter().map(text).collect()
    }

    #[test]
    fn events_are_the_same_however_the_stream_is_split() {
        let cases: &[(&str, &str)] = &[
            ("data: a\n\ndata: b\n\n", "a\nb\n"),
            ("data: a\r\n\r\ndata: b\r\n\r\n", "a\nb\n"),
            ("data: a\r\rdata: b\r\r", "a\nb\n"),
            ("data: a\r\n\rdata: b\n\r\n", "a\nb\n"),
            ("\u{feff}data: a\n\n", "a\n"),
            ("\u{feff}\u{feff}data: a\n\n", ""),
            ("data:a\n\n", "a\n"),
            ("data:  a\n\n", " a\n"),
            ("data: {\ndata: \"a\":1}\n\n", "{ \"a\":1}\n"),
            (": comment\ndata: a\n: more\n\n", "a\n"),
            ("event: x\nid: 1\nretry: 5\ndata: a\n\n", "a\n"),
            ("event: x\n\n", ""),
            ("data\n\n", ""),
            ("data:\n\ndata: a\n\n", "a\n"),
            ("database: a\n\n", ""),
            ("data: \u{e9}\u{1f600}\n\n", "\u{e9}\u{1f600}\n"),
            ("data: no end", "no end\n"),
            ("data: no empty line\n", "no empty line\n"),
            ("\n\n\ndata: a\n\n\n\n", "a\n"),
            ("", ""),
        ];
        for (stream, want) in cases {
            for size in 1..=stream.len().max(1) {
                assert_eq!(
                    lines(stream.as_bytes(), size, 1000),
                    *want,
                    "{stream:?} by {size}"
                );
            }
        }
    }

    #[test]
    fn too_long_event_ends_the_stream_without_being_kept() {
        let long = format!("data: a\n\ndata: {}\n\ndata: b\n\n", "x".repeat(5000));
        for size in [1, 7, 100, long.len()] {
            assert_eq!(lines(long.as_bytes(), size, 1000), "a\ntoo long: true\n");
        }
        let many = format!("data: {}\n", "y".repeat(60)).repeat(100);
        assert_eq!(lines(many.as_bytes(), 10, 1000), "too long: true\n");
        let mut events = SseEvents::new(1000);
        for _ in 0..1000 {
            events.push(&[b'z'; 500]);
            assert!(events.line.capacity() < 4000);
        }
    }

    #[test]
    fn invalid_utf8_is_passed_on() {
        let mut events = SseEvents::new(100);
        let batches = events.push(b"data: \xff\xfe\n\n");
        assert_eq!(batches, [Batch::Lines(Bytes::from_static(b"\xff\xfe\n"))]);
    }
}
