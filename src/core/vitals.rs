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
    /// Bytes of stderr so far, kept or not.
    stderr_at: u64,
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
        let mut signs = self.signs();
        signs.stderr_at += new.len() as u64;
        let stderr = &mut signs.stderr;
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

    /// Position in its stderr: what it writes from now on comes after it.
    #[must_use]
    pub fn stderr_at(&self) -> u64 {
        self.signs().stderr_at
    }

    /// What is kept of the stderr that it wrote after this position.
    #[must_use]
    pub fn stderr_since(&self, at: u64) -> String {
        let mut signs = self.signs();
        // A position beyond the end is one of another process.
        let new = signs.stderr_at.checked_sub(at).unwrap_or(u64::MAX);
        let kept = signs.stderr.make_contiguous();
        let new = usize::try_from(new).unwrap_or(usize::MAX).min(kept.len());
        String::from_utf8_lossy(&kept[kept.len() - new..]).into_owned()
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
    fn stderr_is_read_from_a_position_on() {
        let vitals = Vitals::default();
        vitals.add_stderr(b"before\n");
        let at = vitals.stderr_at();
        assert_eq!(vitals.stderr_since(at), "");
        vitals.add_stderr(b"after\n");
        assert_eq!(vitals.stderr_since(at), "after\n");
        // Of another process.
        assert_eq!(vitals.stderr_since(1000), "before\nafter\n");
        vitals.add_stderr(&vec![b'x'; 2 * STDERR_TAIL]);
        assert_eq!(vitals.stderr_since(at), "x".repeat(STDERR_TAIL));
    }

    #[test]
    fn lines_are_found_behind_white_space() {
        assert_eq!(last_line("a\nb \n\n"), Some("b"));
        // Progress bars write over themselves.
        assert_eq!(last_line("10%\r20%\r"), Some("20%"));
        assert_eq!(last_line(" \n"), None);
    }
}
