//! Health of an agent process: the end of its stderr, and since when a write to its stdin is pending.
//!
//! Neither is ordered among the agent's lines. The shell reports changes before it gives the core any event,
//! and the core uses them to explain why an agent makes no progress.

use super::cut::CUT;
use super::secret::Secrets;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Maximum size of such output that is kept, in bytes. Enough for a stack trace and the output before it.
pub const STDERR_TAIL: usize = 64 * 1024;

/// End of the output of a process: its stderr, or the lines on its stdout that are no messages. With the length of the
/// whole.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OutputTail {
    kept: VecDeque<u8>,
    /// Number of bytes written so far, kept or not.
    end: u64,
}

impl OutputTail {
    pub fn add(&mut self, new: &[u8]) {
        self.end += new.len() as u64;
        let new = &new[new.len().saturating_sub(STDERR_TAIL)..];
        let over = (self.kept.len() + new.len()).saturating_sub(STDERR_TAIL);
        self.kept.drain(..over);
        self.kept.extend(new);
    }

    /// Returns the current end as a position: later output comes after it.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Returns the text that is kept, with the secrets in it.
    pub fn text(&self) -> String {
        self.text_since(0)
    }

    /// Returns the part of the kept text that was written after this position, with a mark if its beginning is missing.
    fn text_since(&self, at: u64) -> String {
        let bytes = self.since(at);
        let text = String::from_utf8_lossy(&bytes);
        let is_cut = self.end.saturating_sub(at) > bytes.len() as u64;
        if is_cut {
            format!("{CUT}{text}")
        } else {
            text.into_owned()
        }
    }

    /// Returns the part of the kept bytes that was written after this position.
    pub fn since(&self, at: u64) -> Vec<u8> {
        // A position beyond the end belongs to another process.
        let new = self.end.checked_sub(at).unwrap_or(u64::MAX);
        let new = usize::try_from(new).unwrap_or(usize::MAX);
        let skipped = self.kept.len().saturating_sub(new);
        self.kept.range(skipped..).copied().collect()
    }
}

/// Health of a process, as last reported.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProcessHealth {
    pub stderr: OutputTail,
    /// Since when a write to its stdin is pending.
    pending_write: Option<Instant>,
}

/// Change of a process's health since the last report.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct HealthChange {
    /// New output on stderr; only its end if it is long.
    pub stderr: Vec<u8>,
    /// Number of bytes written before that and not kept.
    pub skipped: u64,
    /// Since when a write to stdin is pending; `None` if all input was taken.
    pub pending_write: Option<Instant>,
}

impl ProcessHealth {
    pub fn update(&mut self, change: &HealthChange) {
        self.stderr.end += change.skipped;
        self.stderr.add(&change.stderr);
        self.pending_write = change.pending_write;
    }

    /// Returns the end of stderr without secrets. They are hidden when the text is read: one may arrive in two parts.
    pub fn stderr_text(&self, secrets: &Secrets) -> String {
        self.stderr_since(0, secrets)
    }

    /// Returns what was written to stderr after a position, without secrets.
    pub fn stderr_since(&self, at: u64, secrets: &Secrets) -> String {
        secrets.hide(&self.stderr.text_since(at)).into_owned()
    }

    /// Returns for how long the process has not taken the pending write to its stdin; `None` if no write is
    /// pending.
    pub fn stuck(&self, now: Instant) -> Option<Duration> {
        let since = self.pending_write?;
        Some(now.saturating_duration_since(since))
    }
}

/// Returns the last line of a text that is not blank.
pub fn last_line(text: &str) -> Option<&str> {
    let mut lines = text.rsplit(['\n', '\r']).map(str::trim);
    lines.find(|line| !line.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_stderr_is_kept() {
        let mut stderr = OutputTail::default();
        assert_eq!(stderr.text(), "");
        stderr.add(&vec![b'a'; STDERR_TAIL - 1]);
        stderr.add(b"bcd");
        let kept = stderr.text();
        assert_eq!(kept.len(), CUT.len() + STDERR_TAIL);
        assert!(kept.starts_with("\u{2026}aa") && kept.ends_with("abcd"));
        stderr.add(&vec![b'x'; 3 * STDERR_TAIL]);
        assert_eq!(stderr.text(), format!("{CUT}{}", "x".repeat(STDERR_TAIL)));
    }

    #[test]
    fn stderr_is_read_from_a_position_on() {
        let mut stderr = OutputTail::default();
        stderr.add(b"before\n");
        let at = stderr.end();
        assert_eq!(stderr.text_since(at), "");
        stderr.add(b"after\n");
        assert_eq!(stderr.text_since(at), "after\n");
        // Position of another process.
        assert_eq!(stderr.text_since(1000), "before\nafter\n");
        stderr.add(&vec![b'x'; 2 * STDERR_TAIL]);
        assert_eq!(
            stderr.text_since(at),
            format!("{CUT}{}", "x".repeat(STDERR_TAIL))
        );
    }

    #[test]
    fn health_changes_keep_the_stderr_tail_when_bytes_are_skipped() {
        let mut health = ProcessHealth::default();
        let mut all = OutputTail::default();
        for bytes in [10, 0, STDERR_TAIL, 3 * STDERR_TAIL, 5] {
            let at = all.end();
            all.add(&vec![b'x'; bytes]);
            let stderr = all.since(at);
            let skipped = (bytes - stderr.len()) as u64;
            health.update(&HealthChange {
                stderr,
                skipped,
                pending_write: None,
            });
            assert_eq!(health.stderr, all, "{bytes}");
        }
    }

    #[test]
    fn pending_write_marks_a_process_stuck_until_it_completes() {
        let now = Instant::now();
        let mut health = ProcessHealth::default();
        assert_eq!(health.stuck(now), None);
        let mut change = HealthChange {
            pending_write: Some(now),
            ..HealthChange::default()
        };
        health.update(&change);
        let later = now + Duration::from_secs(3);
        assert_eq!(health.stuck(later), Some(Duration::from_secs(3)));
        change.pending_write = None;
        health.update(&change);
        assert_eq!(health.stuck(later), None);
    }

    #[test]
    fn lines_are_found_behind_white_space() {
        assert_eq!(last_line("a\nb \n\n"), Some("b"));
        // Progress bars overwrite themselves.
        assert_eq!(last_line("10%\r20%\r"), Some("20%"));
        assert_eq!(last_line(" \n"), None);
    }

    #[test]
    fn secrets_are_hidden_in_the_joined_parts_of_stderr() {
        let secrets = Secrets::default();
        secrets.add_values(["hunter-of-secrets"]);
        let mut health = ProcessHealth::default();
        let add = |health: &mut ProcessHealth, stderr: &[u8]| {
            health.update(&HealthChange {
                stderr: stderr.to_vec(),
                ..HealthChange::default()
            });
        };
        add(&mut health, b"before\n");
        let at = health.stderr.end();
        add(&mut health, b"is hunter-of");
        add(&mut health, b"-secrets\n");
        assert_eq!(health.stderr_text(&secrets), "before\nis [hidden]\n");
        assert_eq!(health.stderr_since(at, &secrets), "is [hidden]\n");
        // The beginning is dropped.
        let rest = STDERR_TAIL - "secrets\n".len();
        add(&mut health, &vec![b'x'; rest]);
        assert_eq!(
            health.stderr_text(&secrets),
            format!("{CUT}[hidden]\n{}", "x".repeat(rest))
        );
    }
}
