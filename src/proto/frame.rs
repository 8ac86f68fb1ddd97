//! Bytes to lines and messages: newline-delimited JSON with a length cap, and `Content-Length` framing.
//!
//! A bad line is data, never the end of a connection: the decoders return faults as items and keep
//! `Err` for real I/O.

use bytes::{Bytes, BytesMut};
use memchr::{memchr, memrchr};
use std::io;
use tokio_util::codec::Decoder;

/// The longest line that is kept whole unless the user says otherwise, in bytes.
pub const DEFAULT_MAX_LINE: usize = 64 * 1024 * 1024;

/// How much of the beginning and end of an over-long line is kept to find out what it was.
const SNIFF_HEAD: usize = 4096;
const SNIFF_TAIL: usize = 256;

/// A buffer that is larger grew for a long line, in bytes.
const GROWN: usize = 1 << 20;

/// Gives the memory back of an empty buffer that held `before` bytes: it would stay with it.
pub fn give_back(buffer: &mut BytesMut, before: usize) {
    if buffer.is_empty() && before.max(buffer.capacity()) > GROWN {
        *buffer = BytesMut::new();
    }
}

/// What a run of bytes from an agent turned out to be.
#[derive(Debug, PartialEq)]
pub enum Batch {
    /// One or more whole lines, each but perhaps the last ended by `\n`.
    Lines(Bytes),
    /// A line over the cap: its length and what is left of it.
    TooLong(Overlong),
}

/// The remains of a line that was discarded because of its length.
#[derive(Debug, PartialEq)]
pub struct Overlong {
    /// Length of the line without its newline, in bytes.
    pub len: u64,
    /// The first bytes.
    pub head: Bytes,
    /// The last bytes; empty when they were not seen.
    pub tail: Bytes,
}

/// Splits an agent's stdout into batches of whole lines.
///
/// All whole lines in the buffer come out as one item, so that one hop and one flush serve them all.
#[derive(Debug)]
pub struct LineBatches {
    max: usize,
    /// Bytes at the front of the buffer known to hold no newline.
    scanned: usize,
    discarding: Option<Discard>,
}

#[derive(Debug)]
struct Discard {
    len: u64,
    head: Bytes,
    tail: Vec<u8>,
}

impl Discard {
    fn swallow(&mut self, part: &[u8]) {
        self.len += part.len() as u64;
        let keep = &part[part.len().saturating_sub(SNIFF_TAIL)..];
        self.tail.extend_from_slice(keep);
        let excess = self.tail.len().saturating_sub(SNIFF_TAIL);
        self.tail.drain(..excess);
    }

    fn finish(self) -> Batch {
        Batch::TooLong(Overlong {
            len: self.len,
            head: self.head,
            tail: self.tail.into(),
        })
    }
}

impl LineBatches {
    /// A splitter that keeps lines of up to `max` bytes.
    #[must_use]
    pub fn new(max: usize) -> Self {
        Self {
            max,
            scanned: 0,
            discarding: None,
        }
    }

    fn discard(&mut self, buf: &mut BytesMut) -> Option<Batch> {
        let discard = self.discarding.as_mut()?;
        if let Some(end) = memchr(b'\n', buf) {
            discard.swallow(&buf[..end]);
            bytes::Buf::advance(buf, end + 1);
            return self.discarding.take().map(Discard::finish);
        }
        discard.swallow(buf);
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
        let newline = memrchr(b'\n', &buf[self.scanned..]);
        let whole = newline.map(|at| self.before_overlong(&buf[..=self.scanned + at]));
        self.scanned = 0;
        match whole {
            Some(0) => {
                self.start_discard(buf);
                Ok(self.discard(buf))
            }
            Some(end) => Ok(Some(Batch::Lines(buf.split_to(end).freeze()))),
            None if buf.len() > self.max => {
                self.start_discard(buf);
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
            return Ok(Some(discard.finish()));
        }
        self.scanned = 0;
        Ok((!buf.is_empty()).then(|| Batch::Lines(buf.split().freeze())))
    }
}

impl LineBatches {
    /// Length of the lines before the first one over the cap.
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

    fn start_discard(&mut self, buf: &BytesMut) {
        let line_end = memchr(b'\n', buf).unwrap_or(buf.len());
        self.discarding = Some(Discard {
            len: 0,
            head: Bytes::copy_from_slice(&buf[..line_end.min(SNIFF_HEAD)]),
            tail: Vec::new(),
        });
    }
}

/// A line of a batch.
#[derive(Debug, Clone, Copy)]
pub struct Line<'a> {
    /// The line without its newline.
    pub text: &'a [u8],
    /// Where the next line begins in the batch.
    pub end: usize,
}

/// The lines of a batch.
pub fn lines(batch: &[u8]) -> impl Iterator<Item = Line<'_>> {
    let mut start = 0;
    std::iter::from_fn(move || {
        let rest = batch.get(start..).filter(|rest| !rest.is_empty())?;
        let newline = memchr(b'\n', rest);
        let text = &rest[..newline.unwrap_or(rest.len())];
        start += newline.map_or(rest.len(), |at| at + 1);
        Some(Line { text, end: start })
    })
}

/// How a client frames its messages; acpipe answers in kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// One message a line.
    Lines,
    /// `Content-Length` headers, as LSP clients use them.
    ContentLength,
}

/// One message from the client, or the reason why there is none.
#[derive(Debug, PartialEq)]
pub enum ClientFrame {
    /// The bytes of one JSON text.
    Message(Bytes),
    /// A message over the cap, skipped.
    TooLong(u64),
    /// A header block without a usable `Content-Length`, skipped.
    BadHeader(String),
}

/// Splits the client's stdin into messages; the first bytes decide the framing.
#[derive(Debug)]
pub struct ClientFrames {
    max: usize,
    framing: Option<Framing>,
    lines: LineBatches,
    ready: Bytes,
    skip: u64,
}

impl ClientFrames {
    /// A splitter that keeps messages of up to `max` bytes.
    #[must_use]
    pub fn new(max: usize) -> Self {
        Self {
            max,
            framing: None,
            lines: LineBatches::new(max),
            ready: Bytes::new(),
            skip: 0,
        }
    }

    /// The framing in use; lines until the first bytes are in.
    #[must_use]
    pub fn framing(&self) -> Framing {
        self.framing.unwrap_or(Framing::Lines)
    }

    fn detect(&mut self, buf: &BytesMut) {
        const HEADER: &[u8] = b"content-";
        let start = buf.iter().position(|b| !b.is_ascii_whitespace());
        let Some(start) = start else { return };
        let first = &buf[start..];
        let n = first.len().min(HEADER.len());
        if first[..n].eq_ignore_ascii_case(&HEADER[..n]) {
            if n == HEADER.len() {
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
                bytes::Buf::advance(&mut self.ready, 1);
            }
            if self.ready.is_empty() {
                // Else it would keep the memory of the line.
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
                Some(Batch::TooLong(line)) => return Ok(Some(ClientFrame::TooLong(line.len))),
                None => return Ok(None),
            }
        }
    }

    fn decode_headers(&mut self, buf: &mut BytesMut) -> Option<ClientFrame> {
        let skipped = self.skip.min(buf.len() as u64);
        bytes::Buf::advance(buf, usize::try_from(skipped).unwrap_or(buf.len()));
        self.skip -= skipped;
        while buf.first().is_some_and(u8::is_ascii_whitespace) {
            bytes::Buf::advance(buf, 1);
        }
        let blank = |line: &[u8]| memchr::memmem::find(buf, line).map(|at| (at, at + line.len()));
        // Whichever comes first: the other may stand in the body, or in the next message.
        let Some((head, body)) = [blank(b"\r\n\r\n"), blank(b"\n\n")]
            .into_iter()
            .flatten()
            .min()
        else {
            if buf.len() > SNIFF_HEAD {
                buf.clear();
                return Some(ClientFrame::BadHeader("header block without an end".into()));
            }
            return None;
        };
        let Some(len) = content_length(&buf[..head]) else {
            let header = String::from_utf8_lossy(&buf[..head]).into_owned();
            bytes::Buf::advance(buf, body);
            return Some(ClientFrame::BadHeader(header));
        };
        if len > self.max as u64 {
            bytes::Buf::advance(buf, body);
            self.skip = len;
            return Some(ClientFrame::TooLong(len));
        }
        let len = usize::try_from(len).unwrap_or(self.max);
        if buf.len() < body + len {
            buf.reserve(body + len - buf.len());
            return None;
        }
        bytes::Buf::advance(buf, body);
        Some(ClientFrame::Message(buf.split_to(len).freeze()))
    }
}

impl Decoder for ClientFrames {
    type Item = ClientFrame;
    type Error = io::Error;

    fn decode(&mut self, buf: &mut BytesMut) -> io::Result<Option<ClientFrame>> {
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
            None => {
                let cut = !buf.is_empty() && self.skip == 0;
                buf.clear();
                Ok(cut.then(|| ClientFrame::BadHeader("input ended inside a message".into())))
            }
        }
    }
}

fn content_length(head: &[u8]) -> Option<u64> {
    std::str::from_utf8(head).ok()?.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.trim()
            .eq_ignore_ascii_case("content-length")
            .then(|| value.trim().parse().ok())?
    })
}

/// Appends one message to `out`; `write` appends its JSON text.
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
