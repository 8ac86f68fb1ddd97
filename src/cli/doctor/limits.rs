//! Time limits of `acpipe doctor`.

use acpipe_model::limits::{Limits, Timeout};
use std::time::Duration;

/// Limit of a wait that has none in the settings.
const NO_LIMIT: Duration = Duration::from_secs(600);

/// Time limits of a check.
#[derive(Debug, Clone, Copy)]
pub struct ProbeLimits {
    /// Response to the handshake.
    pub initialize: Duration,
    /// Response to `session/new`.
    pub new: Duration,
    /// Exit after SIGTERM.
    pub terminate: Duration,
    /// Response to a request that needs no model.
    pub answer: Duration,
    /// Response to `session/load` and `session/resume`.
    pub open: Duration,
    /// End of a prompt.
    pub prompt: Duration,
    /// Time without output after which no more of it is expected.
    pub quiet: Duration,
    /// Exit after the end of stdin.
    pub close: Duration,
    /// Age of a session that any agent can load: more than a minute.
    pub age: Duration,
    /// Duration of a handshake from which on it counts as slow.
    pub slow_start: Duration,
}

impl ProbeLimits {
    /// Returns the limits: those of a probe follow from the time for an answer, the others from the settings.
    pub fn new(answer: Duration, limits: &Limits) -> Self {
        let of = |timeout| limits.of(timeout).unwrap_or(NO_LIMIT);
        Self {
            initialize: of(Timeout::Initialize),
            new: of(Timeout::Open),
            terminate: of(Timeout::Terminate),
            answer,
            open: answer * 2,
            prompt: answer * 6,
            quiet: answer * 3 / 10,
            close: answer * 2 / 5,
            age: answer * 61 / 5,
            slow_start: answer * 4,
        }
    }
}
