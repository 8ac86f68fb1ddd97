//! The end of a turn: whose it was, and what it came to.

use super::{Prompt, Session};
use crate::core::claude::frames;
use crate::core::claude::result::result;
use crate::core::error::{Error, ErrorKind, clip};
use crate::core::event::{AgentEvent, Content, MessagePiece, StopReason, Update, Voice};
use crate::core::json_schema::fault;
use crate::proto::claude::Frame;
use crate::proto::json::{JsonStr, Members, value};
use serde_json::Value;
use serde_json::value::RawValue;

impl Session {
    /// A turn ended: the prompt's, one that nobody asked for, or that of a process that cannot begin.
    pub(super) fn ended_turn<'a>(
        &mut self,
        frame: &Frame<'a>,
        line: &'a str,
        events: &mut Vec<AgentEvent<'a>>,
    ) {
        let mut end = result(line, self.frames.failure());
        let silent = !std::mem::take(&mut self.spoke);
        self.frames.turn_over();
        self.unasked = false;
        if self.opening.is_some() {
            self.last_words = end.error;
            return;
        }
        if let Some(figures) = self.context.figures(line) {
            let figures = Some(figures);
            events.push(AgentEvent::Update {
                session: self.id.clone().into(),
                update: Update::Context {
                    cost: None,
                    figures,
                },
                original: frames::original(line),
            });
        }
        let ours = |prompt: &mut Prompt| names(frame, &prompt.uuid);
        let Some(prompt) = self.prompt.take_if(ours) else {
            let session = self.id.clone();
            events.push(AgentEvent::UnpromptedEnded { session, end });
            return;
        };
        let call = prompt.call;
        // A command of the CLI's own is no answer to anything.
        let answers =
            end.stop_reason == StopReason::EndTurn && end.error.is_none() && !end.of_command;
        if let Some(schema) = &self.launched.schema
            && answers
            && !prompt.cancelled
        {
            end.error = unfit(schema, end.structured_output.as_deref());
        }
        // An answer that no frame told.
        let said = frame.rest.get("result").and_then(JsonStr::new);
        let said = said.filter(|said| silent && end.error.is_none() && !said.is_empty());
        if let Some(said) = said {
            events.push(AgentEvent::Update {
                session: self.id.clone().into(),
                update: Update::Message(MessagePiece {
                    voice: Voice::Answer,
                    message_id: None,
                    content: Content::Rest(said.raw().to_owned()),
                    subagent: None,
                    about: Members::default(),
                }),
                original: frames::original(line),
            });
        }
        // A session that is not there any more: the CLI has nothing to go on with, and says nothing.
        let stale = std::mem::take(&mut self.resumed)
            && silent
            && end.error.is_none()
            && said.is_none()
            && end.num_turns == Some(0)
            && !end.of_command
            && !prompt.cancelled;
        events.push(if stale {
            let message =
                "the agent ended the turn without one of its own: it has lost the session";
            let error = Error::new(ErrorKind::SessionNotFound, message);
            AgentEvent::Failed { call, error }
        } else {
            AgentEvent::TurnEnded { call, end }
        });
    }
}

/// The error of an answer that does not match the schema.
fn unfit(schema: &Value, answer: Option<&RawValue>) -> Option<Error> {
    let failed = "Structured output schema validation failed";
    let Some(answer) = answer else {
        let message =
            format!("{failed}: the agent's answer does not match the schema; its text is kept");
        return Some(Error::new(ErrorKind::Malformed, message));
    };
    let fault = fault(schema, &value(answer))?;
    let message = format!(
        "{failed}: expected at {}; the answer is kept in structuredOutput",
        clip(&fault)
    );
    Some(Error::new(ErrorKind::Malformed, message).with("raw", answer.get()))
}

/// Whether a result is that of this prompt: it names it, or no prompt at all and is not of another origin.
fn names(result: &Frame<'_>, uuid: &str) -> bool {
    let named = [result.user_message_uuids, result.user_message_uuid];
    let mut named = named
        .into_iter()
        .flatten()
        .filter(|n| !matches!(n.get(), "null" | "[]"));
    match named.next() {
        Some(all) => all.get().contains(uuid) || named.any(|one| one.get().contains(uuid)),
        None => result.rest.get("origin").is_none(),
    }
}
