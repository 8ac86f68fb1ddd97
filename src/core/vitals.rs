//! What the world knows of a process at any time, beside what it tells in order.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How much of stderr is kept, in bytes.
const STDERR_TAIL: usize = 64 * 1024;

/// The signs of life of a process: the shell writes them, the bridge looks at them when it has to say why
/// nothing goes on. Whatever has to keep its place among what the agent says is told as an `AgentInput` instead.
#[derive(Debug, Clone, Default)]
pub struct Vitals(Arc<Mutex<Signs>>);

#[derive(Debug, Default)]
struct Signs {
    stderr: VecDeque<u8>,
    /// Since when something waits to be taken by its stdin.
    writing: Option<Instant>,
}

impl Vitals {
    fn signs(&self) -> MutexGuard<'_, Signs> {
        // Every state of the signs is a good one.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// It wrote this to stderr.
    pub fn add_stderr(&self, new: &[u8]) {
        let stderr = &mut self.signs().stderr;
        let new = &new[new.len().saturating_sub(STDERR_TAIL)..];
        let over = (stderr.len() + new.len()).saturating_sub(STDERR_TAIL);
        stderr.drain(..over);
        stderr.extend(new);
    }

    /// The end of what it wrote to stderr.
    #[must_use]
    pub fn stderr(&self) -> String {
        String::from_utf8_lossy(self.signs().stderr.make_contiguous()).into_owned()
    }

    /// Something is being written to its stdin since then; `None` when all of it is taken.
    pub fn writes(&self, since: Option<Instant>) {
        self.signs().writing = since;
    }

    /// For how long it has not taken what is being written to its stdin.
    #[must_use]
    pub fn stuck(&self, now: Instant) -> Option<Duration> {
        let since = self.signs().writing?;
        Some(now.saturating_duration_since(since))
    }
}

/// The last line of a text that holds more than white space.
#[must_use]
pub fn last_line(text: &str) -> Option<&str> {
    let mut lines = text.rsplit(['\n', '\r']).map(str::trim);
    lines.find(|line| !line.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_stderr_is_kept() {
        let vitals = Vitals::default();
        assert_eq!(vitals.stderr(), "");
        vitals.add_stderr(&vec![b'a'; STDERR_TAIL - 1]);
        vitals.add_stderr(b"bcd");
        let kept = vitals.stderr();
        assert_eq!(kept.len(), STDERR_TAIL);
        assert!(kept.starts_with("aa") && kept.ends_with("abcd"));
        vitals.add_stderr(&vec![b'x'; 3 * STDERR_TAIL]);
        assert_eq!(vitals.stderr(), "x".repeat(STDERR_TAIL));
    }

    #[test]
    fn lines_are_found_behind_white_space() {
        assert_eq!(last_line("a\nb \n\n"), Some("b"));
        // Progress bars write over themselves.
        assert_eq!(last_line("10%\r20%\r"), Some("20%"));
        assert_eq!(last_line(" \n"), None);
    }
}
