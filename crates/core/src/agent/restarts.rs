//! Restarts of the agent: whether the next call that needs the agent starts it again, and when.
//!
//! Owns the last end of the agent, the counts of crashes and restarts, and that a client has disconnected the agent. It may not
//! start or stop anything, and knows neither the connection nor the clients: the machine says how the agent ended, and
//! performs the start.

use acpipe_model::error::{Error, ErrorKind};
use std::time::{Duration, Instant};

/// Maximum number of consecutive restarts of an agent that completes no turn.
const MAX_IN_A_ROW: u32 = 3;

/// Restarts after a crash, up to three times in a row and with increasing delays, and after an idle stop.
#[derive(Default)]
pub(super) struct Restarts {
    /// Last crash or idle stop, after which the next call restarts the agent; `None` once it is ready again.
    end: Option<AgentEnd>,
    /// Consecutive crashes without a completed turn.
    crashes: u32,
    /// Number of restarts after a crash.
    count: u32,
    /// `true` if a client disconnected the last agent process: only a client can start another one.
    is_disconnected: bool,
}

/// End of an agent after which the next call that needs it restarts it.
struct AgentEnd {
    at: Instant,
    /// `true` if the end was unexpected, so that the restart counts.
    is_unexpected: bool,
}

impl Restarts {
    /// Returns `true` if the next call that needs the agent restarts it.
    pub(super) fn are_pending(&self) -> bool {
        self.end.is_some()
    }

    /// Returns when the agent may be started again; `None` if it is not to be restarted.
    ///
    /// # Errors
    /// `agentExited` if it crashed too often.
    pub(super) fn next(&self) -> Result<Option<Instant>, Error> {
        let Some(end) = &self.end else {
            return Ok(None);
        };
        if self.crashes > MAX_IN_A_ROW {
            let message = format!(
                "the agent exited unexpectedly {} times in a row; call agent/connect to start it again",
                self.crashes
            );
            return Err(Error::new(ErrorKind::AgentExited, message));
        }
        Ok(Some(end.at + pause(self.crashes)))
    }

    /// Notes that the agent is being restarted; after a crash, counts the restart.
    pub(super) fn note_restart(&mut self) {
        if self.end.as_ref().is_some_and(|end| end.is_unexpected) {
            self.count = self.count.saturating_add(1);
        }
    }

    /// Number of restarts after a crash.
    pub(super) fn count(&self) -> u32 {
        self.count
    }

    /// Notes an unexpected end. `was_ready`: whether the agent had completed its handshake; otherwise the end only
    /// counts if the start was itself a restart.
    pub(super) fn note_crash(&mut self, was_ready: bool, at: Instant) {
        if was_ready || self.end.is_some() {
            self.crashes += 1;
            self.end = Some(AgentEnd {
                at,
                is_unexpected: true,
            });
        }
    }

    /// Allows the next call that needs the agent to restart it at once.
    pub(super) fn allow(&mut self, at: Instant) {
        self.end = Some(AgentEnd {
            at,
            is_unexpected: false,
        });
    }

    pub(super) fn note_ready(&mut self) {
        self.end = None;
    }

    pub(super) fn note_turn(&mut self) {
        self.crashes = 0;
    }

    pub(super) fn note_connect(&mut self) {
        (self.end, self.crashes, self.is_disconnected) = (None, 0, false);
    }

    pub(super) fn note_disconnect(&mut self) {
        (self.end, self.is_disconnected) = (None, true);
    }

    /// Returns `true` if only a client can start the agent.
    pub(super) fn is_disconnected(&self) -> bool {
        self.is_disconnected
    }
}

/// Delay of the restart after so many consecutive crashes.
fn pause(crashes: u32) -> Duration {
    Duration::from_secs(crashes.saturating_sub(1).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_until_the_agent_crashed_too_often() {
        let (mut restarts, at) = (Restarts::default(), Instant::now());
        let mut pauses = Vec::new();
        for _ in 0..MAX_IN_A_ROW {
            restarts.note_crash(true, at);
            pauses.push((restarts.next().unwrap().unwrap() - at).as_secs());
            restarts.note_restart();
        }
        assert_eq!(pauses, [0, 1, 2]);
        assert_eq!(restarts.count(), MAX_IN_A_ROW);
        restarts.note_crash(true, at);
        let error = restarts.next().unwrap_err();
        assert_eq!(error.kind, ErrorKind::AgentExited);
        restarts.note_turn();
        assert_eq!(restarts.next().unwrap(), Some(at));
    }

    #[test]
    fn an_end_before_the_agent_was_ready_counts_during_a_restart_only() {
        let (mut restarts, at) = (Restarts::default(), Instant::now());
        restarts.note_crash(false, at);
        assert!(!restarts.are_pending());
        assert_eq!(restarts.next().unwrap(), None);
        restarts.note_crash(true, at);
        restarts.note_crash(false, at);
        assert_eq!(restarts.next().unwrap(), Some(at + pause(2)));
        restarts.note_ready();
        assert!(!restarts.are_pending());
    }

    #[test]
    fn a_restart_after_an_allowed_stop_is_immediate_and_not_counted() {
        let (mut restarts, at) = (Restarts::default(), Instant::now());
        restarts.allow(at);
        assert_eq!(restarts.next().unwrap(), Some(at));
        restarts.note_restart();
        assert_eq!(restarts.count(), 0);
    }

    #[test]
    fn a_disconnected_agent_waits_for_a_client() {
        let (mut restarts, at) = (Restarts::default(), Instant::now());
        restarts.note_crash(true, at);
        restarts.note_disconnect();
        assert!(restarts.is_disconnected() && !restarts.are_pending());
        restarts.note_connect();
        assert!(!restarts.is_disconnected() && !restarts.are_pending());
    }
}
