//! Restarts after a crash: the next call that needs the agent restarts it, up to three times in a row, with
//! increasing delays.

use super::cx::AgentCx;
use super::{AgentMachine, Phase, State};
use crate::core::agent_spec::{AgentSpec, DEFAULT_AGENT};
use crate::core::error::{Error, ErrorKind, out_of_order};
use crate::proto::wire::{AgentSource, AgentState};
use std::time::{Duration, Instant};

/// Maximum number of consecutive restarts of an agent that completes no turn.
const RESTARTS: u32 = 3;

/// Delay of the restart after so many consecutive crashes.
fn pause(crashes: u32) -> Duration {
    Duration::from_secs(crashes.saturating_sub(1).into())
}

/// End of an agent after which the next call that needs it restarts it.
pub(super) struct Crash {
    at: Instant,
    /// Whether the end was unexpected, so that the restart counts.
    is_unexpected: bool,
}

impl AgentMachine {
    /// Makes sure that the agent is running or being started. `own` is the agent that the session had last,
    /// which is started in place of the demo agent.
    ///
    /// # Errors
    /// `agentExited` if it crashed too often, `outOfOrder` if no agent was named.
    pub fn need(&mut self, own: Option<AgentSpec>, cx: &mut AgentCx<'_>) -> Result<(), Error> {
        let State::Absent { why } = &self.state else {
            return Ok(());
        };
        self.check_unlocked()?;
        if let Some(crash) = &self.crash {
            if self.crashes > RESTARTS {
                let message = format!(
                    "the agent exited unexpectedly {} times in a row; call agent/connect to start it again",
                    self.crashes
                );
                return Err(Error::new(ErrorKind::AgentExited, message));
            }
            let until = crash.at + pause(self.crashes);
            if until > cx.now {
                let why = why.clone();
                self.state = State::Backoff { until, why };
                cx.notify_state(&self.definition.name, AgentState::Starting, None);
            } else {
                self.restart(cx);
            }
            return Ok(());
        }
        // The demo agent is started only if it was chosen by its name.
        let is_chosen = self.definition.spec.source != AgentSource::Demo;
        if is_chosen || self.name() != DEFAULT_AGENT {
            self.start(self.definition.spec.clone(), Vec::new(), cx);
            return Ok(());
        }
        if let Some(own) = own.filter(|_| !self.disconnected) {
            self.start(own, Vec::new(), cx);
            return Ok(());
        }
        let why = match why {
            Some(end) => format!("the agent connection has ended ({end})"),
            None => "no agent is connected".to_owned(),
        };
        Err(out_of_order(&format!(
            "{why}; name an agent, or call agent/connect first"
        )))
    }

    /// Notifies the clients that the agent is not restarted.
    pub fn notify_disconnected(&self, cx: &mut AgentCx<'_>) {
        cx.notify_state(&self.definition.name, AgentState::Disconnected, None);
    }

    /// Restarts the agent; after a crash, counts the restart.
    pub(super) fn restart(&mut self, cx: &mut AgentCx<'_>) {
        if self.crash.as_ref().is_some_and(|crash| crash.is_unexpected) {
            self.restarts = self.restarts.saturating_add(1);
        }
        self.start(self.spec.clone(), Vec::new(), cx);
    }

    /// Cancels a pending restart; returns `true` if there was one.
    pub fn give_up_restart(&mut self) -> bool {
        let waits = matches!(self.state, State::Backoff { .. });
        if waits {
            self.state = State::Absent { why: None };
            self.reset_spec();
        }
        waits
    }

    /// Records an unexpected end of an agent that was ready before.
    pub fn note_crash(&mut self, now: Instant) {
        let Some(connection) = self.connection() else {
            return;
        };
        let counts = match connection.phase {
            Phase::Ready(_) => true,
            Phase::Starting { .. } => self.crash.is_some(),
            Phase::Stopping { .. } => false,
        };
        if counts {
            self.crashes += 1;
            self.crash = Some(Crash {
                at: now,
                is_unexpected: true,
            });
        }
    }

    /// Allows the next call that needs the agent to restart it at once.
    pub fn allow_restart(&mut self, now: Instant) {
        self.crash = Some(Crash {
            at: now,
            is_unexpected: false,
        });
    }

    /// Resets the specification to the configured one if no agent is in use.
    pub(super) fn reset_spec(&mut self) {
        if self.connected_spec().is_none() {
            self.spec = self.definition.spec.clone();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow() {
        let pauses: Vec<u64> = (1..=RESTARTS).map(|n| pause(n).as_secs()).collect();
        assert_eq!(pauses, [0, 1, 2]);
    }
}
