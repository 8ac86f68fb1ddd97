//! End of a turn: its assignment to the prompt or a background turn, and its result.

use super::{Prompt, Session};
use crate::core::claude::frames;
use crate::core::claude::result::result;
use crate::core::error::{Error, ErrorKind};
use crate::core::event::{AgentEvent, Content, MessagePiece, MessageRole, Update};
use crate::proto::claude::Frame;
use crate::proto::json::{JsonStr, Members};

impl Session {
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
        let stale = std::mem::take(&mut self.resumed)
            && silent
            && end.error.is_none()
            && said.is_none()
            && end.num_turns == Some(0)
            && !end.of_command
            && !prompt.cancelled;
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
