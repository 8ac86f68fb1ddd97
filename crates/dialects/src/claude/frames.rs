//! Conversion of the frames of a CLI process to neutral updates.
//!
//! Owns what later frames refer to: messages (`Speakers`), tool calls, reports of the CLI (`SystemReports`), the shape of deltas. It may
//! not answer the CLI, and knows no prompt and no call of acpipe.

mod block_updates;
mod blocks;
mod delta_runs;
mod speakers;
mod stream;
mod system;
mod user;
mod whole_blocks;

use crate::claude::state::Facts;
use acpipe_json::{Members, text};
use acpipe_model::event::{AgentEvent, LostCall, Original, Update};
use acpipe_model::line_repair::{NOT_A_MESSAGE, values_of};
use acpipe_model::update_run::UpdateRun;
use acpipe_protocol::claude::Frame;
use delta_runs::DeltaRuns;
use serde_json::value::RawValue;
use speakers::Speakers;
use std::borrow::Cow;
use std::collections::HashSet;
use system::SystemReports;
use user::user;

/// State across the frames of a process.
#[derive(Debug, Default)]
pub struct Frames {
    /// The agent and its subagents that have sent output in this turn.
    speakers: Speakers,
    /// Tool calls of the turn.
    calls: HashSet<String>,
    reports: SystemReports,
    /// Error that the CLI sent instead of an answer.
    failure: Option<Failure>,
    deltas: DeltaRuns,
}

/// Error that the CLI sent instead of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Code of the CLI for the error, such as `authentication_failed`.
    pub code: Option<String>,
    pub text: String,
}

impl Frames {
    /// Converts a frame that is neither a control frame nor a result to events.
    pub fn read<'a>(
        &mut self,
        frame: &Frame<'a>,
        line: &'a str,
        session: &str,
        events: &mut Vec<AgentEvent<'a>>,
    ) {
        let session = match text(frame.session_id) {
            Some(Cow::Borrowed(id)) if id == session => Cow::Borrowed(id),
            _ => Cow::Owned(session.to_owned()),
        };
        let mut out = LineSink {
            line,
            session,
            parent: frame.parent(),
            events,
        };
        match frame.kind() {
            "stream_event" => self.stream(frame, &mut out),
            "assistant" => self.assistant(frame, &mut out),
            "user" => user(&mut self.calls, frame, &mut out),
            "system" => self.reports.read(frame, &mut out),
            "rate_limit_event" | "tool_progress" | "auth_status" | "prompt_suggestion" => {
                out.push(Update::TransientUpdate);
            }
            _ => out.unread(),
        }
    }

    /// Ends the turn: clears the state that belongs to it.
    pub fn turn_over(&mut self) {
        self.speakers.clear();
        self.calls.clear();
        self.reports.turn_over();
        self.failure = None;
    }

    /// Returns the error that the CLI sent instead of an answer in this turn.
    pub fn failure(&self) -> Option<&Failure> {
        self.failure.as_ref()
    }

    pub fn facts_mut(&mut self) -> &mut Facts {
        self.reports.facts_mut()
    }

    /// Reads the run of deltas of this session with which the lines begin. They belong to a block that is streamed for
    /// the first time.
    pub fn read_run<'a>(&self, session: &str, lines: &'a [u8]) -> Option<UpdateRun<'a>> {
        self.deltas.read(session, lines, &self.speakers)
    }

    pub fn note_run(&mut self, run: &UpdateRun<'_>) {
        self.deltas.note(run, &mut self.speakers);
    }
}

/// Output for the updates of a line.
struct LineSink<'a, 'e> {
    line: &'a str,
    session: Cow<'a, str>,
    /// Tool call whose subagent sent the line.
    parent: Option<Cow<'a, str>>,
    events: &'e mut Vec<AgentEvent<'a>>,
}

impl<'a> LineSink<'a, '_> {
    fn push(&mut self, update: Update<'a>) {
        let update = match &self.parent {
            Some(id) => Update::FromSubagent {
                id: id.clone(),
                update: Box::new(update),
            },
            None => update,
        };
        self.events.push(AgentEvent::Update {
            session: self.session.clone(),
            update,
            original: original(self.line),
        });
    }
}

impl LineSink<'_, '_> {
    /// Passes a line on that cannot be converted. A tool call in it may have run.
    fn unread(&mut self) {
        let mut types = values_of(self.line.as_bytes(), "type");
        if types.any(|value| value == "\"tool_use\"") {
            self.events.push(AgentEvent::CallLost(Box::new(LostCall {
                session: Some(self.session.clone().into_owned()),
                updates: None,
                fault: NOT_A_MESSAGE.to_owned(),
            })));
        }
        self.push(Update::Other);
    }
}

/// Members that belong to a frame's envelope rather than its content.
const ENVELOPE: &[&str] = &[
    "type",
    "subtype",
    "session_id",
    "parent_tool_use_id",
    "uuid",
    "timestamp",
];

pub fn original(line: &str) -> Original<'_> {
    Original {
        line,
        cut: |line| serde_json::from_str::<&RawValue>(line).ok(),
        fields: |line| {
            let all: Members<'_> = serde_json::from_str(line).unwrap_or_default();
            all.without(ENVELOPE)
        },
    }
}

#[cfg(test)]
mod tests;
