//! The error of a wait that was given up, and the notice of one that goes on.

use super::cause::cause_or_last;
use super::error::{Error, ErrorKind, clip};
use super::limits::Wait;
use super::printable::printable;
use super::process_health::last_line;
use super::silence::in_words;
use crate::proto::wire::{Party, Waiting};
use serde_json::json;
use std::time::Duration;

/// A wait that was given up.
pub struct TimedOut<'a> {
    pub wait: Wait,
    /// The limit that was reached.
    pub limit: Duration,
    /// What did not happen: subject and verb.
    pub what: &'a str,
    /// What to do about it.
    pub advice: &'a str,
    /// The last sign of life, and how long ago.
    pub heard: Option<(&'static str, Duration)>,
    /// The end of the process's stderr.
    pub stderr: &'a str,
}

impl TimedOut<'_> {
    /// The error that clients get.
    #[must_use]
    pub fn error(&self) -> Error {
        let words = match self.heard {
            Some((what, ago)) => format!("last heard: {what}, {} ago", in_words(ago)),
            None => "nothing was heard".to_owned(),
        };
        // A start that fails in silence may have said why; later the last line says what the agent does.
        let last = match self.wait {
            Wait::Initialize | Wait::Spawn => cause_or_last(self.stderr),
            _ => last_line(self.stderr).map(|last| clip(&printable(last))),
        };
        let last = last.map_or_else(String::new, |last| format!("; its stderr says: {last}"));
        let time = in_words(self.limit);
        let time = match self.wait {
            Wait::Open | Wait::Prompt => format!("for {time}"),
            _ => format!("within {time}"),
        };
        let (what, advice) = (self.what, self.advice);
        let message = format!("{what} {time} ({words}): {advice}{last}");
        let heard = self.heard;
        let heard = heard.map(|(what, ago)| json!({ "what": what, "agoMs": millis(ago) }));
        let error = Error::new(ErrorKind::Timeout, message)
            .with("stage", self.wait.name())
            .with("waitedMs", millis(self.limit))
            .with("lastHeard", heard);
        if self.stderr.is_empty() {
            return error;
        }
        error.with_end("stderr", self.stderr)
    }
}

/// The notice of a wait that goes on; `note` is for people.
#[must_use]
pub fn waiting(stage: &str, party: Party, silent: Duration, note: String) -> Waiting {
    Waiting {
        party,
        stage: stage.to_owned(),
        silent_ms: millis(silent),
        note,
    }
}

/// The last line of a process's stderr, as the end of a notice.
#[must_use]
pub fn last_of_stderr(stderr: &str) -> String {
    last_line(stderr).map_or_else(String::new, |last| {
        format!("; the last line of its stderr: {}", clip(&printable(last)))
    })
}

/// Milliseconds, as clients get them.
#[must_use]
pub fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
