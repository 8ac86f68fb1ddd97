//! Contribution of a session to the counters, made outside of the path of single updates.

use super::SessionMachine;
use crate::core::metrics::Counters;
use std::time::Instant;

impl SessionMachine {
    /// Counts the chunks since the last call, and the time to the first output of the running turn.
    pub fn count_output(&mut self, now: Instant, counters: &mut Counters) {
        self.output.count_chunks(counters);
        let ago = || Some(self.idle_timer?.last_activity(now)?.1);
        self.turns.count_first_output(now, ago, counters);
    }
}
