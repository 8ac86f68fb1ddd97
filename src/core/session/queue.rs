//! Prompts that wait for their turn: one after the other, in the order in which they came.

use crate::core::client::Token;
use crate::proto::wire::{self, WaitingPrompt};
use std::collections::VecDeque;

/// How many prompts may wait for a session.
pub const QUEUE_LIMIT: usize = 32;

/// A prompt that waits for its turn.
#[derive(Debug)]
pub struct Queued {
    pub token: Token,
    pub turn_id: String,
    pub prompt: wire::PromptParams,
}

/// The prompts of a session that wait.
#[derive(Debug, Default)]
pub struct Queue(VecDeque<Queued>);

impl Queue {
    /// How many prompts wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether none waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds one behind the others.
    pub fn push(&mut self, queued: Queued) {
        self.0.push_back(queued);
    }

    /// Takes out the next one, if it may go.
    pub fn next_if(&mut self, goes: impl Fn(Token) -> bool) -> Option<Queued> {
        let goes = self.0.front().is_some_and(|next| goes(next.token));
        if goes { self.0.pop_front() } else { None }
    }

    /// Takes out the one of this turn, or without one the next.
    pub fn take(&mut self, turn_id: Option<&str>) -> Option<Queued> {
        let meant = |queued: &Queued| turn_id.is_none_or(|turn_id| queued.turn_id == turn_id);
        let at = self.0.iter().position(meant)?;
        self.0.remove(at)
    }

    /// Takes out all.
    pub fn take_all(&mut self) -> Vec<Token> {
        self.0.drain(..).map(|queued| queued.token).collect()
    }

    /// Who waits.
    pub fn tokens(&self) -> impl Iterator<Item = Token> {
        self.0.iter().map(|queued| queued.token)
    }

    /// What the client is told of it.
    #[must_use]
    pub fn told(&self) -> Vec<WaitingPrompt> {
        let turn_ids = self.0.iter().map(|queued| queued.turn_id.clone());
        turn_ids.map(|turn_id| WaitingPrompt { turn_id }).collect()
    }

    /// Whether the prompt of this turn waits.
    #[must_use]
    pub fn has(&self, turn_id: &str) -> bool {
        self.0.iter().any(|queued| queued.turn_id == turn_id)
    }
}
