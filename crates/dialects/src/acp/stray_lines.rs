//! Lines of an agent's stdout that are not frames, such as the output of a forgotten `print()`.

use acpipe_json::frame::Sniffed;
use acpipe_model::cut::CUT;
use acpipe_model::error::clip;
use acpipe_model::line_repair::{LostLine, LostReason};
use acpipe_model::printable::printable;
use acpipe_protocol::wire::LineFaults;
use tracing::{debug, warn};

/// Maximum number of kinds of lines that are shown in the log; further ones are only counted.
const KINDS: usize = 16;

/// Maximum number of characters of a line that are shown.
const SHOWN: usize = 200;

/// Maximum number of bytes at the beginning of a line in which text to show is searched.
const SEARCHED: usize = 4096;

/// Kinds of lines that were already shown.
#[derive(Debug, Default)]
pub(super) struct StrayLines(Vec<String>);

impl StrayLines {
    /// Logs a line that is given up; `faults` has the counts with this line.
    pub(super) fn report_lost(
        &mut self,
        line: &LostLine<'_>,
        sniffed: &Sniffed,
        faults: &LineFaults,
    ) {
        let (count, why) = match line.reason {
            LostReason::TooLong => {
                let Sniffed { id, method } = sniffed;
                warn!(
                    bytes = line.len,
                    id, method, "line skipped: longer than the limit"
                );
                return;
            }
            LostReason::NotUtf8 => (faults.invalid_utf8, "not UTF-8"),
            LostReason::NotJson(_) | LostReason::NotAMessage => {
                (faults.malformed, "not a JSON-RPC message")
            }
        };
        let mut text = String::from_utf8_lossy(&line.head[..line.head.len().min(SEARCHED)]);
        if line.len > text.len() as u64 {
            text.to_mut().push_str(CUT);
        }
        self.report(&text, count, why);
        debug!(fault = line.fault(), line = clip(&text), "line skipped");
    }

    /// Logs a skipped line; `count` is the number of lines with this fault. The line is shown if its kind is
    /// new, unless it looks like JSON: that may be part of the conversation, which is logged only at `debug`
    /// and below.
    pub fn report(&mut self, line: &str, count: u64, why: &str) {
        if let Some(line) = self.new_kind(line) {
            warn!(
                count,
                "skipped a line on the agent's stdout ({why}): {line}"
            );
        } else {
            report(count, why);
        }
    }

    /// Returns the line as shown in the log if it is the first of its kind.
    fn new_kind(&mut self, line: &str) -> Option<String> {
        let text = printable(line.trim());
        if self.0.len() >= KINDS || text.is_empty() || text.starts_with(['{', '[', '"']) {
            return None;
        }
        // Counters and times do not make a line a new kind.
        let mut kind: String = text.chars().take(SHOWN).collect();
        kind.retain(|c| !c.is_ascii_digit());
        if self.0.contains(&kind) {
            return None;
        }
        self.0.push(kind);
        let mut shown: String = text.chars().take(SHOWN).collect();
        if shown.len() < text.len() {
            shown.push_str(CUT);
        }
        Some(shown)
    }
}

/// Logs that a line was skipped: the first one, then at every power of two.
pub(super) fn report(count: u64, why: &str) {
    if count.is_power_of_two() {
        warn!(count, "skipped a line of the agent: {why}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stray_lines_are_shown_once_per_kind_up_to_a_limit() {
        let mut stray = StrayLines::default();
        assert_eq!(
            stray.new_kind(" loading \x1b[32m10\x1b[0m% ").as_deref(),
            Some("loading 10%")
        );
        assert_eq!(stray.new_kind("loading 20%"), None);
        let long = "x".repeat(SHOWN + 1);
        let shown = stray.new_kind(&long).unwrap();
        assert_eq!(shown.chars().count(), SHOWN + 1);
        for body in ["{\"text\":\"hello", "[1,", "\"hello\"", " "] {
            assert_eq!(stray.new_kind(body), None, "{body}");
        }
        for n in 0..KINDS {
            stray.new_kind(&"y".repeat(n + 1));
        }
        assert_eq!(stray.0.len(), KINDS);
        assert_eq!(stray.new_kind("another kind"), None);
    }
}
