//! Idle timer: how long an agent has sent nothing while acpipe waits for it.

use super::event::{MessageRole, Update};
use std::time::{Duration, Instant};

/// Idle timer of one wait for an agent.
#[derive(Debug, Clone, Copy)]
pub struct IdleTimer {
    began: Instant,
    /// Time and kind of the last output.
    last_activity: Option<(Instant, &'static str)>,
    /// Time since the last output in which acpipe did not read the agent.
    paused: Duration,
    limit: Option<Duration>,
    /// Number of notice intervals that have passed since the last output.
    notices: u32,
}

impl IdleTimer {
    #[must_use]
    pub fn begin(now: Instant, limit: Option<Duration>) -> Self {
        Self {
            began: now,
            last_activity: None,
            paused: Duration::ZERO,
            limit,
            notices: 0,
        }
    }

    /// Sets another idle timeout if it is shorter.
    pub fn shorten(&mut self, limit: Option<Duration>) {
        self.limit = self.limit.into_iter().chain(limit).min();
    }

    /// Resets the timer on output of kind `what`. Returns `true` if a notice of the wait was sent before.
    pub fn note_activity(&mut self, now: Instant, what: &'static str) -> bool {
        self.last_activity = Some((now, what));
        self.paused = Duration::ZERO;
        std::mem::take(&mut self.notices) > 0
    }

    /// Returns `true` if `at` is later than the last output.
    pub fn is_latest(&self, at: Instant) -> bool {
        at > self.last_activity.map_or(self.began, |(at, _)| at)
    }

    /// Excludes a time in which acpipe did not read the agent.
    pub fn postpone(&mut self, by: Duration) {
        self.paused += by;
    }

    /// Start of the idle time, moved by the time in which acpipe did not read the agent.
    fn idle_since(&self) -> Instant {
        self.last_activity.map_or(self.began, |(at, _)| at) + self.paused
    }

    pub fn elapsed(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.idle_since())
    }

    /// When the idle timeout is reached; `None` without a timeout.
    pub fn until(&self) -> Option<Instant> {
        self.idle_since().checked_add(self.limit?)
    }

    /// When the next notice of the wait is due: after `first`, then each time after twice as long.
    pub fn notice_at(&self, first: Duration) -> Option<Instant> {
        let wait = first.checked_mul(1_u32.checked_shl(self.notices)?)?;
        self.idle_since().checked_add(wait)
    }

    /// Records that a notice was sent. Notices that became due meanwhile count as sent.
    pub fn note_notice(&mut self, first: Duration, now: Instant) {
        while self.notice_at(first).is_some_and(|at| at <= now) {
            self.notices += 1;
        }
    }

    /// Returns the kind of the last output and the time since then.
    pub fn last_activity(&self, now: Instant) -> Option<(&'static str, Duration)> {
        let (at, what) = self.last_activity?;
        Some((what, now.saturating_duration_since(at)))
    }
}

/// Formats a duration briefly: in milliseconds below one second, in seconds below ten minutes, otherwise in
/// minutes.
pub fn format_duration(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0 => format!("{} ms", time.as_millis()),
        1..600 => format!("{seconds} s"),
        _ => format!("{} min", seconds / 60),
    }
}

/// Returns the kind of an update, as shown in wait notices and timeout errors.
pub fn update_name(update: &Update<'_>) -> &'static str {
    match update {
        Update::Message(piece) => match piece.role {
            MessageRole::Answer => "message",
            MessageRole::Thought => "thought",
            MessageRole::User => "user message",
        },
        Update::TextEnd { .. } => "message",
        Update::Tool(_) | Update::Refused { .. } => "tool call",
        Update::Terminal(_) => "terminal output",
        Update::Plan { .. } => "plan",
        Update::Context { .. } => "usage",
        Update::Session(_) => "session state",
        Update::Notice => "notice",
        Update::Compaction { .. } => "compaction",
        Update::Subagent { .. } | Update::SubagentMessage { .. } | Update::FromSubagent { .. } => {
            "subagent"
        }
        Update::Step => "step",
        Update::StructuredOutput(_) => "structured output",
        Update::Chunk { .. } => "chunk",
        Update::TransientUpdate | Update::MessageMetadata(_) | Update::Other => "update",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: fn(u64) -> Duration = Duration::from_secs;

    #[test]
    fn activity_restarts_the_idle_timer() {
        let t0 = Instant::now();
        let mut idle_timer = IdleTimer::begin(t0, Some(S(60)));
        assert_eq!(idle_timer.until(), Some(t0 + S(60)));
        assert_eq!(idle_timer.last_activity(t0 + S(1)), None);
        assert!(!idle_timer.note_activity(t0 + S(50), "plan"));
        assert_eq!(idle_timer.until(), Some(t0 + S(110)));
        assert_eq!(idle_timer.elapsed(t0 + S(53)), S(3));
        assert_eq!(idle_timer.last_activity(t0 + S(53)), Some(("plan", S(3))));
    }

    #[test]
    fn paused_reads_do_not_count_for_the_idle_timer() {
        let t0 = Instant::now();
        let mut idle_timer = IdleTimer::begin(t0, Some(S(60)));
        idle_timer.postpone(S(1000));
        assert_eq!(idle_timer.elapsed(t0 + S(1001)), S(1));
        assert_eq!(idle_timer.until(), Some(t0 + S(1060)));
        idle_timer.note_activity(t0 + S(1001), "plan");
        assert_eq!(idle_timer.elapsed(t0 + S(1003)), S(2));
    }

    #[test]
    fn notice_intervals_double() {
        let t0 = Instant::now();
        let mut idle_timer = IdleTimer::begin(t0, None);
        for at in [10, 20, 40, 80] {
            assert_eq!(idle_timer.notice_at(S(10)), Some(t0 + S(at)));
            idle_timer.note_notice(S(10), t0 + S(at));
        }
        assert!(idle_timer.note_activity(t0 + S(90), "plan"));
        assert_eq!(idle_timer.notice_at(S(10)), Some(t0 + S(100)));
        // Intervals that passed without a notice count as one.
        idle_timer.note_notice(S(10), t0 + S(90 + 25));
        assert_eq!(idle_timer.notice_at(S(10)), Some(t0 + S(90 + 40)));
    }

    #[test]
    fn durations_are_formatted_with_units() {
        let cases = [
            (0, "0 ms"),
            (500, "500 ms"),
            (1900, "1 s"),
            (60_000, "60 s"),
            (601_000, "10 min"),
        ];
        for (ms, want) in cases {
            assert_eq!(format_duration(Duration::from_millis(ms)), want);
        }
    }
}
