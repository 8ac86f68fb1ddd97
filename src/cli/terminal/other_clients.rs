//! The other clients of a session: who they are, their prompts, and the turn that runs for one of them.

use super::early_prompts::EarlyPrompts;
use super::participants::Participants;
use super::turn_step::TurnStep;
use crate::cli::run::view::RunView;
use acpipe_core::client_sink::ChunkAddress;
use acpipe_core::session::end_note;
use acpipe_protocol::wire::{RunningTurn, SessionClient, UserMessageParams};
use std::sync::Arc;

/// The other clients of the session.
#[derive(Debug, Default)]
pub struct OtherClients {
    participants: Participants,
    early_prompts: EarlyPrompts,
    /// Id of the running turn of which no summary follows.
    running: Option<String>,
    /// `true` if the agent cancels the running turn by itself: its end follows.
    is_cancelled_by_agent: bool,
}

impl OtherClients {
    /// Takes the first list, and shows the clients.
    pub fn joined(&mut self, clients: Vec<SessionClient>, view: &mut RunView) {
        self.participants.joined(clients, view);
    }

    /// Takes a new list, and shows the changes.
    pub fn changed(&mut self, clients: &[SessionClient], view: &mut RunView) {
        self.participants.changed(clients.to_vec(), view);
    }

    /// Returns `true` if a turn runs of which no summary follows.
    pub fn has_running(&self) -> bool {
        self.running.is_some()
    }

    pub fn set_running(&mut self, running: Option<&RunningTurn>) {
        self.running = running.map(|running| running.turn_id.clone());
    }

    /// Keeps a prompt that arrives before the client follows the session.
    pub fn keep_prompt(&mut self, prompt: &Arc<UserMessageParams>) {
        self.early_prompts.push(Arc::clone(prompt));
    }

    pub fn show_prompt(&self, prompt: &UserMessageParams, view: &mut RunView) {
        self.participants.show_prompt(prompt, view);
    }

    /// Shows who sent the prompt of the running turn, and the prompt if it has arrived. Returns `true` if it must be among the
    /// stored messages.
    pub fn show_running(&mut self, running: &RunningTurn, view: &mut RunView) -> bool {
        let Some(client) = &running.client_id else {
            return false;
        };
        let Some(prompt) = self.early_prompts.take(Some(&running.turn_id)) else {
            self.participants.show_author(client, view);
            return true;
        };
        self.show_prompt(&prompt, view);
        false
    }

    /// Shows the prompt with which a turn begins, if it arrived before the client followed the session.
    pub fn show_early_prompt(&mut self, place: ChunkAddress<'_>, chunk: &[u8], view: &mut RunView) {
        if !self.early_prompts.is_empty()
            && TurnStep::of(chunk) == TurnStep::Begins
            && let Some(prompt) = self.early_prompts.take(place.turn)
        {
            self.show_prompt(&prompt, view);
        }
    }

    /// Follows a turn of which no summary follows: one of another client, in the background, or of a client that follows the
    /// session. Returns the end of the running one.
    pub fn follow(&mut self, place: ChunkAddress<'_>, chunk: &[u8]) -> Option<FollowedEnd> {
        match TurnStep::of(chunk) {
            TurnStep::Begins => {
                self.running = place.turn.map(str::to_owned);
                self.is_cancelled_by_agent = false;
            }
            TurnStep::CancelledByAgent => self.is_cancelled_by_agent = true,
            TurnStep::Aborts | TurnStep::Ends { .. } if place.turn != self.running.as_deref() => {}
            TurnStep::Aborts => {
                self.running = None;
                let note = end_note("cancelled", !self.is_cancelled_by_agent);
                return Some(FollowedEnd { note });
            }
            TurnStep::Ends { note } => {
                self.running = None;
                return Some(FollowedEnd { note });
            }
            TurnStep::Continues => {}
        }
        None
    }
}

/// The end of a turn of which no summary follows.
#[derive(Debug)]
pub struct FollowedEnd {
    /// Reason of an early end, for the user.
    pub note: Option<String>,
}
