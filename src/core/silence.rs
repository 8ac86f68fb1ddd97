//! How long an agent has said nothing of something that is waited for.

use super::event::{Update, Voice};
use std::time::{Duration, Instant};

/// What was heard since somebody began to wait.
#[derive(Debug, Clone, Copy)]
pub struct Silence {
    began: Instant,
    /// When something was last heard, and what.
    heard: Option<(Instant, &'static str)>,
    /// Time since then in which nobody listened.
    deaf: Duration,
    /// How long it may last.
    limit: Option<Duration>,
    /// How often somebody was told of it since something was last heard.
    told: u32,
}

impl Silence {
    /// Something is waited for from now on.
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

    /// Something was heard; true if somebody was told of the silence before.
    pub fn hear(&mut self, now: Instant, what: &'static str) -> bool {
        self.heard = Some((now, what));
        self.deaf = Duration::ZERO;
        std::mem::take(&mut self.told) > 0
    }

    /// Whether something heard then was heard after all the rest.
    #[must_use]
    pub fn is_news(&self, at: Instant) -> bool {
        at > self.heard.map_or(self.began, |(at, _)| at)
    }

    /// For so long nobody listened.
    pub fn postpone(&mut self, by: Duration) {
        self.deaf += by;
    }

    /// Since when nothing was heard, without the time in which nobody listened.
    fn since(&self) -> Instant {
        self.heard.map_or(self.began, |(at, _)| at) + self.deaf
    }

    /// How long it lasts.
    #[must_use]
    pub fn lasted(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.since())
    }

    /// When it has lasted for too long.
    #[must_use]
    pub fn until(&self) -> Option<Instant> {
        self.since().checked_add(self.limit?)
    }

    /// When somebody is to be told of it: after `first`, then after twice as long each time.
    #[must_use]
    pub fn tell_at(&self, first: Duration) -> Option<Instant> {
        let wait = first.checked_mul(1_u32.checked_shl(self.told)?)?;
        self.since().checked_add(wait)
    }

    /// Somebody was told of it: once, however often it was due meanwhile.
    pub fn note_told(&mut self, first: Duration, now: Instant) {
        while self.tell_at(first).is_some_and(|at| at <= now) {
            self.told += 1;
        }
    }

    /// What was last heard, and how long ago.
    #[must_use]
    pub fn heard(&self, now: Instant) -> Option<(&'static str, Duration)> {
        let (at, what) = self.heard?;
        Some((what, now.saturating_duration_since(at)))
    }
}

/// A duration in words, as short as it makes sense.
#[must_use]
pub fn in_words(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0 => format!("{} ms", time.as_millis()),
        1..600 => format!("{seconds} s"),
        _ => format!("{} min", seconds / 60),
    }
}

/// What an update is about, in a word.
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
    fn it_begins_anew_with_whatever_is_heard() {
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
    fn time_in_which_nobody_listened_does_not_count() {
        let t0 = Instant::now();
        let mut silence = Silence::begin(t0, Some(S(60)));
        silence.postpone(S(1000));
        assert_eq!(silence.lasted(t0 + S(1001)), S(1));
        assert_eq!(silence.until(), Some(t0 + S(1060)));
        silence.hear(t0 + S(1001), "plan");
        assert_eq!(silence.lasted(t0 + S(1003)), S(2));
    }

    #[test]
    fn it_is_told_ever_more_seldom() {
        let t0 = Instant::now();
        let mut silence = Silence::begin(t0, None);
        for at in [10, 20, 40, 80] {
            assert_eq!(silence.tell_at(S(10)), Some(t0 + S(at)));
            silence.note_told(S(10), t0 + S(at));
        }
        assert!(silence.hear(t0 + S(90), "plan"));
        assert_eq!(silence.tell_at(S(10)), Some(t0 + S(100)));
        // One that slept through several times is told once.
        silence.note_told(S(10), t0 + S(90 + 25));
        assert_eq!(silence.tell_at(S(10)), Some(t0 + S(90 + 40)));
    }

    #[test]
    fn times_have_words() {
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
