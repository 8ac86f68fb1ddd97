//! Logging of the frames of agents and clients, at `trace` only because they contain all messages.

use acpipe_model::cut::CUT;
use acpipe_model::secret::without_members;
use std::borrow::Cow;
use tracing::{Level, enabled, trace};

/// Maximum length of a logged frame in bytes.
const MAX_FRAME_BYTES: usize = 64 * 1024;

/// Returns `true` if frames are logged.
#[must_use]
pub fn logs_frames() -> bool {
    enabled!(target: "acpipe::frames", Level::TRACE)
}

/// Logs each line as a frame with its direction, such as `agent → acpipe`.
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

/// Formats a frame for the log, without what its members mark as secret: no pattern detects a secret there.
fn shown(line: &[u8]) -> Cow<'_, str> {
    let text = String::from_utf8_lossy(line);
    let text = match without_members(&text) {
        Cow::Owned(hidden) => Cow::Owned(hidden),
        Cow::Borrowed(_) => text,
    };
    if text.len() <= MAX_FRAME_BYTES {
        return text;
    }
    // Between words, so that a pattern finds the last ones.
    let head = &text.as_bytes()[..MAX_FRAME_BYTES];
    let end = memchr::memrchr3(b'"', b',', b' ', head).unwrap_or(0);
    let head = String::from_utf8_lossy(&head[..end]);
    format!("{head}{CUT} ({} bytes in all)", line.len()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_frames_are_cut_between_words() {
        assert_eq!(shown(b"{\"a\":1}"), "{\"a\":1}");
        assert_eq!(
            shown(br#"{"id":1,"result":{"action":"accept","content":{"pin":"1234"}}}"#),
            r#"{"id":1,"result":{"action":"accept","content":"[hidden]"}}"#
        );
        let line = format!(
            "{{\"a\":\"b\",\"secret\":\"{}\"}}",
            "s".repeat(MAX_FRAME_BYTES)
        );
        let cut = shown(line.as_bytes());
        assert_eq!(
            cut,
            format!("{{\"a\":\"b\",\"secret\":… ({} bytes in all)", line.len())
        );
    }
}
