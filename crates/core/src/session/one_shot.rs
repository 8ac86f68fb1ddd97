//! Sessions that serve one `execute` call: the call is tried again after a crash of its agent.

use acpipe_json::to_raw;
use acpipe_model::error::{Error, ErrorKind};
use serde_json::json;
use std::time::{Duration, Instant};

/// Pauses before the second and the third attempt (row H-X1 of the demands).
const PAUSES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(2)];

/// Attempts at an `execute` call.
#[derive(Debug)]
pub struct OneShot {
    retries: bool,
    failures: usize,
    /// When the session is opened for the next attempt.
    pub(super) reopen_at: Option<Instant>,
}

impl OneShot {
    #[must_use]
    pub fn new(retries: bool) -> Self {
        Self {
            retries,
            failures: 0,
            reopen_at: None,
        }
    }

    /// Returns the pause before the next attempt, and counts the failed one. `None` if the call fails.
    pub fn pause_after(&mut self, error: &Error) -> Option<Duration> {
        let may = self.retries && is_retried(error.kind);
        let pause = PAUSES.get(self.failures).copied().filter(|_| may)?;
        self.failures += 1;
        Some(pause)
    }
}

/// Returns `true` if another attempt may succeed: the agent process or its output failed, not its work.
fn is_retried(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::AgentStart
            | ErrorKind::AgentExited
            | ErrorKind::Streaming
            | ErrorKind::Malformed
    )
}

pub fn attempt_notice(error: &Error, pause: Duration) -> Box<serde_json::value::RawValue> {
    let seconds = pause.as_secs();
    to_raw(&json!({
        "severity": "warning",
        "title": format!("The agent failed ({}); trying again in {seconds} s", error.kind.name()),
        "description": error.message,
    }))
}
