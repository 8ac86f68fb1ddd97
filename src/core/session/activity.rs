//! Idle timer of a session.

use super::SessionMachine;
use crate::core::client_sink::ClientSinks;
use std::time::Instant;

impl SessionMachine {
    /// Resets the idle timer on output of the agent. Clients that were notified of a wait are notified that
    /// it is over.
    pub fn note_activity(
        &mut self,
        now: Instant,
        what: &'static str,
        clients: &mut dyn ClientSinks,
    ) {
        if let Some(idle_timer) = &mut self.idle_timer
            && idle_timer.note_activity(now, what)
        {
            self.turns.notify_activity(None, &mut self.output, clients);
        }
    }
}
