//! Conversion of the frames of a CLI process to neutral updates.

mod block_updates;
mod blocks;
mod delta_runs;
mod stream;
mod system;
mod user;
mod whole_blocks;

use crate::core::claude::state::Facts;
use crate::core::event::{AgentEvent, LostCall, Original, Update};
use crate::core::line_repair::{NOT_A_MESSAGE, values_of};
use crate::proto::claude::Frame;
use crate::proto::json::{Members, text};
use blocks::MessageSource;
use delta_runs::DeltaShape;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::HashMap;

/// State across the frames of a process.
#[derive(Debug, Default)]
pub struct Frames {
    /// Facts about the session that the CLI reported.
    pub facts: Facts,
    /// The agent and its subagents that have sent output in this turn.
    speakers: Vec<MessageSource>,
    /// Tool calls of the turn, with the names of their tools.
    tools: HashMap<String, String>,
    /// Tool calls of background tasks.
    tasks: HashMap<String, Task>,
    /// Id of the compaction in progress.
    compaction: Option<String>,
    /// Error that the CLI sent instead of an answer.
    failure: Option<Failure>,
    /// Shape of the last frame with a delta of a text block.
    delta_shape: Option<DeltaShape>,
}

/// Background task that runs beside the turn.
#[derive(Debug)]
struct Task {
    call: String,
    is_subagent: bool,
}

/// Error that the CLI sent instead of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Code of the CLI for the error, such as `authentication_failed`.
    pub code: Option<String>,
    /// Message of the error.
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
            "user" => self.user(frame, &mut out),
            "system" => self.system(frame, &mut out),
            "rate_limit_event" | "tool_progress" | "auth_status" | "prompt_suggestion" => {
                out.push(Update::TransientUpdate);
            }
            _ => out.unread(),
        }
    }

    /// Ends the turn: clears the state that belongs to it.
    pub fn turn_over(&mut self) {
        self.speakers.clear();
        self.tools.clear();
        self.compaction = None;
        self.failure = None;
    }

    /// Returns the error that the CLI sent instead of an answer in this turn.
    #[must_use]
    pub fn failure(&self) -> Option<&Failure> {
        self.failure.as_ref()
    }

    fn speaker(&mut self, parent: Option<&str>) -> &mut MessageSource {
        let known = |s: &MessageSource| s.parent.as_deref() == parent;
        let at = self.speakers.iter().position(known).unwrap_or_else(|| {
            self.speakers.push(MessageSource::new(parent));
            self.speakers.len() - 1
        });
        &mut self.speakers[at]
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

/// Returns the line as the original of its updates.
#[must_use]
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
