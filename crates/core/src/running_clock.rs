//! Clock that counts only the time in which acpipe runs.
//!
//! A process can be stopped for longer than any limit: by SIGSTOP, in a frozen container, on a suspended
//! machine. That time does not count towards any limit, and output written meanwhile is read before a
//! deadline fires. The loop reads the clock whenever it wakes; if it wakes later than requested, it was
//! paused. While a deadline is pending, the loop also wakes regularly, to notice a pause long before the
//! deadline.
//!
//! *Real* time is the time of the system's monotonic clock. *Running* time is the time that the rest of the
//! core gets.

use std::time::{Duration, Instant};

/// Delay of a wakeup that is still normal on a busy machine.
const TOLERANCE: Duration = Duration::from_millis(100);

/// Longest normal duration of one step of the loop; a longer one is a pause. Work up to that counts as
/// running time, since it is part of the duration of turns.
const STEP_TOLERANCE: Duration = Duration::from_secs(1);

/// Time after a pause in which no deadline fires, so that pending output is read first.
pub const GRACE: Duration = Duration::from_millis(500);

/// Shortest and longest interval between two reads of the clock while a deadline is pending.
const HEARTBEAT: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(60));

/// Running time, derived from real time.
#[derive(Debug)]
pub struct RunningClock {
    /// Real time that does not count.
    paused: Duration,
    /// Running time at the last read.
    now: Instant,
    /// Real time at which the loop wakes at the latest; `None` while no deadline is pending.
    wake: Option<Instant>,
    /// Real time before which no deadline fires.
    grace: Option<Instant>,
}

impl RunningClock {
    /// Creates a clock that shows this time now.
    #[must_use]
    pub fn new(real: Instant) -> Self {
        Self {
            paused: Duration::ZERO,
            now: real,
            wake: Some(real),
            grace: None,
        }
    }

    /// Returns the running time at the last read.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Returns the real time that did not count so far.
    pub fn paused(&self) -> Duration {
        self.paused
    }

    /// Reads the clock when the loop wakes. Returns how long acpipe was paused during the sleep, if it was.
    pub fn note_wakeup(&mut self, real: Instant) -> Option<Duration> {
        self.advance(real, TOLERANCE)
    }

    /// Reads the clock after the loop has done its work. Returns how long acpipe was paused meanwhile, if it
    /// was.
    pub fn note_step(&mut self, real: Instant) -> Option<Duration> {
        self.advance(real, STEP_TOLERANCE)
    }

    fn advance(&mut self, real: Instant, tolerance: Duration) -> Option<Duration> {
        let wake = self.wake.replace(real);
        let late = wake.map(|wake| real.saturating_duration_since(wake));
        let late = late.filter(|late| *late > tolerance);
        if let Some(late) = late {
            self.paused += late;
            // The grace is not renewed at once: on a machine that is always late, deadlines must still fire.
            if self.grace.is_none_or(|grace| real >= grace + GRACE) {
                self.grace = Some(real + GRACE);
            }
        }
        let running = real.checked_sub(self.paused).unwrap_or(self.now);
        self.now = self.now.max(running);
        late
    }

    /// Returns the real time at which to wake for a deadline in running time: at the deadline, or earlier to
    /// read the clock.
    pub fn sleep(&mut self, due: Option<Instant>) -> Option<Instant> {
        self.wake = due.map(|due| {
            let left = due.saturating_duration_since(self.now);
            let beat = (left / 4).clamp(HEARTBEAT.0, HEARTBEAT.1);
            self.real(due.min(self.now + beat))
        });
        self.wake
    }

    /// Converts a running time to real time, not before the end of the grace after a pause.
    pub fn real(&self, running: Instant) -> Instant {
        let real = running + self.paused;
        self.grace.map_or(real, |grace| real.max(grace))
    }

    /// Returns `true` if a deadline fires, by the last read of the clock.
    pub fn is_due(&self, due: Instant, real: Instant) -> bool {
        due <= self.now && self.grace.is_none_or(|grace| grace <= real)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    /// Sleeps like the loop until the deadline fires, each time `late` longer than requested. Returns the
    /// real time that passed.
    fn real_time_to(limit: Duration, late: impl Fn(usize) -> Duration) -> Duration {
        let begun = Instant::now();
        let (mut clock, mut real) = (RunningClock::new(begun), begun);
        let due = clock.now() + limit;
        for n in 0..100_000 {
            real = real.max(clock.sleep(Some(due)).unwrap()) + late(n);
            clock.note_wakeup(real);
            clock.note_step(real);
            if clock.is_due(due, real) {
                return real - begun;
            }
        }
        panic!("the deadline never comes");
    }

    #[test]
    fn deadline_is_on_time_without_a_pause() {
        for limit in [MS(1), MS(50), MS(1000), MS(60_000), MS(3_600_000)] {
            assert_eq!(real_time_to(limit, |_| MS(0)), limit);
            // A busy machine is late now and then.
            assert!(real_time_to(limit, |_| MS(90)) <= limit + MS(90));
        }
    }

    #[test]
    fn a_pause_does_not_count_and_is_followed_by_a_grace() {
        for pause in [MS(200), MS(10_000), MS(36_000_000)] {
            for limit in [MS(50), MS(1000), MS(60_000)] {
                for at in 0..8 {
                    let took = real_time_to(limit, |n| if n == at { pause } else { MS(0) });
                    if at == 0 {
                        assert!(took >= limit + pause && took >= pause + GRACE, "{took:?}");
                    }
                    assert!(took <= limit + pause + GRACE, "{took:?}");
                }
            }
        }
    }

    #[test]
    fn deadline_expires_on_a_slow_machine() {
        let took = real_time_to(MS(1000), |_| MS(300));
        assert!(took < MS(10_000), "{took:?}");
    }

    #[test]
    fn time_spent_in_one_step_is_a_pause_too() {
        let begun = Instant::now();
        let mut clock = RunningClock::new(begun);
        assert_eq!(clock.note_step(begun + MS(900)), None);
        let begun = begun + MS(900);
        assert_eq!(clock.note_step(begun + MS(5000)), Some(MS(5000)));
        assert_eq!(clock.now(), begun);
        assert!(!clock.is_due(begun, begun + MS(5000)));
        assert_eq!(clock.note_wakeup(begun + MS(5000) + GRACE), Some(GRACE));
        assert!(clock.is_due(begun, begun + MS(5000) + GRACE));
    }

    #[test]
    fn idle_time_without_a_deadline_is_not_a_pause() {
        let begun = Instant::now();
        let mut clock = RunningClock::new(begun);
        assert_eq!(clock.sleep(None), None);
        assert_eq!(clock.note_wakeup(begun + MS(5000)), None);
        assert_eq!(clock.now(), begun + MS(5000));
    }
}
