//! Counters and histograms of the core, and the snapshot of them for a page of metrics.

use acpipe_protocol::wire::OutcomeKind;
use std::time::Duration;

/// Upper bounds of the buckets of a [`Histogram`], in milliseconds. Turns take from a fraction of a second to
/// hours.
pub const BUCKETS_MS: [u64; 14] = [
    10, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000, 60_000, 300_000, 1_800_000, 7_200_000,
];

/// Distribution of durations.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Histogram {
    /// Number of durations up to each bound of [`BUCKETS_MS`] and above the previous bound.
    counts: [u64; BUCKETS_MS.len()],
    pub count: u64,
    pub sum: Duration,
}

/// Counters that only grow, since the program started.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counters {
    /// Prompted turns that began.
    pub turns_started: u64,
    /// Prompted turns that the agent ended.
    pub turns_completed: u64,
    pub turns_cancelled: u64,
    pub turns_failed: u64,
    /// Updates of agents. A run of updates that is handled as one counts as one.
    pub updates: u64,
    /// Chunks that were numbered.
    pub chunks: u64,
    /// Durations of prompted turns, from begin to end.
    pub turn_duration: Histogram,
    /// Times from the begin of a prompted turn to the first output of its agent.
    pub first_output: Histogram,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HubMetrics {
    pub counters: Counters,
    /// Prompted turns that run.
    pub running_turns: u64,
    pub queued_prompts: u64,
    /// Open permission requests and questions of sessions.
    pub open_requests: u64,
    /// Sessions in memory.
    pub open_sessions: u64,
    /// Sessions that an agent has.
    pub live_sessions: u64,
    /// Clients that have called `initialize`.
    pub clients: u64,
    /// Subscriptions of clients that lag behind a session.
    pub lagging_clients: u64,
    /// Agents with a connection.
    pub agents_running: u64,
}

impl Histogram {
    pub fn add(&mut self, duration: Duration) {
        let ms = duration.as_millis();
        let fits = BUCKETS_MS.iter().position(|bound| ms <= u128::from(*bound));
        if let Some(at) = fits {
            self.counts[at] += 1;
        }
        self.count += 1;
        self.sum = self.sum.saturating_add(duration);
    }

    /// Iterates over the bounds in milliseconds, each with the number of durations up to it.
    pub fn cumulative(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let up_to = self.counts.iter().scan(0, |sum, count| {
            *sum += count;
            Some(*sum)
        });
        BUCKETS_MS.into_iter().zip(up_to)
    }
}

impl Counters {
    pub fn end_turn(&mut self, outcome: OutcomeKind, duration: Duration) {
        match outcome {
            OutcomeKind::Completed | OutcomeKind::Incomplete | OutcomeKind::Refused => {
                self.turns_completed += 1;
            }
            OutcomeKind::Cancelled => self.turns_cancelled += 1,
            OutcomeKind::Failed => self.turns_failed += 1,
        }
        self.turn_duration.add(duration);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_counted_up_to_each_bound() {
        let mut histogram = Histogram::default();
        for ms in [10, 11, 100, 100_000_000] {
            histogram.add(Duration::from_millis(ms));
        }
        let up_to: Vec<(u64, u64)> = histogram.cumulative().take(3).collect();
        assert_eq!(up_to, [(10, 1), (50, 2), (100, 3)]);
        assert_eq!(histogram.cumulative().last(), Some((7_200_000, 3)));
        assert_eq!(histogram.count, 4);
        assert_eq!(histogram.sum, Duration::from_millis(100_000_121));
    }

    #[test]
    fn bounds_rise() {
        assert!(BUCKETS_MS.is_sorted_by(|a, b| a < b));
    }
}
