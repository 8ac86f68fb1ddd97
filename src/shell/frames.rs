//! The frames of agents and clients in the log: at `trace` only, since they hold all that is said.

use memchr::memmem;
use std::borrow::Cow;
use tracing::{Level, enabled, trace};

/// How much of a frame is logged, in bytes.
const LONGEST: usize = 64 * 1024;

/// What an answer to a question of an agent holds: what a user typed may be a secret, whatever it looks like.
const TYPED: &[u8] = br#""action":"accept""#;

/// Whether frames are logged.
#[must_use]
pub fn logs_frames() -> bool {
    enabled!(target: "acpipe::frames", Level::TRACE)
}

/// Logs each line as a frame that went this way, `agent → acpipe` say.
pub fn log_frames(way: &str, lines: &[u8]) {
    if !logs_frames() {
        return;
    }
    for line in lines
        .split(|&byte| byte == b'\n')
        .filter(|line| !line.is_empty())
    {
        trace!(target: "acpipe::frames", "{way}: {}", shown(line));
    }
}

/// A frame as it is logged. It is cut between words: what hides secrets in the log finds whole ones only.
fn shown(line: &[u8]) -> Cow<'_, str> {
    if memmem::find(line, TYPED).is_some() {
        return format!("(the answer to a question, {} bytes)", line.len()).into();
    }
    if line.len() <= LONGEST {
        return String::from_utf8_lossy(line);
    }
    let head = &line[..LONGEST];
    let end = memchr::memrchr3(b'"', b',', b' ', head).unwrap_or(0);
    let head = String::from_utf8_lossy(&head[..end]);
    format!("{head}… ({} bytes in all)", line.len()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_frames_are_cut_between_words() {
        assert_eq!(shown(b"{\"a\":1}"), "{\"a\":1}");
        assert_eq!(
            shown(br#"{"id":1,"result":{"action":"accept","content":{"pin":"1234"}}}"#),
            "(the answer to a question, 62 bytes)"
        );
        let line = format!("{{\"a\":\"b\",\"secret\":\"{}\"}}", "s".repeat(LONGEST));
        let cut = shown(line.as_bytes());
        assert_eq!(
            cut,
            format!("{{\"a\":\"b\",\"secret\":… ({} bytes in all)", line.len())
        );
    }
}
