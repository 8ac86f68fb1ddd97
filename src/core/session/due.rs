//! What is due in a session, and when.

use super::{SessionMachine, Stage};
use std::time::{Duration, Instant};

/// When a session that is being opened is said to be slow for the first time.
const SLOW_OPENING: Duration = Duration::from_secs(2);

/// When a turn is said to be silent for the first time: tools and models take their time.
const SILENT_TURN: Duration = Duration::from_secs(10);

/// A time and what it is the time of.
type Due = Option<(Instant, &'static str)>;

impl SessionMachine {
    /// When something of this session is given up or told, and what.
    #[must_use]
    pub fn deadline(&self) -> Due {
        let stage = match &self.stage {
            Stage::Resting => None,
            Stage::Opening { deadline, .. } => {
                let silent = deadline.map(|at| (at, "open"));
                [silent, self.opening_out()].into_iter().flatten().min()
            }
            Stage::Live { .. } => {
                let running = self.running.as_ref();
                let paused = running.and_then(|r| r.attempts.paused_until());
                let abandoned = self.abandoned.as_ref().and_then(|a| a.until);
                let abandoned = abandoned.map(|at| (at, "the end of a turn that was given up"));
                let all = [
                    self.cancel_given_up(),
                    self.silent_out(),
                    self.quiet(),
                    self.answers_due(),
                    paused,
                    abandoned,
                ];
                all.into_iter().flatten().min()
            }
        };
        let all = [
            stage,
            self.settings.deadline(),
            self.tells_silence(),
            self.turn_out(),
            self.client_due(),
        ];
        all.into_iter().flatten().min()
    }

    /// Whether something is to be done without another event of the session.
    #[must_use]
    pub fn has_more_to_do(&self) -> bool {
        self.deadline().is_some()
            || self.log.is_dirty()
            || self.has_unsent()
            || self.subscribers.are_lagging()
    }

    /// When the cancel of the turn is given up; one that was answered needs no more time.
    #[must_use]
    pub fn cancel_given_up(&self) -> Due {
        let running = self.running.as_ref().filter(|r| r.ended.is_none())?;
        running.cancel_deadline.map(|at| (at, "cancel"))
    }

    /// When the agent has been silent for too long in a turn.
    #[must_use]
    pub fn silent_out(&self) -> Due {
        let running = self.running.as_ref()?;
        let waits = running.ended.is_none() && !running.is_cancelled();
        // Whoever waits for our answer is not silent.
        let waits = waits && running.attempts.pause.is_none();
        let waits = waits && self.asks.is_empty() && self.host_calls.is_empty();
        let until = self.silence.as_ref().filter(|_| waits)?.until()?;
        Some((until, "prompt"))
    }

    /// When the turn has lasted for too long. Its limit is the client's: no wait puts it off.
    #[must_use]
    pub fn turn_out(&self) -> Due {
        let running = self.running.as_ref()?;
        let waits = running.ended.is_none() && !running.is_cancelled();
        let (until, _) = running.limit.filter(|_| waits)?;
        Some((until, "turn"))
    }

    /// When the opening of the session has lasted for too long, whatever the agent says meanwhile. Setting again what
    /// the client had set has limits of its own.
    #[must_use]
    pub fn opening_out(&self) -> Due {
        let Stage::Opening { restore, .. } = &self.stage else {
            return None;
        };
        let until = restore.until.filter(|_| restore.restoring.is_none())?;
        Some((until, "restore"))
    }

    /// When the client is to be told that nothing goes on.
    #[must_use]
    pub fn tells_silence(&self) -> Due {
        let at = self.silence.as_ref()?.tell_at(self.first_told()?)?;
        Some((at, "silence"))
    }

    /// The client is told of it now.
    pub fn note_told(&mut self, now: Instant) {
        if let (Some(first), Some(silence)) = (self.first_told(), &mut self.silence) {
            silence.note_told(first, now);
        }
    }

    /// After how long it is told for the first time.
    fn first_told(&self) -> Option<Duration> {
        match (&self.stage, &self.running) {
            (Stage::Opening { call: Some(_), .. }, _) => Some(SLOW_OPENING),
            (Stage::Opening { restore, .. }, _) if restore.held.is_some() => Some(SLOW_OPENING),
            (Stage::Live { .. }, Some(running)) if running.ended.is_none() => Some(SILENT_TURN),
            _ => None,
        }
    }

    /// The agent is at the session that it is to open: its time begins anew.
    pub fn put_off_opening(&mut self, heard: Instant, limit: Option<Duration>) {
        if let Stage::Opening {
            call: Some(_),
            deadline,
            restore,
            ..
        } = &mut self.stage
            && restore.restoring.is_none()
        {
            *deadline = limit.and_then(|limit| heard.checked_add(limit));
        }
    }

    /// Whether it is on its way to the agent.
    #[must_use]
    pub fn is_opening(&self) -> bool {
        matches!(self.stage, Stage::Opening { .. })
    }

    /// Puts off what is to be given up.
    pub fn postpone(&mut self, by: Duration) {
        self.postpone_client(by);
        self.settings.postpone(by);
        if let Some(silence) = &mut self.silence {
            silence.postpone(by);
        }
        if let Stage::Opening {
            deadline, restore, ..
        } = &mut self.stage
        {
            for until in [deadline.as_mut(), restore.until.as_mut()]
                .into_iter()
                .flatten()
            {
                *until += by;
            }
        }
        if let Some(running) = &mut self.running {
            running.attempts.postpone(by);
            if let Some(deadline) = &mut running.cancel_deadline {
                *deadline += by;
            }
        }
        for until in self.asks.iter_mut().filter_map(|ask| ask.until.as_mut()) {
            *until += by;
        }
        if let Some(until) = self.abandoned.as_mut().and_then(|a| a.until.as_mut()) {
            *until += by;
        }
        if let Some(quiet_at) = self.unprompted.as_mut().and_then(|u| u.quiet_at.as_mut()) {
            *quiet_at += by;
        }
    }
}
