//! Prompts that wait for their turn: one after the other, in the order in which they came.

use super::Session;
use crate::core::client::{Notice, Outlet, Token};
use crate::core::error::{Error, ErrorKind};
use crate::proto::wire::{self, PromptWhenBusy, WaitingPrompt};
use serde_json::Value;
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

    fn has(&self, turn_id: &str) -> bool {
        self.0.iter().any(|queued| queued.turn_id == turn_id)
    }
}

impl Session {
    /// Whether a prompt can go to the agent now.
    #[must_use]
    pub fn is_free(&self) -> bool {
        self.agent_session().is_some() && self.running.is_none() && self.abandoned.is_none()
    }

    /// Refuses a prompt whose turn is under way already, or waits: it is run once.
    ///
    /// # Errors
    /// `busy`.
    pub fn must_not_have(&self, turn_id: &str) -> Result<(), Error> {
        let runs = self.running.as_ref().is_some_and(|r| r.turn_id == turn_id);
        let how = match (runs, self.queue.has(turn_id)) {
            (true, _) => "runs",
            (_, true) => "waits for its turn",
            (false, false) => return Ok(()),
        };
        let message = format!(
            "turn {turn_id:?} of session {:?} {how} already: its own call will be answered",
            self.id
        );
        Err(Error::new(ErrorKind::Busy, message).with("turnId", turn_id))
    }

    /// Refuses a prompt that is not to wait, or for which too many wait.
    ///
    /// # Errors
    /// `busy` and `overloaded`.
    pub fn takes_prompt(&self, when_busy: PromptWhenBusy) -> Result<(), Error> {
        let id = &self.id;
        let waits = self.queue.0.len();
        if when_busy == PromptWhenBusy::Queue {
            if waits < QUEUE_LIMIT {
                return Ok(());
            }
            let message = format!(
                "{waits} prompts wait for session {id:?} already: prompt again when one of them has ended"
            );
            return Err(Error::new(ErrorKind::Overloaded, message));
        }
        if let Some(running) = &self.running {
            let message = format!(
                "session {id:?} is in a turn: prompt again when it has ended, or call session/cancel"
            );
            let error = Error::new(ErrorKind::Busy, message);
            return Err(error.with("turnId", running.turn_id.as_str()));
        }
        let why = match (&self.abandoned, waits) {
            (Some(_), _) => "is in a turn that was cancelled and that the agent has not ended yet",
            (None, 1..) => "has prompts that wait already",
            (None, 0) => return Ok(()),
        };
        let message = format!("session {id:?} {why}: prompt again later, or without whenBusy");
        Err(Error::new(ErrorKind::Busy, message))
    }

    /// Tells the client which prompts wait now.
    pub fn tell_queue(&self, outlet: &mut impl Outlet) {
        outlet.notify(Notice::SessionState(wire::StateParams {
            session_id: self.id.clone(),
            state: Value::Object(self.state.clone()),
            queue: self.queue.told(),
        }));
    }
}
