//! Decoder for a client's stdin: one message per line, or messages with `Content-Length` headers as in LSP.

use super::{Batch, Discard, Framing, LineBatches, Overlong, SNIFF_HEAD, skip_bom};
use bytes::{Buf as _, Bytes, BytesMut};
use memchr::{memchr, memchr_iter};
use std::io;
use tokio_util::codec::Decoder;

/// Maximum length of a header block, in bytes.
const HEADER: usize = SNIFF_HEAD;

/// Maximum length of a `Content-Length` line that is searched for in skipped bytes.
const LENGTH_LINE: usize = 64;

/// Maximum plausible `Content-Length`: a larger one is an error of the client and is rejected before its body
/// arrives.
const PLAUSIBLE: u64 = 1 << 32;

/// A message from the client, or a framing error.
#[derive(Debug, PartialEq)]
pub enum ClientFrame {
    /// Bytes of one JSON text.
    Message(Bytes),
    /// A message over the length limit, which was skipped.
    TooLong(Overlong),
    /// A header block without a valid `Content-Length`, which was skipped; the text for the error.
    BadHeader(String),
}

/// Decoder that splits the client's stdin into messages; the first bytes determine the framing.
#[derive(Debug)]
pub struct ClientFrames {
    max: usize,
    framing: Option<Framing>,
    /// `true` until the first bytes have arrived; a byte order mark is skipped only there.
    at_start: bool,
    lines: LineBatches,
    ready: Bytes,
    skip: Option<SkippedBytes>,
}

/// Bytes to skip: at most `left`, and never beyond the next `Content-Length` line, since no JSON text
/// contains such a line.
#[derive(Debug)]
struct SkippedBytes {
    left: u64,
    /// Overlong message to report at the end; `None` if the bytes were already reported.
    discard: Option<Discard>,
}

impl ClientFrames {
    /// Creates a decoder for messages of up to `max` bytes.
    #[must_use]
    pub fn new(max: usize) -> Self {
        Self {
            max,
            framing: None,
            at_start: true,
            lines: LineBatches::new(max),
            ready: Bytes::new(),
            skip: None,
        }
    }

    /// Returns the framing in use; `Lines` until the first bytes have arrived.
    #[must_use]
    pub fn framing(&self) -> Framing {
        self.framing.unwrap_or(Framing::Lines)
    }

    fn detect(&mut self, buf: &BytesMut) {
        const NAME: &[u8] = b"content-";
        let start = buf.iter().position(|b| !b.is_ascii_whitespace());
        let Some(start) = start else { return };
        let first = &buf[start..];
        let n = first.len().min(NAME.len());
        if first[..n].eq_ignore_ascii_case(&NAME[..n]) {
            if n == NAME.len() {
                self.framing = Some(Framing::ContentLength);
            }
        } else {
            self.framing = Some(Framing::Lines);
        }
    }

    fn next_line(&mut self) -> Option<ClientFrame> {
        while !self.ready.is_empty() {
            let end = memchr(b'\n', &self.ready);
            let line = self.ready.split_to(end.unwrap_or(self.ready.len()));
            if end.is_some() {
                self.ready.advance(1);
            }
            if self.ready.is_empty() {
                // Otherwise the empty `Bytes` would keep the line's memory.
                self.ready = Bytes::new();
            }
            if !line.trim_ascii().is_empty() {
                return Some(ClientFrame::Message(line));
            }
        }
        None
    }

    fn decode_lines(&mut self, buf: &mut BytesMut, eof: bool) -> io::Result<Option<ClientFrame>> {
        loop {
            if let Some(frame) = self.next_line() {
                return Ok(Some(frame));
            }
            let batch = if eof {
                self.lines.decode_eof(buf)?
            } else {
                self.lines.decode(buf)?
            };
            match batch {
                Some(Batch::Lines(lines)) => self.ready = lines,
                Some(Batch::TooLong(line)) => return Ok(Some(ClientFrame::TooLong(line))),
                None => return Ok(None),
            }
        }
    }

    fn decode_headers(&mut self, buf: &mut BytesMut) -> Option<ClientFrame> {
        if self.skip.is_some() {
            let skipped = self.skip(buf);
            if skipped.is_some() || self.skip.is_some() {
                return skipped;
            }
        }
        while buf.first().is_some_and(u8::is_ascii_whitespace) {
            buf.advance(1);
        }
        let Some((head, body)) = blank_line(&buf[..buf.len().min(HEADER)]) else {
            if buf.len() < HEADER {
                return None;
            }
            // Otherwise the next call would find the same block again.
            buf.advance(1);
            self.skip = Some(SkippedBytes {
                left: u64::MAX,
                discard: None,
            });
            return Some(ClientFrame::BadHeader("header block without an end".into()));
        };
        let lengths = content_lengths(&buf[..head]);
        // Bytes that belong to no message may precede a header.
        let is_block = starts_with_header(&buf[..head]);
        let later = length_line(&buf[1..body]).filter(|_| lengths.is_empty() || !is_block);
        let len = lengths.first().copied().flatten();
        let len = len.filter(|len| lengths.iter().all(|other| *other == Some(*len)));
        let len = len.filter(|_| later.is_none());
        let Some(len) = len else {
            let end = later.map_or(head, |at| at + 1);
            let header = text(&buf[..end]);
            buf.advance(later.map_or(body, |_| end));
            return Some(ClientFrame::BadHeader(header));
        };
        if len > self.max as u64 {
            let refused = (len > PLAUSIBLE).then(|| ClientFrame::BadHeader(text(&buf[..head])));
            buf.advance(body);
            let discard = refused.is_none().then(Discard::default);
            self.skip = Some(SkippedBytes { left: len, discard });
            return refused.or_else(|| self.skip(buf));
        }
        let len = usize::try_from(len).unwrap_or(self.max);
        if buf.len() < body + len {
            buf.reserve(body + len - buf.len());
            return None;
        }
        buf.advance(body);
        Some(ClientFrame::Message(buf.split_to(len).freeze()))
    }

    /// Skips the bytes in the buffer that are to be skipped; returns an overlong message once all of it is
    /// skipped.
    fn skip(&mut self, buf: &mut BytesMut) -> Option<ClientFrame> {
        let skip = self.skip.as_mut()?;
        let within = usize::try_from(skip.left).map_or(buf.len(), |left| left.min(buf.len()));
        let is_end = within as u64 == skip.left;
        let (take, done) = match length_line(&buf[..within]) {
            Some(at) => (at, true),
            None if is_end => (within, true),
            // The last bytes may be the beginning of such a line.
            None => (within.saturating_sub(LENGTH_LINE), false),
        };
        if let Some(discard) = &mut skip.discard {
            discard.record(&buf[..take]);
        }
        buf.advance(take);
        skip.left -= take as u64;
        if !done {
            return None;
        }
        let discard = self.skip.take()?.discard?;
        Some(ClientFrame::TooLong(discard.finish()))
    }

    /// Returns the item for an incomplete message with headers at the end of the input.
    fn headers_end(&mut self, buf: &mut BytesMut) -> Option<ClientFrame> {
        let rest = buf.split();
        if let Some(skip) = self.skip.take() {
            let mut discard = skip.discard?;
            discard.record(&rest);
            return Some(ClientFrame::TooLong(discard.finish()));
        }
        let cut = !rest.is_empty();
        cut.then(|| ClientFrame::BadHeader("input ended inside a message".into()))
    }
}

impl Decoder for ClientFrames {
    type Item = ClientFrame;
    type Error = io::Error;

    fn decode(&mut self, buf: &mut BytesMut) -> io::Result<Option<ClientFrame>> {
        if self.at_start && !skip_bom(buf, &mut self.at_start) {
            return Ok(None);
        }
        if self.framing.is_none() {
            self.detect(buf);
        }
        match self.framing {
            None => Ok(None),
            Some(Framing::Lines) => self.decode_lines(buf, false),
            Some(Framing::ContentLength) => Ok(self.decode_headers(buf)),
        }
    }

    fn decode_eof(&mut self, buf: &mut BytesMut) -> io::Result<Option<ClientFrame>> {
        match self.decode(buf)? {
            Some(frame) => Ok(Some(frame)),
            None if self.framing() == Framing::Lines => self.decode_lines(buf, true),
            None => Ok(self.headers_end(buf)),
        }
    }
}

/// Text of a header block, for the error.
fn text(header: &[u8]) -> String {
    String::from_utf8_lossy(header).trim_end().to_owned()
}

/// Offsets of the end of a header block and of the beginning of its body. Line endings may be `\n` or `\r\n`,
/// also mixed.
fn blank_line(bytes: &[u8]) -> Option<(usize, usize)> {
    memchr_iter(b'\n', bytes).find_map(|at| match &bytes[at + 1..] {
        [b'\n', ..] => Some((at, at + 2)),
        [b'\r', b'\n', ..] => Some((at, at + 3)),
        _ => None,
    })
}

/// Whether the first line is a header: name, colon, value.
fn starts_with_header(block: &[u8]) -> bool {
    let name = block.split(|b| *b == b':').next().unwrap_or_default();
    let is_name = |b: &u8| b.is_ascii_alphanumeric() || b"-_ \t".contains(b);
    name.len() < block.len() && name.iter().all(is_name)
}

/// Lengths in a header block; `None` for each that is not a number.
fn content_lengths(head: &[u8]) -> Vec<Option<u64>> {
    let head = String::from_utf8_lossy(head);
    let lengths = head.lines().filter_map(|line| {
        let (name, value) = line.split_once(':')?;
        let is_length = name.trim().eq_ignore_ascii_case("content-length");
        let digits = value.trim();
        let is_number = digits.bytes().all(|b| b.is_ascii_digit());
        is_length.then(|| digits.parse().ok().filter(|_| is_number))
    });
    lengths.collect()
}

/// Offset of the first complete `Content-Length` line.
fn length_line(bytes: &[u8]) -> Option<usize> {
    const NAME: &[u8] = b"content-length";
    let begin = |end: usize| {
        let line = &bytes[end.saturating_sub(LENGTH_LINE)..end];
        let name = before_digits(line.trim_ascii_end())?.trim_ascii_end();
        let name = name.strip_suffix(b":")?.trim_ascii_end();
        let at = name.len().checked_sub(NAME.len())?;
        let is_length = name[at..].eq_ignore_ascii_case(NAME);
        is_length.then(|| end - line.len() + at)
    };
    memchr_iter(b'\n', bytes).find_map(begin)
}

/// Bytes before the trailing digits; `None` if there are no trailing digits.
fn before_digits(bytes: &[u8]) -> Option<&[u8]> {
    let before = bytes.iter().rposition(|b| !b.is_ascii_digit())? + 1;
    (before < bytes.len()).then(|| &bytes[..before])
}
