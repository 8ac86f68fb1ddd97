//! Idle timer: how long an agent has sent nothing while acpipe waits for it.

use super::event::{Update, Voice};
use std::time::{Duration, Instant};

/// Idle timer of one wait for an agent.
#[derive(Debug, Clone, Copy)]
pub struct Silence {
    began: Instant,
    /// Time and kind of the last output.
    heard: Option<(Instant, &'static str)>,
    /// Time since the last output in which acpipe did not read the agent.
    deaf: Duration,
    /// The idle timeout.
    limit: Option<Duration>,
    /// Number of notice intervals that have passed since the last output.
    told: u32,
}

impl Silence {
    /// Starts the timer.
    #[must_use]
    pub fn begin(now: Instant, limit: Option<Duration>) -> Self {
        Self {
            began: now,
            heard: None,
            deaf: Duration::ZERO,
            limit,
            told: 0,
        }
    }

    /// Resets the timer on output of kind `what`. Returns `true` if a notice of the wait was sent before.
    pub fn hear(&mut self, now: Instant, what: &'static str) -> bool {
        self.heard = Some((now, what));
        self.deaf = Duration::ZERO;
        std::mem::take(&mut self.told) > 0
    }

    /// Returns `true` if `at` is later than the last output.
    #[must_use]
    pub fn is_news(&self, at: Instant) -> bool {
        at > self.heard.map_or(self.began, |(at, _)| at)
    }

    /// Excludes a time in which acpipe did not read the agent.
    pub fn postpone(&mut self, by: Duration) {
        self.deaf += by;
    }

    /// Start of the idle time, moved by the time in which acpipe did not read the agent.
    fn since(&self) -> Instant {
        self.heard.map_or(self.began, |(at, _)| at) + self.deaf
    }

    /// Returns how long the agent has been idle.
    #[must_use]
    pub fn lasted(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.since())
    }

    /// When the idle timeout is reached; `None` without a timeout.
    #[must_use]
    pub fn until(&self) -> Option<Instant> {
        self.since().checked_add(self.limit?)
    }

    /// When the next notice of the wait is due: after `first`, then each time after twice as long.
    #[must_use]
    pub fn tell_at(&self, first: Duration) -> Option<Instant> {
        let wait = first.checked_mul(1_u32.checked_shl(self.told)?)?;
        self.since().checked_add(wait)
    }

    /// Records that a notice was sent. Notices that became due meanwhile count as sent.
    pub fn note_told(&mut self, first: Duration, now: Instant) {
        while self.tell_at(first).is_some_and(|at| at <= now) {
            self.told += 1;
        }
    }

    /// Returns the kind of the last output and the time since then.
    #[must_use]
    pub fn heard(&self, now: Instant) -> Option<(&'static str, Duration)> {
        let (at, what) = self.heard?;
        Some((what, now.saturating_duration_since(at)))
    }
}

/// Formats a duration briefly: in milliseconds below one second, in seconds below ten minutes, otherwise in
/// minutes.
#[must_use]
pub fn in_words(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0 => format!("{} ms", time.as_millis()),
        1..600 => format!("{seconds} s"),
        _ => format!("{} min", seconds / 60),
    }
}

/// Returns the kind of an update, as shown in wait notices and timeout errors.
#[must_use]
pub fn word(update: &Update<'_>) -> &'static str {
    match update {
        Update::Message(piece) => match piece.voice {
            Voice::Answer => "message",
            Voice::Thought => "thought",
            Voice::User => "user message",
        },
        Update::WordsEnd { .. } => "message",
        Update::Tool(_) | Update::Refused { .. } => "tool call",
        Update::Terminal(_) => "terminal output",
        Update::Plan { .. } => "plan",
        Update::Context { .. } => "usage",
        Update::Session(_) => "session state",
        Update::Notice => "notice",
        Update::Compaction { .. } => "compaction",
        Update::Subagent { .. } | Update::Letter { .. } | Update::OfSubagent { .. } => "subagent",
        Update::Step => "step",
        Update::StructuredOutput(_) => "structured output",
        Update::Passing | Update::Other => "update",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: fn(u64) -> Duration = Duration::from_secs;

    #[test]
    fn activity_restarts_the_idle_timer() {
        let t0 = Instant::now();
        let mut silence = Silence::begin(t0, Some(S(60)));
        assert_eq!(silence.until(), Some(t0 + S(60)));
        assert_eq!(silence.heard(t0 + S(1)), None);
        assert!(!silence.hear(t0 + S(50), "plan"));
        assert_eq!(silence.until(), Some(t0 + S(110)));
        assert_eq!(silence.lasted(t0 + S(53)), S(3));
        assert_eq!(silence.heard(t0 + S(53)), Some(("plan", S(3))));
    }

    #[test]
    fn paused_reads_do_not_count_for_the_idle_timer() {
        let t0 = Instant::now();
        let mut silence = Silence::begin(t0, Some(S(60)));
        silence.postpone(S(1000));
        assert_eq!(silence.lasted(t0 + S(1001)), S(1));
        assert_eq!(silence.until(), Some(t0 + S(1060)));
        silence.hear(t0 + S(1001), "plan");
        assert_eq!(silence.lasted(t0 + S(1003)), S(2));
    }

    #[test]
    fn notice_intervals_double() {
        let t0 = Instant::now();
        let mut silence = Silence::begin(t0, None);
        for at in [10, 20, 40, 80] {
            assert_eq!(silence.tell_at(S(10)), Some(t0 + S(at)));
            silence.note_told(S(10), t0 + S(at));
        }
        assert!(silence.hear(t0 + S(90), "plan"));
        assert_eq!(silence.tell_at(S(10)), Some(t0 + S(100)));
        // Intervals that passed without a notice count as one.
        silence.note_told(S(10), t0 + S(90 + 25));
        assert_eq!(silence.tell_at(S(10)), Some(t0 + S(90 + 40)));
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
            assert_eq!(in_words(Duration::from_millis(ms)), want);
        }
    }
}
