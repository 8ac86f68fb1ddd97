//! What the frames of a CLI process say, in neutral words.

mod blocks;
mod say;
mod stream;
mod system;
mod user;
mod whole;

use crate::core::claude::state::Facts;
use crate::core::event::{AgentEvent, Original, Update};
use crate::proto::claude::Frame;
use crate::proto::json::{Members, text};
use blocks::Speaker;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::HashMap;

/// What is known of what was told so far.
#[derive(Debug, Default)]
pub struct Frames {
    /// Of the session: what the CLI said of itself.
    pub facts: Facts,
    /// Who speaks in this turn: the agent, and its subagents.
    speakers: Vec<Speaker>,
    /// The turn's tool calls, and the names of their tools.
    tools: HashMap<String, String>,
    /// The tool calls of tasks, and whether they are subagents.
    tasks: HashMap<String, Task>,
    /// The compaction that goes on.
    compaction: Option<String>,
    /// The error that the CLI said in the place of an answer.
    failure: Option<Failure>,
}

/// Something that runs beside the turn.
#[derive(Debug)]
struct Task {
    call: String,
    is_subagent: bool,
}

/// An error that was said in the place of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The CLI's word for it, as `authentication_failed`.
    pub code: Option<String>,
    pub text: String,
}

impl Frames {
    /// Reads a frame that is neither a control frame nor a result.
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
        let mut out = Out {
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
                out.say(Update::Passing);
            }
            _ => out.say(Update::Other),
        }
    }

    /// The turn is over: what was told in it is not told again.
    pub fn turn_over(&mut self) {
        self.speakers.clear();
        self.tools.clear();
        self.compaction = None;
        self.failure = None;
    }

    /// The error that was said in the place of an answer in this turn.
    #[must_use]
    pub fn failure(&self) -> Option<&Failure> {
        self.failure.as_ref()
    }

    fn speaker(&mut self, parent: Option<&str>) -> &mut Speaker {
        let known = |s: &Speaker| s.parent.as_deref() == parent;
        let at = self.speakers.iter().position(known).unwrap_or_else(|| {
            self.speakers.push(Speaker::new(parent));
            self.speakers.len() - 1
        });
        &mut self.speakers[at]
    }
}

/// Where the updates of a line go.
struct Out<'a, 'e> {
    line: &'a str,
    session: Cow<'a, str>,
    /// The tool call whose subagent speaks.
    parent: Option<Cow<'a, str>>,
    events: &'e mut Vec<AgentEvent<'a>>,
}

impl<'a> Out<'a, '_> {
    fn say(&mut self, update: Update<'a>) {
        let update = match &self.parent {
            Some(id) => Update::OfSubagent {
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

/// By what a frame is one, of its kind and in its place: what it says is beside it.
const ENVELOPE: &[&str] = &[
    "type",
    "subtype",
    "session_id",
    "parent_tool_use_id",
    "uuid",
    "timestamp",
];

/// The frame of a line.
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
