//! The stderr of an agent: its tail is kept for errors, its lines are logged. Lines of private keys are hidden here, before
//! anything else sees them: of a tail or a single line, no later reader knows that it belongs to a key.

use super::health::LiveHealth;
use acpipe_model::cut::CUT;
use acpipe_model::secret::KeyLines;
use std::borrow::Cow;
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe::Receiver;
use tracing::{Level, debug, enabled};

/// Maximum length of a log line in bytes.
const LINE: usize = 8 * 1024;

/// stderr of a process.
#[derive(Debug)]
pub struct Stderr {
    from: Option<Receiver>,
    /// Text that was read and does not end a line yet.
    lines: Vec<u8>,
    /// Number of bytes at the beginning of `lines` that the tail has.
    in_tail: usize,
    /// `true` if the last piece that was logged is the beginning of a longer line.
    is_cut: bool,
    /// Knows if the next line belongs to a private key.
    key: KeyLines,
    health: LiveHealth,
}

impl Stderr {
    /// Creates a reader that stores the tail in `health`.
    pub fn new(from: Receiver, health: LiveHealth) -> Self {
        Self {
            from: Some(from),
            lines: Vec::new(),
            in_tail: 0,
            is_cut: false,
            key: KeyLines::default(),
            health,
        }
    }

    /// Returns `true` until stderr is closed.
    pub fn is_open(&self) -> bool {
        self.from.is_some()
    }

    /// Closes stderr and takes the rest.
    pub fn close(&mut self) {
        self.from = None;
        self.take(true);
    }

    /// Reads more; closes stderr at its end.
    pub async fn read(&mut self) {
        let Some(from) = &mut self.from else { return };
        let n = from.read_buf(&mut self.lines).await.unwrap_or(0);
        if n == 0 {
            return self.close();
        }
        self.take(false);
    }

    /// Adds the text to the tail and logs complete lines, or all text if `all` is set. Incomplete lines are not logged because
    /// redaction needs secrets in one piece; a long line has marks where it is cut. The tail gets them, since a process that
    /// waits may have written a question, but not in a private key.
    fn take(&mut self, all: bool) {
        let is_logged = enabled!(target: "acpipe::agent_stderr", Level::DEBUG);
        let mut tail = Vec::new();
        let mut taken = 0;
        while let Some(line) = next_line(&self.lines[taken..], all) {
            let piece = &self.lines[taken..taken + line];
            let text = String::from_utf8_lossy(piece);
            let (text, end) = text.split_at(text.trim_end().len());
            let shown = self.key.hide(text);
            match &shown {
                Cow::Borrowed(_) => tail.extend(&piece[self.in_tail..]),
                Cow::Owned(shown) => tail.extend([shown.as_bytes(), end.as_bytes()].concat()),
            }
            self.in_tail = 0;
            let before = if self.is_cut { CUT } else { "" };
            self.is_cut = line == LINE && !piece.ends_with(b"\n");
            let after = if self.is_cut { CUT } else { "" };
            if is_logged {
                debug!(target: "acpipe::agent_stderr", "{before}{shown}{after}");
            }
            taken += line;
        }
        self.lines.drain(..taken);
        if !self.key.is_inside() {
            tail.extend(&self.lines[self.in_tail..]);
            self.in_tail = self.lines.len();
        }
        self.health.add_stderr(&tail);
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
    use tokio::io::AsyncWriteExt as _;
    use tokio::net::unix::pipe::pipe;

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

    #[tokio::test]
    async fn lines_of_private_keys_are_hidden_in_the_tail() {
        let line = "c2Vjb25kTGluZU9mVGhlS2V5";
        let health = LiveHealth::default();
        let (mut to, from) = pipe().unwrap();
        let mut stderr = Stderr::new(from, health.clone());
        let mut expected = String::new();
        for (written, shown) in [
            ("12:00 -----BEGIN RSA", "12:00 -----BEGIN RSA"),
            (" PRIVATE KEY-----\n12:01 c2Vj", " PRIVATE KEY-----\n"),
            ("b25kTGluZU9mVGhlS2V5\n", "12:01 [hidden]\n"),
            ("-----END CERTIFICATE-----\n", "-----END CERTIFICATE-----\n"),
            (
                format!("{{\"line\": \"{line}\"}}\r\n").as_str(),
                "{\"line\": \"[hidden]\"}\r\n",
            ),
            (
                "-----END RSA PRIVATE KEY-----\nName: ",
                "-----END RSA PRIVATE KEY-----\nName: ",
            ),
            (line, line),
            (
                "\n> -----BEGIN PRIVATE KEY-----\n",
                "\n> -----BEGIN PRIVATE KEY-----\n",
            ),
            (format!("> {line}\n> {line}").as_str(), "> [hidden]\n"),
        ] {
            to.write_all(written.as_bytes()).await.unwrap();
            stderr.read().await;
            expected.push_str(shown);
            assert_eq!(health.stderr(), expected);
        }
        drop(to);
        stderr.read().await;
        assert_eq!(health.stderr(), expected + "> [hidden]");
    }
}
