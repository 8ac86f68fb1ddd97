//! Process of an agent, or another transport.

use crate::effect::{AgentId, Effect, Measure};
use crate::stop::{Stop, StopAction};
use acpipe_model::dialect::{Child, Transport};
use acpipe_model::limits::{Limits, Timeout};
use acpipe_model::line_repair::LostLine;
use acpipe_model::process_health::{OutputTail, ProcessHealth};
use acpipe_model::secret::Secrets;
use acpipe_protocol::wire::ProcessStatus;
use std::time::{Duration, Instant};

/// Process of an agent, or another transport.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct Process {
    /// Id in effects and inputs.
    pub id: AgentId,
    /// The dialect's number.
    pub child: Child,
    /// Process id; `None` before the process runs.
    pub pid: Option<u32>,
    /// Time since which it runs.
    pub began: Option<Instant>,
    /// Last measurement of its process tree.
    pub measure: Option<Measure>,
    /// Whether the transport is read-only: it accepts no lines and is never stopped.
    pub is_read_only: bool,
    pub has_start_limit: bool,
    /// Time at which its start was ordered.
    pub since: Instant,
    /// Time of its last output on stdout.
    pub last_activity: Option<Instant>,
    /// End of its stderr, and pending writes to its stdin.
    pub health: ProcessHealth,
    /// End of the lines on its stdout that are no messages, such as the reason why it exits.
    stray: OutputTail,
    /// Whether its output is ignored because reading it panicked.
    pub is_ignored: bool,
    /// Whether its stdin was closed without a stop.
    pub input_closed: bool,
    pub stop: Option<Stop>,
}

impl Process {
    /// Creates a transport whose start was just ordered.
    #[must_use]
    pub fn new(id: AgentId, child: Child, transport: &Transport, now: Instant) -> Self {
        Self {
            id,
            child,
            pid: None,
            began: None,
            measure: None,
            is_read_only: transport.is_read_only(),
            has_start_limit: transport.has_start_limit(),
            since: now,
            last_activity: None,
            health: ProcessHealth::default(),
            stray: OutputTail::default(),
            is_ignored: false,
            input_closed: false,
            stop: None,
        }
    }

    /// Returns `true` if the process serves a single session.
    pub fn is_for_one(&self) -> bool {
        self.child != Child::MAIN
    }

    /// Returns `true` if its stdin is open and not to be closed.
    pub fn has_open_input(&self) -> bool {
        !self.is_read_only && !self.input_closed && self.stop.is_none()
    }

    /// Returns a description of its last output for a timeout's message, and how long ago it was.
    pub fn last_output(&self, now: Instant) -> Option<(&'static str, Duration)> {
        let last_activity = self.last_activity?;
        Some((
            "unrelated output",
            now.saturating_duration_since(last_activity),
        ))
    }

    /// Adds a line of its stdout that is given up, if it is text for people.
    pub fn add_stray(&mut self, line: &LostLine<'_>) {
        if let Some(text) = line.text() {
            self.stray.add(text.as_bytes());
            self.stray.add(b"\n");
        }
    }

    /// Returns the end of the lines on its stdout that are no messages, without secrets.
    pub fn stray_text(&self, secrets: &Secrets) -> String {
        secrets.hide(&self.stray.text()).into_owned()
    }

    /// Returns its status for `agent/status`; `None` before it runs.
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

    /// Returns the deadline of its start; `None` once it has started or is being stopped.
    pub fn start_limit(&self, limits: &Limits) -> Option<Instant> {
        if self.pid.is_some()
            || self.last_activity.is_some()
            || !self.has_start_limit
            || self.stop.is_some()
        {
            return None;
        }
        limits.until(Timeout::Spawn, self.since)
    }

    /// Begins its stop; returns the first step.
    pub fn begin_stop(&mut self, now: Instant, limits: &Limits) -> Effect {
        let begin = if self.input_closed {
            Stop::begin_with_closed_input
        } else {
            Stop::begin
        };
        let (stop, first) = begin(now, limits);
        self.stop = Some(stop);
        self.effect(first)
    }

    pub fn effect(&self, step: StopAction) -> Effect {
        match step {
            StopAction::CloseInput => Effect::CloseInput(self.id),
            StopAction::Terminate => Effect::Terminate(self.id),
            StopAction::Kill => Effect::Kill(self.id),
        }
    }
}
