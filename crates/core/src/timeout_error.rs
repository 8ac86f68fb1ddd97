//! Errors of timeouts, and notices of waits that continue.

use acpipe_model::cause::{cause_or_end, cause_or_last};
use acpipe_model::error::{Error, ErrorKind, clip};
use acpipe_model::idle_timer::format_duration;
use acpipe_model::limits::Timeout;
use acpipe_model::printable::printable;
use acpipe_model::process_health::last_line;
use acpipe_protocol::wire::{Party, Waiting};
use serde_json::json;
use std::time::Duration;

/// Advice for a call that has used up its time.
pub const MORE_TIME: &str = "allow more time (timeoutMs, or --max-time)";

pub struct TimedOut<'a> {
    pub wait: Timeout,
    pub limit: Duration,
    /// The missing event, as subject and verb.
    pub what: &'a str,
    pub advice: &'a str,
    /// Last activity of the agent, and how long ago it was.
    pub last_activity: Option<(&'static str, Duration)>,
    /// End of the process's stderr.
    pub stderr: &'a str,
    /// End of the lines on the process's stdout that are no messages, for a start.
    pub stdout: &'a str,
}

impl TimedOut<'_> {
    pub fn error(&self) -> Error {
        let words = match self.last_activity {
            Some((what, ago)) => format!("last activity: {what}, {} ago", format_duration(ago)),
            None => "no activity".to_owned(),
        };
        // If a start failed without a message, stderr or stdout may hold the cause. Later, the last line of stderr
        // describes what the agent does.
        let last = match self.wait {
            Timeout::Initialize | Timeout::Spawn => {
                let stdout = || cause_or_end(self.stdout).map(|last| format!("; stdout: {last}"));
                let stderr = cause_or_last(self.stderr).map(|last| format!("; stderr: {last}"));
                stderr.or_else(stdout)
            }
            _ => last_line(self.stderr).map(|last| format!("; stderr: {}", clip(&printable(last)))),
        };
        let last = last.unwrap_or_default();
        let time = format_duration(self.limit);
        let time = match self.wait {
            Timeout::Open | Timeout::Prompt => format!("for {time}"),
            _ => format!("within {time}"),
        };
        let (what, advice) = (self.what, self.advice);
        let message = format!("{what} {time} ({words}); {advice}{last}");
        let last_activity = self.last_activity;
        let last_activity =
            last_activity.map(|(what, ago)| json!({ "what": what, "agoMs": millis(ago) }));
        let mut error = Error::new(ErrorKind::Timeout, message)
            .with("stage", self.wait.name())
            .with("waitedMs", millis(self.limit))
            .with("lastHeard", last_activity);
        for (name, text) in [("stderr", self.stderr), ("stdout", self.stdout)] {
            if !text.is_empty() {
                error = error.with_end(name, text);
            }
        }
        error
    }
}

/// Creates the notice of a wait that continues; `note` is text for people.
pub fn waiting(stage: &str, party: Party, silent: Duration, note: String) -> Waiting {
    Waiting {
        party,
        stage: stage.to_owned(),
        silent_ms: millis(silent),
        note,
    }
}

/// Returns the last line of a process's stderr as the end of a notice.
pub fn last_of_stderr(stderr: &str) -> String {
    last_of("stderr", stderr)
}

/// Returns the last line of an output of a process as the end of a notice.
pub fn last_of(name: &str, output: &str) -> String {
    last_line(output).map_or_else(String::new, |last| {
        format!("; last line of {name}: {}", clip(&printable(last)))
    })
}

pub fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
