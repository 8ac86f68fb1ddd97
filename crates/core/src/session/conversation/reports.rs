//! Reports of ended turns and openings, for telemetry. Without telemetry nothing here runs beyond a check.

use crate::agent_spec::DEFAULT_AGENT;
use crate::cx::Cx;
use crate::effect::Effect;
use crate::report::{Opened, OpeningReport, Period, Report, Subject, ToolReport, TurnReport};
use crate::session::{Conversation, Running, Stage};
use crate::shared::Shared;
use crate::turn_trace::TurnTrace;
use acpipe_model::error::Error;
use acpipe_protocol::wire::{Recovery, TurnSummary};
use std::time::Instant;

/// Counts a turn that begins, and prepares its report if turns are reported.
pub fn note_begin(running: &mut Running, shared: &mut Shared) {
    shared.counters.turns_started += 1;
    let message = &running.attempts.prompt.message;
    running.trace = shared.reports.then(|| TurnTrace::of(message));
}

impl Conversation {
    /// Notes that the opening of the session has begun, unless it has.
    pub fn note_opening(&mut self, now: Instant) {
        if let Stage::Opening(restore) = &mut self.stage {
            restore.begin(now);
        }
    }

    /// Reports a turn that ends now, if turns are reported.
    pub fn report_turn(&self, running: &Running, summary: &TurnSummary, cx: &mut Cx<'_>) {
        let Some(trace) = &running.trace else {
            return;
        };
        let shared = &*cx.shared;
        let period = |began, ended: Option<Instant>| Period {
            began: shared.unix_nanos(began),
            ended: shared.unix_nanos(ended.unwrap_or(cx.now)),
        };
        let tools = running.turn.calls().filter_map(|call| {
            let (began, ended) = trace.times(call.id())?;
            Some(ToolReport {
                id: call.id().to_owned(),
                name: call.name().to_owned(),
                kind: call.kind.clone(),
                period: period(began, ended),
                outcome: call.outcome(),
            })
        });
        let report = TurnReport {
            subject: self.subject_of_report(cx),
            turn: running.turn_id.clone(),
            period: period(running.started, None),
            first_output: running.first_output.map(|at| shared.unix_nanos(at)),
            parent: trace.parent(),
            finish_reason: summary.finish_reason.clone(),
            stop_reason: summary.stop_reason.clone(),
            error: summary.errors.first().map(|error| error.kind.clone()),
            usage: summary.usage,
            attempts: summary.attempts,
            tools: tools.collect(),
        };
        cx.effects
            .push(Effect::Report(Report::Turn(Box::new(report))));
    }

    /// Reports the opening of the session, which ends now, if openings are reported.
    pub fn report_opening(&self, result: Result<&Recovery, &Error>, cx: &mut Cx<'_>) {
        let Stage::Opening(restore) = &self.stage else {
            return;
        };
        if !cx.shared.reports {
            return;
        }
        let report = OpeningReport {
            subject: self.subject_of_report(cx),
            period: Period {
                began: cx.shared.unix_nanos(restore.began().unwrap_or(cx.now)),
                ended: cx.shared.unix_nanos(cx.now),
            },
            outcome: match result {
                Ok(recovery) => Ok(Opened {
                    rung: recovery.rung,
                    memory: recovery.memory,
                    failed: recovery.failed.iter().map(|attempt| attempt.rung).collect(),
                }),
                Err(error) => Err(error.kind.name()),
            },
        };
        cx.effects
            .push(Effect::Report(Report::Opening(Box::new(report))));
    }

    pub fn subject_of_report(&self, cx: &Cx<'_>) -> Subject {
        let name = cx.agent.name();
        Subject {
            session: self.id.clone(),
            agent: if name == DEFAULT_AGENT {
                cx.agent.public_name()
            } else {
                name.to_owned()
            },
            agent_version: cx.agent.ready().and_then(|info| info.version.clone()),
            protocol: cx.agent.protocol_name(),
            model: self
                .settings
                .model()
                .or_else(|| self.settings.options().model.clone()),
        }
    }
}
