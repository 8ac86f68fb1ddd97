//! Bytes to lines and messages: newline-delimited JSON with a length limit, and `Content-Length` framing.
//!
//! An invalid line never ends the connection: the decoders return it as an item, and return `Err` only for
//! I/O errors.

mod client;
mod sniff;

use bytes::{Buf as _, Bytes, BytesMut};
pub use client::{ClientFrame, ClientFrames};
use memchr::{memchr, memrchr};
pub use sniff::{Sniffed, sniff, sniff_all};
use std::io;
use tokio_util::codec::Decoder;

/// Default maximum length of a line, in bytes.
pub const DEFAULT_MAX_LINE: usize = 64 * 1024 * 1024;

/// Number of bytes kept from the beginning and the end of an overlong line, to find its id and method.
const SNIFF_HEAD: usize = 4096;
const SNIFF_TAIL: usize = 256;

/// UTF-8 byte order mark, which some programs write before their first line.
const BOM: &[u8] = b"\xef\xbb\xbf";

/// Capacity in bytes above which a buffer is considered to have grown for a long line.
const LARGE_CAPACITY: usize = 1 << 20;

/// Frees the memory of an empty buffer that held `before` bytes, if it has grown for a long line; otherwise
/// the buffer would keep it.
pub fn release_memory(buffer: &mut BytesMut, before: usize) {
    if buffer.is_empty() && before.max(buffer.capacity()) > LARGE_CAPACITY {
        *buffer = BytesMut::new();
    }
}

/// Output of [`LineBatches`].
#[derive(Debug, PartialEq)]
pub enum Batch {
    /// One or more complete lines, each ending with `\n`, except perhaps the last one.
    Lines(Bytes),
    /// A line over the length limit.
    TooLong(Overlong),
}

/// Length and ends of a line that was discarded because of its length.
#[derive(Debug, PartialEq)]
pub struct Overlong {
    /// Length of the line in bytes, without its newline.
    pub len: u64,
    /// First bytes of the line, at most 4096.
    pub head: Bytes,
    /// Last bytes of the line, at most 256.
    pub tail: Bytes,
}

/// Decoder that splits an agent's stdout into batches of complete lines.
///
/// All complete lines in the buffer form one item, so that one channel send and one flush serve them all.
#[derive(Debug)]
pub struct LineBatches {
    max: usize,
    /// `true` until the first bytes have arrived; a byte order mark is skipped only there.
    at_start: bool,
    /// Number of bytes at the front of the buffer that are known to contain no newline.
    scanned: usize,
    discarding: Option<Discard>,
}

/// Length and ends of a line or message that is being discarded.
#[derive(Debug, Default)]
struct Discard {
    len: u64,
    head: Vec<u8>,
    tail: Vec<u8>,
}

impl Discard {
    fn record(&mut self, part: &[u8]) {
        self.len += part.len() as u64;
        let room = SNIFF_HEAD - self.head.len();
        self.head.extend_from_slice(&part[..part.len().min(room)]);
        let keep = &part[part.len().saturating_sub(SNIFF_TAIL)..];
        self.tail.extend_from_slice(keep);
        let excess = self.tail.len().saturating_sub(SNIFF_TAIL);
        self.tail.drain(..excess);
    }

    fn finish(self) -> Overlong {
        Overlong {
            len: self.len,
            head: self.head.into(),
            tail: self.tail.into(),
        }
    }
}

impl LineBatches {
    /// Creates a decoder for lines of up to `max` bytes.
    #[must_use]
    pub fn new(max: usize) -> Self {
        Self {
            max,
            at_start: true,
            scanned: 0,
            discarding: None,
        }
    }

    fn discard(&mut self, buf: &mut BytesMut) -> Option<Batch> {
        let discard = self.discarding.as_mut()?;
        if let Some(end) = memchr(b'\n', buf) {
            discard.record(&buf[..end]);
            buf.advance(end + 1);
            let line = self.discarding.take().map(Discard::finish);
            return line.map(Batch::TooLong);
        }
        discard.record(buf);
        buf.clear();
        None
    }
}

impl Decoder for LineBatches {
    type Item = Batch;
    type Error = io::Error;

    fn decode(&mut self, buf: &mut BytesMut) -> io::Result<Option<Batch>> {
        if self.discarding.is_some() {
            return Ok(self.discard(buf));
        }
        if self.at_start && !skip_bom(buf, &mut self.at_start) {
            return Ok(None);
        }
        let newline = memrchr(b'\n', &buf[self.scanned..]);
        let whole = newline.map(|at| self.before_overlong(&buf[..=self.scanned + at]));
        self.scanned = 0;
        match whole {
            Some(0) => {
                self.discarding = Some(Discard::default());
                Ok(self.discard(buf))
            }
            Some(end) => Ok(Some(Batch::Lines(buf.split_to(end).freeze()))),
            None if buf.len() > self.max => {
                self.discarding = Some(Discard::default());
                Ok(self.discard(buf))
            }
            None => {
                self.scanned = buf.len();
                Ok(None)
            }
        }
    }

    fn decode_eof(&mut self, buf: &mut BytesMut) -> io::Result<Option<Batch>> {
        if let Some(batch) = self.decode(buf)? {
            return Ok(Some(batch));
        }
        if let Some(discard) = self.discarding.take() {
            return Ok(Some(Batch::TooLong(discard.finish())));
        }
        self.scanned = 0;
        Ok((!buf.is_empty()).then(|| Batch::Lines(buf.split().freeze())))
    }
}

impl LineBatches {
    /// Length of the lines before the first one over the limit.
    fn before_overlong(&self, whole: &[u8]) -> usize {
        if whole.len() <= self.max {
            return whole.len();
        }
        let mut start = 0;
        for end in memchr::memchr_iter(b'\n', whole) {
            if end - start > self.max {
                return start;
            }
            start = end + 1;
        }
        whole.len()
    }
}

/// Skips a byte order mark at the beginning of a stream; returns `false` if more bytes are needed to decide.
fn skip_bom(buf: &mut BytesMut, at_start: &mut bool) -> bool {
    if buf.len() < BOM.len() && BOM.starts_with(buf) {
        return false;
    }
    if buf.starts_with(BOM) {
        buf.advance(BOM.len());
    }
    *at_start = false;
    true
}

/// A line of a batch.
#[derive(Debug, Clone, Copy)]
pub struct Line<'a> {
    /// The line without its newline.
    pub text: &'a [u8],
    /// Offset of the next line in the batch.
    pub end: usize,
}

/// Iterates over the lines of a batch.
pub fn lines(batch: &[u8]) -> impl Iterator<Item = Line<'_>> {
    lines_from(batch, 0)
}

/// Iterates over the lines of a batch from a position on; the ends of the lines are positions in the whole batch.
pub fn lines_from(batch: &[u8], mut start: usize) -> impl Iterator<Item = Line<'_>> {
    std::iter::from_fn(move || {
        let rest = batch.get(start..).filter(|rest| !rest.is_empty())?;
        let newline = memchr(b'\n', rest);
        let text = &rest[..newline.unwrap_or(rest.len())];
        start += newline.map_or(rest.len(), |at| at + 1);
        Some(Line { text, end: start })
    })
}

/// Framing of messages on a client's connection, detected from the client's first bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// One message per line.
    Lines,
    /// `Content-Length` headers, as in LSP.
    ContentLength,
}

/// Appends a message to `out`; `write` appends its JSON text.
pub fn write_framed(out: &mut Vec<u8>, framing: Framing, write: impl FnOnce(&mut Vec<u8>)) {
    match framing {
        Framing::Lines => {
            write(out);
            out.push(b'\n');
        }
        Framing::ContentLength => {
            let begin = out.len();
            write(out);
            let header = format!("Content-Length: {}\r\n\r\n", out.len() - begin);
            out.splice(begin..begin, header.into_bytes());
        }
    }
}

#[cfg(test)]
mod tests;
