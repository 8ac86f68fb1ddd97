//! A replayed history: what an agent repeats after `session/load` → the messages that it was.
//!
//! Live = replay: the agent's messages are made by the same turn, view and fold as those of a
//! running turn, so they equal what a client built while it watched, up to ids and what the agent leaves
//! out. Only the user's messages are made here: live, the client has them already.

mod compare;
mod user;

use super::event::{MessagePiece, Original, Update, Voice};
use super::fold::Folding;
use super::turn::Turn;
use super::view::chunks::ChunkState;
pub use compare::further;
use serde_json::{Value, json};
use std::sync::Arc;
use user::UserMessage;

/// Collects a replayed history, update by update.
#[derive(Debug)]
pub struct Replay {
    dialect: &'static str,
    id_prefix: String,
    messages: Vec<Value>,
    /// The message that the next update may belong to: one of these at most.
    user: Option<UserMessage>,
    assistant: Option<Assistant>,
}

/// A message of the agent in the making.
#[derive(Debug)]
struct Assistant {
    turn: Turn,
    chunks: ChunkState,
    folding: Folding,
}

impl Replay {
    /// A history without messages yet; theirs will be `<id_prefix>-1`, `<id_prefix>-2` and so on.
    #[must_use]
    pub fn new(dialect: &'static str, id_prefix: String) -> Self {
        Self {
            dialect,
            id_prefix,
            messages: Vec::new(),
            user: None,
            assistant: None,
        }
    }

    /// Takes the next update of the session.
    pub fn update(&mut self, update: &Update<'_>, original: Original<'_>) {
        match update {
            Update::Message(piece) if piece.voice == Voice::User && piece.subagent.is_none() => {
                self.user(piece, original);
            }
            // They tell of the session as it is now, or of the moment: no message begins with them.
            Update::Session(_)
            | Update::Context { .. }
            | Update::Notice
            | Update::Passing
            | Update::Step
            | Update::WordsEnd { provider: None }
                if self.assistant.is_none() => {}
            _ => {
                let assistant = self.assistant();
                let view = &mut assistant.chunks.view(&mut assistant.folding);
                assistant.turn.update(update, original, view);
            }
        }
    }

    /// Whether nothing of a message came so far.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty() && self.user.is_none() && self.assistant.is_none()
    }

    /// The messages in their order; the last one ends here.
    #[must_use]
    pub fn finish(mut self) -> Vec<Value> {
        self.close();
        self.messages
    }

    fn user(&mut self, piece: &MessagePiece<'_>, original: Original<'_>) {
        let continues = |message: &UserMessage| message.continues_with(piece);
        if !self.user.as_ref().is_some_and(continues) {
            self.close();
        }
        let (id, dialect) = (self.next_id(), self.dialect);
        let new = || UserMessage::new(id, dialect, piece);
        self.user.get_or_insert_with(new).push(piece, original);
    }

    /// The agent's message; a new one after one of the user.
    fn assistant(&mut self) -> &mut Assistant {
        if self.user.is_some() {
            self.close();
        }
        let (id, dialect) = (self.next_id(), self.dialect);
        self.assistant.get_or_insert_with(|| {
            let mut folding = Folding::default();
            // So that nobody looks for its stop reason or usage: a history has none.
            let about = json!({ "replayed": true });
            let mut chunks = ChunkState::new(dialect);
            let view = &mut chunks.view(&mut folding);
            let turn = Turn::start(id, &about, &Arc::default(), view);
            Assistant {
                turn,
                chunks,
                folding,
            }
        })
    }

    fn close(&mut self) {
        let user = self.user.take().map(UserMessage::finish);
        self.messages.extend(user);
        if let Some(mut assistant) = self.assistant.take() {
            let view = &mut assistant.chunks.view(&mut assistant.folding);
            assistant.turn.finish_unasked(view);
            self.messages.push(assistant.folding.message());
        }
    }

    fn next_id(&self) -> String {
        format!("{}-{}", self.id_prefix, self.messages.len() + 1)
    }
}

#[cfg(test)]
mod tests;
