//! Writes the lines of tapes.

use super::{FrameBody, Side, TapeEvent, TapeFrame, TapeHeader, TapeProcess, TapeRecord};
use serde::Serialize;
use std::io::Write as _;
use std::time::Duration;

impl TapeRecord<'_> {
    /// Appends the record as a line, with its line break.
    pub fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Header(header) => header.write(out),
            Self::Frame(frame) => frame.write(out),
            Self::Event(event) => event.write(out),
        }
        out.push(b'\n');
    }
}

impl TapeHeader {
    fn write(&self, out: &mut Vec<u8>) {
        put(out, self);
    }
}

impl TapeFrame<'_> {
    fn write(&self, out: &mut Vec<u8>) {
        time(out, self.at);
        member(out, "dir", &self.direction);
        if self.side != Side::Agent {
            member(out, "side", &self.side);
        }
        self.process.write(out);
        if let Some(cut) = self.cut {
            member(out, "cut", &cut);
        }
        match &self.body {
            FrameBody::Json(json) => {
                out.extend_from_slice(b",\"frame\":");
                // A message with a `Content-Length` may contain line breaks, between its tokens only.
                let breaks = |byte| matches!(byte, b'\n' | b'\r');
                let spaced = json.get().bytes();
                out.extend(spaced.map(|byte| if breaks(byte) { b' ' } else { byte }));
            }
            FrameBody::Text(text) => member(out, "text", text),
        }
        out.push(b'}');
    }
}

impl TapeEvent {
    fn write(&self, out: &mut Vec<u8>) {
        time(out, self.at);
        member(out, "event", &self.kind.name());
        self.process.write(out);
        if !self.command.is_empty() {
            member(out, "command", &self.command);
        }
        optional(out, "code", self.code.as_ref());
        optional(out, "signal", self.signal.as_ref());
        optional(out, "stderr", self.stderr.as_ref());
        optional(out, "frames", self.frames.as_ref());
        out.push(b'}');
    }
}

impl TapeProcess {
    fn write(&self, out: &mut Vec<u8>) {
        optional(out, "agent", self.agent.as_ref());
        optional(out, "child", self.child.as_ref());
    }
}

/// Begins a record with its time, in milliseconds with up to three digits after the point.
fn time(out: &mut Vec<u8>, at: Duration) {
    let (ms, micros) = (at.as_millis(), at.subsec_micros() % 1000);
    // Writing to memory cannot fail.
    let _ = match micros {
        0 => write!(out, "{{\"t_ms\":{ms}"),
        _ => write!(out, "{{\"t_ms\":{ms}.{micros:03}"),
    };
}

fn member(out: &mut Vec<u8>, name: &str, value: &(impl Serialize + ?Sized)) {
    let _ = write!(out, ",\"{name}\":");
    put(out, value);
}

fn optional(out: &mut Vec<u8>, name: &str, value: Option<&impl Serialize>) {
    if let Some(value) = value {
        member(out, name, value);
    }
}

fn put(out: &mut Vec<u8>, value: &(impl Serialize + ?Sized)) {
    let _ = serde_json::to_writer(out, value);
}
