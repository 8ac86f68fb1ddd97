//! The other clients of a chat's session in the daemon: shows them, and their prompts.

use super::{ChatClient, ChatStep};
use crate::cli::attach::participants::SESSION_CLOSED;
use crate::cli::attach::turn_step::TurnStep;
use crate::cli::chat::chat_session::Continuation;
use crate::cli::sessions::{read, show_last};
use acpipe_core::client_sink::ChunkAddress;
use acpipe_host::read_only;
use acpipe_protocol::wire::{AttachResult, RunningTurn, SessionClient, UserMessageParams};
use std::sync::Arc;

impl ChatClient {
    /// Follows the session if other clients can have it, too.
    pub(super) fn join(&mut self) {
        if self.session.continuation == Continuation::Daemon {
            let look = self.session.attach(None);
            self.call(ChatStep::Look, look);
        } else {
            self.ready();
        }
    }

    /// Shows the other clients, and the running turn from its beginning.
    pub(super) fn looked(&mut self, found: AttachResult) {
        let view = &mut self.output.view;
        self.participants.joined(found.clients, view);
        let Some(running) = found.running else {
            return self.ready();
        };
        if let Some(client) = &running.client_id {
            if let Some(prompt) = self.early_prompts.take(Some(&running.turn_id)) {
                self.participants.show_prompt(&prompt, view);
            } else {
                self.participants.show_author(client, view);
                self.show_stored_prompt(&running);
            }
        }
        let join = self.session.attach(Some(running.after_seq));
        self.call(ChatStep::Join, join);
    }

    /// Shows the prompt of the running turn, the message before its own. A session that is not stored has none.
    fn show_stored_prompt(&mut self, running: &RunningTurn) {
        let view = &mut self.output.view;
        let Some(state) = &self.session.state else {
            return;
        };
        let opened = read_only(state, &self.session.id);
        if let Some(log) = opened.ok().and_then(|store| read(store).ok())
            && let Ok(text) = show_last(&log, Some(1), Some(&running.message_id), view.stdout)
        {
            view.stored(&text);
        }
    }

    pub(super) fn presence(&mut self, clients: &[SessionClient]) {
        let view = &mut self.output.view;
        if clients.is_empty() {
            view.note(SESSION_CLOSED);
        } else if self.step != ChatStep::Look {
            self.participants.changed(clients.to_vec(), view);
        }
    }

    /// Shows a prompt of another client, before its answer.
    pub(super) fn prompted(&mut self, prompt: &Arc<UserMessageParams>) {
        match self.step {
            ChatStep::Initialize
            | ChatStep::Connect
            | ChatStep::Ensure
            | ChatStep::Look
            | ChatStep::Join => self.early_prompts.push(Arc::clone(prompt)),
            ChatStep::Line | ChatStep::Prompt | ChatStep::Setting | ChatStep::Replace => {
                self.participants.show_prompt(prompt, &mut self.output.view);
            }
            ChatStep::Over => {}
        }
    }

    /// Shows the prompt with which a turn begins, if it arrived before the chat followed the session.
    pub(super) fn begin_other_turn(&mut self, place: ChunkAddress<'_>, chunk: &[u8]) {
        if !self.early_prompts.is_empty()
            && TurnStep::of(chunk) == TurnStep::Begins
            && let Some(prompt) = self.early_prompts.take(place.turn)
        {
            self.participants
                .show_prompt(&prompt, &mut self.output.view);
        }
    }

    /// Shows the end of a turn of another client or in the background, since no summary follows.
    pub(super) fn end_other_turn(&mut self, place: ChunkAddress<'_>, chunk: &[u8]) {
        if self.step == ChatStep::Prompt && place.turn == Some(&*self.session.turn()) {
            return;
        }
        if let TurnStep::Ends { note } = TurnStep::of(chunk) {
            let view = &mut self.output.view;
            if let Some(note) = note {
                view.end_line();
                view.note(&note);
            }
            view.next_turn();
        }
    }
}
