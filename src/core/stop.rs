//! Ending an agent in order: close its stdin, then SIGTERM, then SIGKILL to its group.

use std::time::{Duration, Instant};

/// How long an agent may take to end after its stdin was closed.
pub const CLOSE_GRACE: Duration = Duration::from_secs(2);

/// How long it may take after SIGTERM.
pub const TERM_GRACE: Duration = Duration::from_secs(3);

/// How long it may take after SIGTERM when the user is in a hurry.
pub const HURRY_GRACE: Duration = Duration::from_millis(300);

/// A step of the ending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    CloseInput,
    Terminate,
    Kill,
}

/// How far an ending is.
#[derive(Debug, Clone, Copy)]
pub struct Stop {
    last: Step,
    since: Instant,
    hurried: bool,
}

impl Stop {
    /// The first step is to be done now.
    #[must_use]
    pub fn begin(now: Instant) -> (Self, Step) {
        let last = Step::CloseInput;
        let stop = Self {
            last,
            since: now,
            hurried: false,
        };
        (stop, last)
    }

    /// When the next step is due; `None` after the last.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        match self.last {
            Step::CloseInput => Some(self.since + CLOSE_GRACE),
            Step::Terminate => Some(self.since + TERM_GRACE),
            Step::Kill => None,
        }
    }

    /// The step that is due, if one is.
    pub fn tick(&mut self, now: Instant) -> Option<Step> {
        if self.deadline()? > now {
            return None;
        }
        self.since = now;
        self.last = match self.last {
            Step::CloseInput => Step::Terminate,
            Step::Terminate | Step::Kill => Step::Kill,
        };
        Some(self.last)
    }

    /// Shortens the graces: SIGTERM now, so that the agent can still end its tools, SIGKILL very soon; or
    /// at once, if this was asked before.
    pub fn hurry(&mut self, now: Instant) -> Step {
        if self.hurried || self.last == Step::Kill {
            self.last = Step::Kill;
            return Step::Kill;
        }
        self.hurried = true;
        self.last = Step::Terminate;
        self.since = now.checked_sub(TERM_GRACE).unwrap_or(now) + HURRY_GRACE;
        Step::Terminate
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_step_waits_for_its_grace() {
        let t0 = Instant::now();
        let at = |s: u64| t0 + Duration::from_secs(s);
        let (mut stop, first) = Stop::begin(t0);
        assert_eq!(first, Step::CloseInput);
        assert_eq!(stop.tick(at(1)), None);
        assert_eq!(stop.tick(at(2)), Some(Step::Terminate));
        assert_eq!(stop.tick(at(4)), None);
        assert_eq!(stop.tick(at(5)), Some(Step::Kill));
        assert_eq!(stop.deadline(), None);
        assert_eq!(stop.tick(at(99)), None);
    }

    #[test]
    fn a_hurry_leaves_a_short_grace() {
        let t0 = Instant::now() + TERM_GRACE;
        let (mut stop, _) = Stop::begin(t0);
        assert_eq!(stop.hurry(t0), Step::Terminate);
        assert_eq!(stop.tick(t0), None);
        assert_eq!(stop.tick(t0 + HURRY_GRACE), Some(Step::Kill));
        let (mut stop, _) = Stop::begin(t0);
        assert_eq!(
            (stop.hurry(t0), stop.hurry(t0)),
            (Step::Terminate, Step::Kill)
        );
    }
}
