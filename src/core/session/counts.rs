//! Contribution of a session to the counters, made outside of the path of single updates.

use super::SessionMachine;
use crate::core::metrics::Counters;
use std::time::Instant;

impl SessionMachine {
    /// Counts the chunks since the last call, and the time to the first output of the running turn.
    pub fn count_output(&mut self, now: Instant, counters: &mut Counters) {
        self.output.count_chunks(counters);
        if let Some(running) = &mut self.running
            && running.first_output.is_none()
            && let Some((_, ago)) = self.idle_timer.and_then(|timer| timer.last_activity(now))
        {
            let at = now.checked_sub(ago).unwrap_or(now).max(running.started);
            running.first_output = Some(at);
            let took = at.saturating_duration_since(running.started);
            counters.first_output.add(took);
        }
    }
}
