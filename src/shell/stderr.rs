//! The stderr of an agent: its tail is kept for errors, its lines are logged.

use super::health::LiveHealth;
use crate::core::cut::CUT;
use crate::core::secret::KeyLines;
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe::Receiver;
use tracing::{Level, debug, enabled};

/// Maximum length of a log line in bytes.
const LINE: usize = 8 * 1024;

/// stderr of a process.
#[derive(Debug)]
pub struct Stderr {
    from: Option<Receiver>,
    /// Text that was read but not logged yet.
    lines: Vec<u8>,
    /// `true` if the last piece that was logged is the beginning of a longer line.
    is_cut: bool,
    /// Whether the next line that is logged belongs to a private key.
    key: KeyLines,
    health: LiveHealth,
}

impl Stderr {
    /// Creates a reader that stores the tail in `health`.
    pub fn new(from: Receiver, health: LiveHealth) -> Self {
        Self {
            from: Some(from),
            lines: Vec::new(),
            is_cut: false,
            key: KeyLines::default(),
            health,
        }
    }

    /// Returns `true` until stderr is closed.
    pub fn is_open(&self) -> bool {
        self.from.is_some()
    }

    /// Closes stderr and logs the rest.
    pub fn close(&mut self) {
        self.from = None;
        self.log(true);
    }

    /// Reads more; closes stderr at its end.
    pub async fn read(&mut self) {
        let Some(from) = &mut self.from else { return };
        let before = self.lines.len();
        let n = from.read_buf(&mut self.lines).await.unwrap_or(0);
        if n == 0 {
            return self.close();
        }
        self.health.add_stderr(&self.lines[before..]);
        self.log(false);
    }

    /// Logs complete lines, or all text if `all` is set. Incomplete lines wait because redaction needs
    /// secrets in one piece; a long line has marks where it is cut.
    fn log(&mut self, all: bool) {
        if !enabled!(target: "acpipe::agent_stderr", Level::DEBUG) {
            self.lines.clear();
            return;
        }
        let mut logged = 0;
        while let Some(line) = next_line(&self.lines[logged..], all) {
            let piece = &self.lines[logged..logged + line];
            let text = String::from_utf8_lossy(piece);
            let before = if self.is_cut { CUT } else { "" };
            self.is_cut = line == LINE && !piece.ends_with(b"\n");
            let after = if self.is_cut { CUT } else { "" };
            let shown = self.key.hide(text.trim_end());
            debug!(target: "acpipe::agent_stderr", "{before}{shown}{after}");
            logged += line;
        }
        self.lines.drain(..logged);
    }
}

/// Returns the length of the next piece to log; `None` if the line is incomplete.
fn next_line(text: &[u8], all: bool) -> Option<usize> {
    let whole = memchr::memchr(b'\n', text).map(|at| at + 1);
    let rest = (all && !text.is_empty()).then_some(text.len());
    let line = whole.or(rest).or((text.len() >= LINE).then_some(LINE))?;
    Some(line.min(LINE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stderr_lines_are_logged_when_complete() {
        let long = vec![b'x'; LINE + 5];
        let cases: [(&[u8], bool, Option<usize>); 8] = [
            (b"", false, None),
            (b"", true, None),
            (b"half", false, None),
            (b"half", true, Some(4)),
            (b"one\ntwo", false, Some(4)),
            (b"\n", false, Some(1)),
            (&long, false, Some(LINE)),
            (&long[..LINE - 1], false, None),
        ];
        for (text, all, want) in cases {
            assert_eq!(next_line(text, all), want, "{}", text.len());
        }
    }
}
