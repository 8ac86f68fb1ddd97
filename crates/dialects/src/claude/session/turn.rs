//! Turns of a session: their start, messages sent into them, interrupts, and their end. A turn belongs to the prompt or is a background
//! turn.

use super::{CliSession, Prompt, write};
use crate::claude::frames;
use crate::claude::result::result;
use acpipe_json::{JsonStr, Members, text};
use acpipe_model::error::{Error, ErrorKind};
use acpipe_model::event::{
    AgentEvent, Content, MessagePiece, MessageRole, StopReason, TurnEnd, Update,
};
use acpipe_protocol::claude::{Frame, word};
use serde_json::value::RawValue;
use serde_json::{Value, json};

impl CliSession {
    pub fn steer(&mut self, uuid: String, content: Vec<Value>, out: &mut Vec<u8>) {
        self.send_user(&uuid, content, out);
        self.steering.add(uuid);
    }

    pub(super) fn send_user(&self, uuid: &str, content: Vec<Value>, out: &mut Vec<u8>) {
        let mut frame = json!({
            "type": "user",
            "message": { "role": "user" },
            "parent_tool_use_id": null,
            "session_id": self.id,
            "uuid": uuid,
        });
        // Moved, because it can be large.
        frame["message"]["content"] = content.into();
        write(&frame, out);
    }

    /// Handles the start of a turn. If the CLI reports with which prompt it starts, it has done so before.
    pub(super) fn turn_begins(&mut self, events: &mut Vec<AgentEvent<'_>>, out: &mut Vec<u8>) {
        match &mut self.prompt {
            Some(prompt) if prompt.begun => return,
            // The prompt was sent while this turn was starting.
            Some(prompt) if self.reports_prompt_starts => prompt.waits = true,
            Some(prompt) => {
                if prompt.waits && !self.background_turn {
                    self.prompt_begins(events, out);
                }
                return;
            }
            None => {}
        }
        if !std::mem::replace(&mut self.background_turn, true) {
            let session = self.id.clone();
            events.push(AgentEvent::BackgroundTurnBegan { session });
        }
    }

    pub(super) fn prompt_begins(&mut self, events: &mut Vec<AgentEvent<'_>>, out: &mut Vec<u8>) {
        let Some(prompt) = &mut self.prompt else {
            return;
        };
        prompt.begun = true;
        let (call, cancelled) = (prompt.call, prompt.cancelled);
        if std::mem::take(&mut prompt.waits) {
            events.push(AgentEvent::QueuedPromptBegan { call });
        }
        if cancelled {
            // The prompt was to be withdrawn, but its turn has started already.
            self.controls.interrupt(out);
        }
    }

    pub fn cancel(&mut self, out: &mut Vec<u8>) {
        if let Some(prompt) = &mut self.prompt {
            prompt.cancelled = true;
        }
        self.controls.interrupt(out);
    }

    /// Handles the end of an interrupt. A prompt that is still queued would start now, and is withdrawn.
    pub(super) fn interrupted(&mut self, response: Option<&RawValue>, out: &mut Vec<u8>) {
        let queued = response.map(RawValue::get).unwrap_or_default();
        for message in self.steering.withdraw(queued) {
            self.controls.withdraw(&message, out);
        }
        let Some(prompt) = &self.prompt else { return };
        if prompt.cancelled && queued.contains(&prompt.uuid) {
            self.controls.withdraw(&prompt.uuid, out);
        }
    }

    /// Handles the start of a queued prompt, or its withdrawal, which has no result.
    pub(super) fn lifecycle(
        &mut self,
        frame: &Frame<'_>,
        events: &mut Vec<AgentEvent<'_>>,
        out: &mut Vec<u8>,
    ) {
        let uuid = text(frame.rest.get("command_uuid"));
        let ours = |prompt: &mut Prompt| uuid.as_deref() == Some(prompt.uuid.as_str());
        let state = word(frame.rest.get("state"));
        if matches!(state, "started" | "completed" | "cancelled")
            && let Some(uuid) = &uuid
            && self.steering.taken(uuid, state == "started")
        {
            self.controls.interrupt(out);
        }
        if state == "started" && self.prompt.as_mut().is_some_and(ours) {
            self.reports_prompt_starts = true;
            self.prompt_begins(events, out);
        }
        if state == "cancelled"
            && let Some(prompt) = self.prompt.take_if(ours)
        {
            let call = prompt.call;
            let end = TurnEnd {
                stop_reason: StopReason::Cancelled,
                reported: "cancelled".to_owned(),
                ..TurnEnd::default()
            };
            events.push(AgentEvent::TurnEnded { call, end });
        }
    }

    /// Handles the end of a turn: of the prompt, of a background turn, or of a process that cannot start.
    pub(super) fn handle_result<'a>(
        &mut self,
        frame: &Frame<'a>,
        line: &'a str,
        events: &mut Vec<AgentEvent<'a>>,
    ) {
        let end = result(line, self.frames.failure());
        let silent = !std::mem::take(&mut self.had_output);
        self.frames.turn_over();
        self.background_turn = false;
        let users = frame.user_message_uuids.map_or("", RawValue::get);
        self.steering.turn_over(users, self.reports_prompt_starts);
        if self.opening.is_some() {
            self.exit_error = end.error;
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
            events.push(AgentEvent::BackgroundTurnEnded { session, end });
            return;
        };
        let call = prompt.call;
        // Text of the answer that no frame has reported.
        let said = frame.rest.get("result").and_then(JsonStr::new);
        let said = said.filter(|said| silent && end.error.is_none() && !said.is_empty());
        if let Some(said) = said {
            events.push(AgentEvent::Update {
                session: self.id.clone().into(),
                update: Update::Message(MessagePiece {
                    role: MessageRole::Answer,
                    message_id: None,
                    content: Content::Rest(said.raw().to_owned()),
                    subagent: None,
                    about: Members::default(),
                }),
                original: frames::original(line),
            });
        }
        // The session does not exist any more: the CLI has nothing to continue, and sends no output.
        let stale = self.resumed
            && silent
            && said.is_none()
            && end.num_turns == Some(0)
            && is_unexplained(&end, frame.subtype())
            && !end.of_command
            && !prompt.cancelled;
        self.resumed &= end.num_turns == Some(0) || end.error.is_some();
        events.push(if stale {
            let message =
                "the agent ended the turn without running it; it no longer has the session";
            let error = Error::new(ErrorKind::SessionNotFound, message);
            AgentEvent::Failed { call, error }
        } else {
            AgentEvent::TurnEnded { call, end }
        });
    }
}

/// Returns `true` if nothing in the result says why no turn ran.
fn is_unexplained(end: &TurnEnd, subtype: &str) -> bool {
    match &end.error {
        Some(error) => {
            error.kind == ErrorKind::Session
                && subtype == "error_during_execution"
                // The fact that an error of the API has.
                && !error.data.contains_key("raw")
        }
        None => matches!(end.stop_reason, StopReason::EndTurn | StopReason::Unknown),
    }
}

/// Returns `true` if a result belongs to this prompt: it names the prompt, or it names none and has no other
/// origin.
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
