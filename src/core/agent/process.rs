//! One process of an agent, or another transport.

use crate::core::dialect::Child;
use crate::core::effect::{AgentId, Effect, Measure};
use crate::core::limits::{Limits, Wait};
use crate::core::process_health::ProcessHealth;
use crate::core::stop::{Step, Stop};
use crate::proto::wire::ProcessStatus;
use std::time::{Duration, Instant};

/// One process of an agent, or a read-only transport in the place of one.
pub struct Process {
    pub id: AgentId,
    pub child: Child,
    pub pid: Option<u32>,
    /// When it began to run.
    pub began: Option<Instant>,
    pub measure: Option<Measure>,
    /// Whether its transport is read-only: it accepts no lines and is never stopped.
    pub is_read_only: bool,
    /// When its start was ordered.
    pub since: Instant,
    /// When it last wrote to its stdout.
    pub heard: Option<Instant>,
    pub health: ProcessHealth,
    /// Whether its output is not read any more, since reading it panicked.
    pub is_ignored: bool,
    /// Whether its stdin was closed, though it is not to end.
    pub input_closed: bool,
    /// The steps of its end, once it is to end.
    pub stop: Option<Stop>,
}

impl Process {
    #[must_use]
    pub fn new(id: AgentId, child: Child, is_read_only: bool, now: Instant) -> Self {
        Self {
            id,
            child,
            pid: None,
            began: None,
            measure: None,
            is_read_only,
            since: now,
            heard: None,
            health: ProcessHealth::default(),
            is_ignored: false,
            input_closed: false,
            stop: None,
        }
    }

    /// Whether it serves one session alone.
    #[must_use]
    pub fn is_for_one(&self) -> bool {
        self.child != Child::MAIN
    }

    /// Whether its stdin is open, and stays so.
    #[must_use]
    pub fn has_open_input(&self) -> bool {
        !self.is_read_only && !self.input_closed && self.stop.is_none()
    }

    /// Its last output, for a timeout's message, and how long ago.
    #[must_use]
    pub fn last_output(&self, now: Instant) -> Option<(&'static str, Duration)> {
        let heard = self.heard?;
        Some((
            "lines that are no answer",
            now.saturating_duration_since(heard),
        ))
    }

    /// Its state for `agent/status`; `None` before it runs.
    #[must_use]
    pub fn status(&self, now: Instant) -> Option<ProcessStatus> {
        let began = self.began?;
        let up = now.saturating_duration_since(began).as_millis();
        Some(ProcessStatus {
            pid: self.pid?,
            uptime_ms: u64::try_from(up).unwrap_or(u64::MAX),
            tree: self.measure.map(|measure| measure.processes),
            rss_bytes: self.measure.map(|measure| measure.rss),
        })
    }

    /// When it must have started; `None` once that is known.
    #[must_use]
    pub fn start_limit(&self, limits: &Limits) -> Option<Instant> {
        if self.pid.is_some() || self.heard.is_some() || self.is_read_only || self.stop.is_some() {
            return None;
        }
        limits.until(Wait::Spawn, self.since)
    }

    /// Begins its end; returns the first step.
    pub fn begin_stop(&mut self, now: Instant, limits: &Limits) -> Effect {
        let (stop, first) = Stop::begin(now, limits);
        self.stop = Some(stop);
        self.effect(first)
    }

    /// The effect of a step of its end.
    #[must_use]
    pub fn effect(&self, step: Step) -> Effect {
        match step {
            Step::CloseInput => Effect::CloseInput(self.id),
            Step::Terminate => Effect::Terminate(self.id),
            Step::Kill => Effect::Kill(self.id),
        }
    }
}
