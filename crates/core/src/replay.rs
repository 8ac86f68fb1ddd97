//! Replay: converts the history that an agent repeats after `session/load` into messages.
//!
//! The agent's messages are built by the same turn, view and fold as those of a running turn. They therefore
//! equal the messages that a client built live, except for ids and anything the agent leaves out. The user's
//! messages are built only here, because live clients have them already.

mod compare;
mod kinship;
mod messages;
mod user;

use super::fold::FoldSink;
use super::turn::{CallIds, OpenTurns, Renamed, Turn};
use super::view::chunks::ChunkState;
use acpipe_model::event::{MessagePiece, MessageRole, Original, Update};
pub use compare::first_unstored;
pub use kinship::is_other_conversation;
pub use messages::ReplayedMessages;
use serde_json::json;
use std::sync::Arc;
use user::UserMessageDraft;

/// Builds the messages of a replayed history, update by update.
#[derive(Debug)]
pub struct Replay {
    dialect: &'static str,
    id_prefix: String,
    messages: ReplayedMessages,
    /// Ids of the tool calls of the history, which are given as in a running session.
    call_ids: CallIds,
    /// The message that the next update may continue. At most one of `user` and `assistant` is set.
    user: Option<UserMessageDraft>,
    assistant: Option<Assistant>,
}

#[derive(Debug)]
struct Assistant {
    turn: Turn,
    chunks: ChunkState,
    folding: FoldSink,
}

impl Replay {
    /// Creates an empty replay. Its messages get the ids `<id_prefix>-1`, `<id_prefix>-2` and so on.
    #[must_use]
    pub fn new(dialect: &'static str, id_prefix: String) -> Self {
        Self {
            dialect,
            id_prefix,
            messages: ReplayedMessages::default(),
            call_ids: CallIds::default(),
            user: None,
            assistant: None,
        }
    }

    /// Replaces the agent's ids of tool calls in an update, before it is taken, by the ids of the calls.
    pub fn identify_calls(&mut self, subagent: Option<&str>, update: &mut Update<'_>) -> Renamed {
        let turn = self.assistant.as_ref().map(|assistant| &assistant.turn);
        let turn = turn.filter(|_| self.user.is_none());
        self.call_ids
            .rename(OpenTurns([turn, None]), subagent, update)
    }

    pub fn update(&mut self, update: &Update<'_>, original: Original<'_>) {
        match update {
            Update::Message(piece)
                if piece.role == MessageRole::User && piece.subagent.is_none() =>
            {
                self.user(piece, original);
            }
            // These updates describe the current session or moment and begin no message.
            Update::Session(_)
            | Update::Context { .. }
            | Update::Notice
            | Update::TransientUpdate
            | Update::Step
            | Update::TextEnd { provider: None }
                if self.assistant.is_none() => {}
            _ => {
                let assistant = self.assistant();
                let view = &mut assistant.chunks.view(&mut assistant.folding);
                assistant.turn.update(update, original, view);
            }
        }
    }

    pub fn is_empty(&self) -> bool {
        self.messages.is_empty() && self.user.is_none() && self.assistant.is_none()
    }

    /// Ends the last message and returns all messages in order.
    #[must_use]
    pub fn finish(mut self) -> ReplayedMessages {
        self.close();
        self.messages
    }

    fn user(&mut self, piece: &MessagePiece<'_>, original: Original<'_>) {
        let continues = |message: &UserMessageDraft| message.continues_with(piece);
        if !self.user.as_ref().is_some_and(continues) {
            self.close();
        }
        let id = next_id(&self.id_prefix, &self.messages);
        let new = || UserMessageDraft::new(id(), self.dialect, piece);
        self.user.get_or_insert_with(new).push(piece, original);
    }

    /// Returns the agent's message under construction; begins a new one after a message of the user.
    fn assistant(&mut self) -> &mut Assistant {
        if self.user.is_some() {
            self.close();
        }
        let id = next_id(&self.id_prefix, &self.messages);
        self.assistant.get_or_insert_with(|| {
            let mut folding = FoldSink::default();
            // Marks the message as replayed: readers must not expect a stop reason or usage.
            let about = json!({ "replayed": true });
            let mut chunks = ChunkState::new(self.dialect);
            let view = &mut chunks.view(&mut folding);
            let turn = Turn::start(id(), &about, &Arc::default(), view);
            Assistant {
                turn,
                chunks,
                folding,
            }
        })
    }

    fn close(&mut self) {
        if let Some(user) = self.user.take() {
            self.messages.push(&user.finish());
        }
        if let Some(mut assistant) = self.assistant.take() {
            let view = &mut assistant.chunks.view(&mut assistant.folding);
            assistant.turn.finish_unreported(view);
            self.messages.push(&assistant.folding);
        }
    }
}

fn next_id(prefix: &str, messages: &ReplayedMessages) -> impl FnOnce() -> String {
    move || format!("{prefix}-{}", messages.len() + 1)
}

#[cfg(test)]
mod tests;
