//! Reader of acpipe's output, which splits it into messages.

use super::server::Framing;
use std::io::{BufRead, BufReader, Read};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Condvar, Mutex};

/// Flag that pauses the reader while it is `false`.
pub type Gate = Arc<(Mutex<bool>, Condvar)>;

pub enum Input {
    Message(String),
    /// Invalid framing or text: the test fails.
    Fault(String),
    Eof,
}

/// Reader that blocks while its gate is closed.
pub struct GatedReader<R> {
    pub from: R,
    pub gate: Gate,
}

impl<R: Read> Read for GatedReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let mut open = self.gate.0.lock().unwrap();
        while !*open {
            open = self.gate.1.wait(open).unwrap();
        }
        drop(open);
        self.from.read(buffer)
    }
}

/// Sends every message until the end of the output or the first fault.
pub fn read_all(stdout: impl Read, framing: Framing, sender: &Sender<Input>) {
    let mut stdout = BufReader::new(stdout);
    loop {
        let input = match framing {
            Framing::Lines => read_line(&mut stdout),
            Framing::ContentLength => read_headed(&mut stdout),
        };
        let last = !matches!(input, Input::Message(_));
        if sender.send(input).is_err() || last {
            return;
        }
    }
}

fn read_line(stdout: &mut impl BufRead) -> Input {
    let mut line = Vec::new();
    match stdout.read_until(b'\n', &mut line) {
        Ok(0) | Err(_) => Input::Eof,
        Ok(_) if line.pop() != Some(b'\n') => Input::Fault(format!(
            "a line without end: {}",
            String::from_utf8_lossy(&line)
        )),
        Ok(_) => text(line),
    }
}

fn read_headed(stdout: &mut impl BufRead) -> Input {
    let mut length = None;
    loop {
        let mut line = String::new();
        match stdout.read_line(&mut line) {
            Ok(0) if length.is_none() => return Input::Eof,
            Ok(n) if n > 0 && line.ends_with("\r\n") => {}
            other => return Input::Fault(format!("no header: {other:?} {line:?}")),
        }
        match (line.trim_end().split_once(": "), length) {
            (Some(("Content-Length", n)), None) => length = n.parse().ok(),
            (None, Some(n)) if line == "\r\n" => {
                let mut body = vec![0; n];
                return match stdout.read_exact(&mut body) {
                    Ok(()) => text(body),
                    Err(e) => Input::Fault(format!("a body cut short: {e}")),
                };
            }
            _ => return Input::Fault(format!("no header: {line:?}")),
        }
    }
}

fn text(bytes: Vec<u8>) -> Input {
    match String::from_utf8(bytes) {
        Ok(text) if !text.contains('\n') => Input::Message(text),
        other => Input::Fault(format!("not one line of UTF-8: {other:?}")),
    }
}
