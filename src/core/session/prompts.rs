//! Prompts: sent to the agent at once, or queued. An agent never has two prompts of one session at a time.

use super::{Queued, SessionMachine, Stage};
use crate::core::client::Token;
use crate::core::client_sink::ClientSinks;
use crate::core::cx::Cx;
use crate::core::error::{Error, ErrorKind};
use crate::core::terms::CallerTerms;
use crate::proto::wire::{PromptParams, PromptWhenBusy, Strategy};

impl SessionMachine {
    /// Returns `true` if a prompt can be sent to the agent now.
    #[must_use]
    pub fn is_free(&self) -> bool {
        self.talk.agent_session().is_some()
            && !self.talk.turns.is_prompted()
            && self.talk.abandoned.is_none()
    }

    /// Rejects a prompt whose turn is running or queued already, so that it runs only once.
    ///
    /// # Errors
    /// `busy`.
    pub fn must_not_have(&self, turn_id: &str) -> Result<(), Error> {
        let runs = self
            .talk
            .turns
            .prompted()
            .is_some_and(|r| r.turn_id == turn_id);
        let how = match (runs, self.talk.queue.has(turn_id)) {
            (true, _) => "running",
            (_, true) => "queued",
            (false, false) => return Ok(()),
        };
        let message = format!(
            "turn {turn_id:?} of session {:?} is already {how}; wait for the response to its first call",
            self.talk.id
        );
        Err(Error::new(ErrorKind::Busy, message).with("turnId", turn_id))
    }

    /// Answers a call at the end of a running or queued turn whose own client has left. Returns the call of that
    /// client; `None` if there is no such turn, or its client is still connected.
    pub fn take_over(
        &mut self,
        turn_id: &str,
        token: Token,
        caller: Option<&CallerTerms>,
        cx: &mut Cx<'_>,
    ) -> Option<Token> {
        let has_left = |owner: &Token| cx.shared.clients.get(owner.client).is_none();
        let running = self
            .talk
            .turns
            .prompted_mut()
            .filter(|r| r.turn_id == turn_id);
        let former = if let Some(running) = running {
            has_left(&running.token).then(|| std::mem::replace(&mut running.token, token))?
        } else {
            let queued = self.talk.queue.prompt_of(turn_id)?;
            has_left(&queued.token).then(|| queued.take_over(token, caller))?
        };
        if self.talk.turns.id() == Some(turn_id) {
            self.talk.add_terms(caller, cx);
        }
        self.join(token.client, cx);
        Some(former)
    }

    /// Checks that a prompt can be sent or queued. It is rejected if it must not wait, or if the queue is
    /// full.
    ///
    /// # Errors
    /// `busy` and `overloaded`.
    pub fn takes_prompt(&self, prompt: &PromptParams) -> Result<(), Error> {
        let id = &self.talk.id;
        let waits = self.talk.queue.len();
        if prompt.when_busy == PromptWhenBusy::Queue {
            return self.talk.queue.check_room(prompt).map_err(|full| {
                let message = format!(
                    "the prompt queue of session {id:?} is full: {full}; prompt again after a turn"
                );
                Error::new(ErrorKind::Overloaded, message)
            });
        }
        if let Some(running) = self.talk.turns.prompted() {
            let message = format!(
                "session {id:?} is in a turn; prompt again after it, or call session/cancel"
            );
            let error = Error::new(ErrorKind::Busy, message);
            return Err(error.with("turnId", running.turn_id.as_str()));
        }
        let why = match (&self.talk.abandoned, waits) {
            (Some(_), _) => "has a cancelled turn that the agent has not ended",
            (None, 1..) => "has queued prompts",
            (None, 0) => return Ok(()),
        };
        let message = format!("session {id:?} {why}; prompt again later, or without whenBusy");
        Err(Error::new(ErrorKind::Busy, message))
    }

    /// Queues a prompt. With `restores` it also starts the restore of the session.
    pub fn enqueue(&mut self, queued: Queued, restores: bool, cx: &mut Cx<'_>) {
        self.talk.queue.push(queued);
        self.talk.notify_queue(cx.clients);
        if restores {
            self.open(Strategy::Auto, cx);
        }
    }

    /// Returns `true` if prompts are queued, or a turn waits for a new session, and no agent has the session.
    #[must_use]
    pub fn waits_for_agent(&self) -> bool {
        let has_work = !self.talk.queue.is_empty() || self.is_between_sessions();
        matches!(self.talk.stage, Stage::Resting) && has_work && !self.waits_for_attempt()
    }

    /// Fails everything that needs the session at an agent, because it cannot be opened.
    pub fn cannot_open(&mut self, error: &Error, cx: &mut Cx<'_>) {
        self.fail_queue(error, cx.clients);
        self.fail_stale_turn(error, cx);
    }

    /// Takes the next queued prompt, if it can be sent now. The clients are notified when it is sent
    /// ([`SessionMachine::begin_queued`]).
    pub fn next_prompt(&mut self, cx: &mut Cx<'_>) -> Option<Queued> {
        if !self.is_free() {
            return None;
        }
        self.talk.queue.next_if(|token| !cx.agent.holds(token))
    }

    /// Sends a prompt that was queued, which begins its turn.
    ///
    /// # Errors
    /// See [`SessionMachine::begin_turn`].
    pub fn begin_queued(&mut self, queued: Queued, cx: &mut Cx<'_>) -> Result<(), Error> {
        self.talk.notify_queue(cx.clients);
        self.begin_turn(queued, cx)
    }

    /// Cancels one queued prompt: the one of turn `turn_id`, or without an id the first one if no turn runs.
    /// Returns `true` if there was one.
    pub(super) fn cancel_queued(
        &mut self,
        turn_id: Option<&str>,
        clients: &mut dyn ClientSinks,
    ) -> bool {
        if turn_id.is_none() && self.talk.turns.is_prompted() {
            return false;
        }
        let Some(queued) = self.talk.queue.take(turn_id) else {
            return false;
        };
        self.talk.notify_queue(clients);
        let message = "the prompt was cancelled before its turn began";
        clients.reply(queued.token, Err(Error::new(ErrorKind::Cancelled, message)));
        true
    }

    /// Fails all queued prompts.
    pub fn fail_queue(&mut self, error: &Error, clients: &mut dyn ClientSinks) {
        let tokens = self.talk.queue.take_all();
        if tokens.is_empty() {
            return;
        }
        self.talk.notify_queue(clients);
        for token in tokens {
            clients.reply(token, Err(error.clone()));
        }
    }
}
