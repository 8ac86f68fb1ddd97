//! Thread of a recorder: splits messages into frames, redacts and shortens them, and writes the tape.

use super::{RecorderCounters, RecorderEntry, RedactLine};
use acpipe_json::frame::{ClientFrame, ClientFrames, lines};
use acpipe_json::{shortened_raw, to_raw};
use acpipe_model::cut::CUT;
use acpipe_model::secret::Sender;
use acpipe_protocol::tape::{
    Direction, EventKind, FrameBody, Side, TapeEvent, TapeFrame, TapeHeader, TapeProcess,
    TapeRecord, VERSION,
};
use bytes::{Bytes, BytesMut};
use serde_json::value::RawValue;
use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Receiver;
use std::time::Duration;
use tokio_util::codec::Decoder as _;
use tracing::warn;

/// Maximum length of a frame in bytes; a longer one is shortened.
pub const MAX_FRAME: usize = 1 << 20;

/// Writer of a tape.
pub struct TapeWriter {
    out: BufWriter<File>,
    /// Number of bytes that may still be written.
    room: u64,
    redact: RedactLine,
    counters: Arc<RecorderCounters>,
    line: Vec<u8>,
    /// Time of the last entry.
    last: Duration,
}

/// Time and place of a frame.
#[derive(Clone, Copy)]
struct FrameOrigin<'a> {
    at: Duration,
    side: Side,
    direction: Direction,
    process: Option<&'a TapeProcess>,
}

impl TapeWriter {
    /// Writes the first line.
    pub fn begin(
        file: File,
        limit: u64,
        redact: RedactLine,
        counters: Arc<RecorderCounters>,
    ) -> io::Result<Self> {
        let mut writer = Self {
            out: BufWriter::with_capacity(64 * 1024, file),
            room: limit,
            redact,
            counters,
            line: Vec::new(),
            last: Duration::ZERO,
        };
        let header = TapeRecord::Header(TapeHeader {
            tape: VERSION,
            acpipe: Some(env!("CARGO_PKG_VERSION").to_owned()),
            started_at: Some(jiff::Timestamp::now().to_string()),
        });
        header.write(&mut writer.line);
        writer.out.write_all(&writer.line)?;
        writer.out.flush()?;
        Ok(writer)
    }

    /// Writes entries until the end.
    pub fn run(&mut self, queue: &Receiver<RecorderEntry>) {
        loop {
            let Some(entry) = self.next(queue) else {
                return;
            };
            self.note_dropped(&entry);
            let len = entry.len();
            let is_end = matches!(entry, RecorderEntry::End);
            self.entry(entry);
            self.counters.queued_bytes.fetch_sub(len, Ordering::Relaxed);
            if is_end {
                let flushed = self.out.flush();
                self.check(flushed);
                return;
            }
        }
    }

    /// Returns the next entry; `None` if there will be none.
    fn next(&mut self, queue: &Receiver<RecorderEntry>) -> Option<RecorderEntry> {
        if let Ok(entry) = queue.try_recv() {
            return Some(entry);
        }
        // Whatever ends acpipe later, the tape has all that came before.
        let flushed = self.out.flush();
        self.check(flushed);
        queue.recv().ok()
    }

    /// Records how many frames were dropped before an entry was queued.
    fn note_dropped(&mut self, next: &RecorderEntry) {
        self.last = match next {
            RecorderEntry::Frames { at, .. } | RecorderEntry::Overlong { at, .. } => *at,
            RecorderEntry::Event(event) => event.at,
            RecorderEntry::End => self.last,
        };
        let dropped = self.counters.dropped.swap(0, Ordering::Relaxed);
        if dropped > 0 {
            self.record(&TapeRecord::Event(TapeEvent {
                at: self.last,
                frames: Some(dropped),
                ..TapeEvent::of(EventKind::Dropped)
            }));
        }
    }

    fn entry(&mut self, entry: RecorderEntry) {
        if self.counters.is_full.load(Ordering::Relaxed) {
            return;
        }
        match entry {
            RecorderEntry::Frames {
                at,
                side,
                direction,
                process,
                bytes,
            } => {
                let place = FrameOrigin {
                    at,
                    side,
                    direction,
                    process: process.as_deref(),
                };
                match side {
                    Side::Agent => {
                        for line in lines(&bytes) {
                            self.frame(place, line.text, None);
                        }
                    }
                    Side::Client => self.messages(place, &bytes),
                }
            }
            RecorderEntry::Overlong {
                at,
                process,
                head,
                tail,
                len,
            } => {
                let place = FrameOrigin {
                    at,
                    side: Side::Agent,
                    direction: Direction::In,
                    process: process.as_deref(),
                };
                self.frame(place, &ends(&head, &tail), Some(len));
            }
            RecorderEntry::Event(event) => {
                let command = event.command.iter().map(|word| self.hidden(word)).collect();
                let stderr = event.stderr.as_deref().map(|text| self.hidden(text));
                self.record(&TapeRecord::Event(TapeEvent {
                    command,
                    stderr,
                    ..event
                }));
            }
            RecorderEntry::End => {}
        }
    }

    /// Writes messages of the client's side, in the framing in which they were sent.
    fn messages(&mut self, place: FrameOrigin<'_>, bytes: &Bytes) {
        let mut frames = ClientFrames::new(usize::MAX);
        let mut rest = BytesMut::from(&bytes[..]);
        while let Ok(Some(frame)) = frames.decode_eof(&mut rest) {
            if let ClientFrame::Message(message) = frame {
                self.frame(place, &message, None);
            }
        }
    }

    fn frame(&mut self, place: FrameOrigin<'_>, line: &[u8], cut: Option<u64>) {
        let line = String::from_utf8_lossy(line);
        let line = line.trim();
        if line.is_empty() {
            return;
        }
        let sender = match (place.side, place.direction) {
            (Side::Client, Direction::In) => Sender::Client,
            _ => Sender::Other,
        };
        let shown = (self.redact)(line, sender);
        let json: Option<&RawValue> = shown
            .starts_with(['{', '['])
            .then(|| serde_json::from_str(&shown).ok())
            .flatten();
        let short;
        let (body, cut) = match json {
            Some(json) if shown.len() <= MAX_FRAME => (FrameBody::Json(json), cut),
            Some(json) => {
                short = to_raw(&shortened_raw(json, MAX_FRAME));
                (FrameBody::Json(&short), Some(line.len() as u64))
            }
            None if shown.len() <= MAX_FRAME => (FrameBody::Text(shown), cut),
            None => {
                let end = (0..=MAX_FRAME).rfind(|&at| shown.is_char_boundary(at));
                let clipped = shown[..end.unwrap_or(0)].to_owned();
                (FrameBody::Text(clipped), Some(line.len() as u64))
            }
        };
        self.record(&TapeRecord::Frame(TapeFrame {
            at: place.at,
            side: place.side,
            direction: place.direction,
            process: place.process.cloned().unwrap_or_default(),
            body,
            cut,
        }));
    }

    fn hidden(&self, text: &str) -> String {
        (self.redact)(text, Sender::Other)
    }

    fn record(&mut self, record: &TapeRecord<'_>) {
        if self.counters.is_full.load(Ordering::Relaxed) {
            return;
        }
        self.line.clear();
        record.write(&mut self.line);
        let len = self.line.len() as u64;
        if len > self.room {
            warn!("the tape is full; later frames are not recorded");
            self.stop();
            self.line.clear();
            let full = TapeEvent {
                at: self.last,
                ..TapeEvent::of(EventKind::Full)
            };
            TapeRecord::Event(full).write(&mut self.line);
        } else {
            self.room -= len;
        }
        let written = self.out.write_all(&self.line);
        self.check(written);
    }

    fn check(&mut self, written: io::Result<()>) {
        if let Err(error) = written
            && !self.counters.is_full.load(Ordering::Relaxed)
        {
            warn!(%error, "cannot write the tape; later frames are not recorded");
            self.stop();
        }
    }

    fn stop(&self) {
        self.counters.is_full.store(true, Ordering::Relaxed);
    }
}

/// Joins the ends of a line, each cut between words.
fn ends(head: &[u8], tail: &[u8]) -> Vec<u8> {
    let is_between = |byte: &u8| matches!(byte, b'"' | b',' | b' ');
    let head = &head[..head.iter().rposition(is_between).unwrap_or(0)];
    let tail = &tail[tail.iter().position(is_between).unwrap_or(tail.len())..];
    [head, CUT.as_bytes(), tail].concat()
}
