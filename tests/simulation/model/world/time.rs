//! Passage of time, and pauses in which acpipe does not run.

use super::World;
use acpipe_core::hub::{Hub, HubCx};
use acpipe_core::running_clock::RunningClock;
use std::time::Duration;

impl World {
    /// Pauses acpipe for a while. Input that arrived meanwhile must be read before any timeout expires, and
    /// only the time for which the loop wanted to sleep may count.
    fn pause(&mut self) {
        let due = self.hub.deadline().map(|(at, _)| at);
        let mut clock = RunningClock::new(self.now);
        let Some(wake) = clock.sleep(due) else { return };
        let by = self.dice.pick(&[200, 1_000, 61_000, 3_600_000]);
        let real = wake.max(self.now) + Duration::from_millis(by);
        self.trace(|| format!("acpipe does not run for {by} ms"));
        assert!(
            clock.note_wakeup(real).is_some(),
            "the pause is not noticed"
        );
        assert!(clock.now() <= wake.max(self.now), "the pause counts");
        self.now = clock.now();
        let due = self.hub.deadline();
        let acted_on = due.filter(|(at, _)| clock.is_due(*at, real));
        assert_eq!(acted_on, None, "it is given up before what waits is read");
        while !self.is_read_paused()
            && let Some(id) = self.process_with_output()
        {
            self.deliver(id, usize::MAX);
            self.drain();
            self.settle();
        }
        self.tick();
    }

    pub(super) fn time_passes(&mut self) {
        if !self.clients.is_some_full() && self.dice.percent(5) {
            self.pause();
            return;
        }
        let due = self.hub.deadline().map(|(at, _)| at);
        let by = self
            .dice
            .pick(&[1, 20, 60, 300, 2_000, 11_000, 61_000, 130_000]);
        let later = self.now + Duration::from_millis(by);
        self.now = match due {
            Some(at) if self.dice.percent(70) => at.max(self.now),
            _ => later,
        };
        self.tick();
    }

    /// Runs everything that is due.
    pub(super) fn tick(&mut self) {
        let due = |hub: &Hub, now| hub.deadline().filter(|(at, _)| *at <= now);
        if due(&self.hub, self.now).is_none() {
            return;
        }
        if self.is_read_paused() && !self.hub.is_stopping() {
            return;
        }
        if self.dice.percent(70) {
            self.drain();
        }
        self.trace(|| format!("it is time: {:?}", due(&self.hub, self.now)));
        self.hub.wake(self.now);
        self.hub.tick(&mut HubCx::new(self.now, &mut self.clients));
        self.settle();
        if let Some((at, what)) = due(&self.hub, self.now) {
            panic!("{what} is due since {:?}, after the tick", self.now - at);
        }
    }
}
