//! Total limit of a run: it begins with the command, and includes reading the prompt and writing the answer.

use acpipe_core::timeout_error::millis;
use acpipe_host::running_now;
use acpipe_model::error::{Error, ErrorKind};
use acpipe_model::idle_timer::format_duration;
use std::time::{Duration, Instant};

/// Limit of `--max-time`.
#[derive(Debug, Clone, Copy)]
pub struct RunLimit {
    began: Instant,
    limit: Option<Duration>,
}

impl RunLimit {
    /// Begins the limit; `None` for no limit.
    pub fn begin(limit: Option<Duration>) -> Self {
        Self {
            began: running_now(),
            limit,
        }
    }

    /// Returns the time since the beginning of the run.
    pub fn elapsed(self) -> Duration {
        running_now().saturating_duration_since(self.began)
    }

    /// Returns when the limit passes; `None` without a limit.
    pub fn deadline(self) -> Option<Instant> {
        self.began.checked_add(self.limit?)
    }

    /// Returns the time until the limit passes; `None` without a limit.
    pub fn left(self) -> Option<Duration> {
        Some(self.deadline()?.saturating_duration_since(running_now()))
    }

    /// Waits for a step of the run.
    ///
    /// # Errors
    /// The limit passes first; the error is that of the stage.
    pub async fn wait_for<T>(
        self,
        step: impl Future<Output = anyhow::Result<T>>,
        stage: &str,
        what: &str,
    ) -> anyhow::Result<T> {
        match self.left() {
            None => step.await,
            Some(left) => match tokio::time::timeout(left, step).await {
                Ok(done) => done,
                Err(_) => Err(self.error(stage, what).into()),
            },
        }
    }

    /// Creates the error of a run that used up its time in a stage. `what` completes "while".
    pub fn error(self, stage: &str, what: &str) -> Error {
        let limit = self.limit.unwrap_or_default();
        let message = format!(
            "the run used up its time of {} while {what}, or allow more time (--max-time)",
            format_duration(limit)
        );
        Error::new(ErrorKind::Timeout, message)
            .with("stage", stage)
            .with("waitedMs", millis(limit))
    }
}
