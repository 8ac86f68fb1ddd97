//! Ordered stop of an agent process: close its stdin, then send SIGTERM, then SIGKILL to its process group.

use acpipe_model::limits::{Limits, Timeout};
use std::time::{Duration, Instant};

/// Time between SIGTERM and SIGKILL in an expedited stop.
pub const EXPEDITED_GRACE: Duration = Duration::from_millis(300);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopAction {
    CloseInput,
    /// Send SIGTERM.
    Terminate,
    /// Send SIGKILL.
    Kill,
}

#[derive(Debug, Clone, Copy)]
pub struct Stop {
    last: StopAction,
    /// Time at which the next step is due.
    next: Option<Instant>,
    /// Time that the process gets after SIGTERM.
    terminate: Duration,
    expedited: bool,
}

impl Stop {
    /// Begins a stop. The returned step is to be performed at once.
    pub fn begin(now: Instant, limits: &Limits) -> (Self, StopAction) {
        let last = StopAction::CloseInput;
        let stop = Self {
            last,
            next: limits.until(Timeout::Close, now),
            terminate: limits.of(Timeout::Terminate).unwrap_or_default(),
            expedited: false,
        };
        (stop, last)
    }

    /// Begins the stop of a process whose stdin is closed already: with SIGTERM, to be sent at once.
    pub fn begin_with_closed_input(now: Instant, limits: &Limits) -> (Self, StopAction) {
        let last = StopAction::Terminate;
        let terminate = limits.of(Timeout::Terminate).unwrap_or_default();
        let stop = Self {
            last,
            next: now.checked_add(terminate),
            terminate,
            expedited: false,
        };
        (stop, last)
    }

    /// Returns when the next step is due; `None` after the last step.
    pub fn deadline(&self) -> Option<Instant> {
        self.next
    }

    /// Takes the next step if it is due.
    pub fn tick(&mut self, now: Instant) -> Option<StopAction> {
        if self.deadline()? > now {
            return None;
        }
        (self.last, self.next) = match self.last {
            StopAction::CloseInput => (StopAction::Terminate, now.checked_add(self.terminate)),
            StopAction::Terminate | StopAction::Kill => (StopAction::Kill, None),
        };
        Some(self.last)
    }

    /// Expedites the stop. Returns SIGTERM at first, so that the agent can still end its tools, with SIGKILL
    /// shortly after; a second call, or a call after SIGKILL, returns SIGKILL.
    pub fn expedite(&mut self, now: Instant) -> StopAction {
        if self.expedited || self.last == StopAction::Kill {
            (self.last, self.next) = (StopAction::Kill, None);
            return StopAction::Kill;
        }
        self.expedited = true;
        self.last = StopAction::Terminate;
        self.next = Some(now + EXPEDITED_GRACE);
        StopAction::Terminate
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_step_waits_for_its_grace() {
        let t0 = Instant::now();
        let at = |s: u64| t0 + Duration::from_secs(s);
        let (mut stop, first) = Stop::begin(t0, &Limits::default());
        assert_eq!(first, StopAction::CloseInput);
        assert_eq!(stop.tick(at(1)), None);
        assert_eq!(stop.tick(at(2)), Some(StopAction::Terminate));
        assert_eq!(stop.tick(at(4)), None);
        assert_eq!(stop.tick(at(5)), Some(StopAction::Kill));
        let (mut stop, first) = Stop::begin_with_closed_input(t0, &Limits::default());
        assert_eq!(first, StopAction::Terminate);
        assert_eq!(stop.tick(at(2)), None);
        assert_eq!(stop.tick(at(3)), Some(StopAction::Kill));
        assert_eq!(stop.deadline(), None);
        assert_eq!(stop.tick(at(99)), None);
    }

    #[test]
    fn expedited_stop_has_a_short_grace() {
        let t0 = Instant::now();
        let (mut stop, _) = Stop::begin(t0, &Limits::default());
        assert_eq!(stop.expedite(t0), StopAction::Terminate);
        assert_eq!(stop.tick(t0), None);
        assert_eq!(stop.tick(t0 + EXPEDITED_GRACE), Some(StopAction::Kill));
        let (mut stop, _) = Stop::begin(t0, &Limits::default());
        assert_eq!(
            (stop.expedite(t0), stop.expedite(t0)),
            (StopAction::Terminate, StopAction::Kill)
        );
    }
}
