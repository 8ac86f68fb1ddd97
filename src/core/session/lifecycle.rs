//! Lifecycle of a session: loss by its agent, renaming, close, release, and its entry in lists.

use super::{SessionMachine, SessionRequest};
use crate::core::client::Token;
use crate::core::cx::Cx;
use crate::core::decision::DecisionSource;
use crate::core::error::{Error, ErrorKind};
use crate::core::turn_ending::Ending;
use crate::proto::wire::Strategy;

impl SessionMachine {
    /// Handles the loss of the session at an agent that still serves others. The next prompt restores it.
    pub fn session_lost(&mut self, error: &Error, cx: &mut Cx<'_>) {
        self.decisions
            .cancel_requests(&DecisionSource::End, &mut self.talk, cx);
        if !self
            .prompting
            .survives_loss(error, &mut self.decisions, &mut self.talk, cx)
        {
            self.prompting.end_turn(
                Ending::Failed(error.clone()),
                &mut self.decisions,
                &mut self.talk,
                cx,
            );
        }
        self.prompting
            .end_unprompted(Some(error), &mut self.decisions, &mut self.talk, cx);
        for token in self.talk.settings.pending_mut().take_waiting() {
            cx.clients.reply(token, Err(error.clone()));
        }
        self.opening_failed(error, cx);
        self.talk.leave_directory(cx);
        self.host_calls
            .end_host_calls(&mut self.decisions, &mut self.talk, cx);
        self.prompting.forget_abandoned(&mut self.talk, cx);
        cx.requests.push(SessionRequest::Free);
        self.talk.rest();
        // Queued prompts still need the session. Prompts that wait for another environment open it later.
        let prompts: Vec<Token> = self.talk.queue.tokens().collect();
        if !prompts.is_empty() {
            self.talk.begin_opening(Strategy::Auto, Vec::new());
            if !prompts.into_iter().all(|prompt| cx.agent.holds(prompt)) {
                self.continue_restore(cx);
            }
        }
    }

    /// Handles the end of the agent's connection: everything that waits for it fails. `broke_off` is `true`
    /// if the end was not requested. With `renews` the session stays open for the next agent process.
    pub fn agent_lost(
        &mut self,
        error: &Error,
        (broke_off, renews): (bool, bool),
        cx: &mut Cx<'_>,
    ) {
        // No later agent gets the answers.
        self.decisions
            .cancel_requests(&DecisionSource::End, &mut self.talk, cx);
        if renews
            || !self
                .prompting
                .survives_loss(error, &mut self.decisions, &mut self.talk, cx)
        {
            self.prompting.end_turn(
                Ending::Failed(error.clone()),
                &mut self.decisions,
                &mut self.talk,
                cx,
            );
        }
        self.prompting.end_unprompted(
            Some(error).filter(|_| broke_off),
            &mut self.decisions,
            &mut self.talk,
            cx,
        );
        for token in self.talk.settings.pending_mut().take_waiting() {
            cx.clients.reply(token, Err(error.clone()));
        }
        if !renews {
            self.opening_failed(error, cx);
            self.talk.rest();
        }
    }

    /// Handles a requested stop of the agent: cancels the running turn and fails the queued prompts.
    pub fn agent_stopping(&mut self, cx: &mut Cx<'_>) {
        let message = "the agent was disconnected before the prompt's turn began";
        self.prompting.fail_queue(
            &Error::new(ErrorKind::Cancelled, message),
            &mut self.talk,
            cx.clients,
        );
        self.cancel(None, cx);
    }

    /// Closes the session: the agent may forget it, and other programs may open it. Stored data stays.
    ///
    /// # Errors
    /// `busy`.
    pub fn close(&mut self, cx: &mut Cx<'_>) -> Result<(), Error> {
        self.talk.must_be_idle()?;
        self.prompting
            .end_background(&mut self.decisions, &mut self.talk, cx);
        // The log may lack changes outside of turns, such as the title, and records from before the session
        // was open. A full disk does not prevent the close.
        let _ = match self.talk.output.log().identity() {
            Some(_) => self.talk.identify(cx),
            None => Ok(()),
        };
        let _ = self.talk.write(cx);
        let message = "the session was closed before it was open";
        self.opening_failed(&Error::new(ErrorKind::Cancelled, message), cx);
        for token in self.talk.settings.pending_mut().take_waiting() {
            let message = "the session was closed before the agent answered";
            let error = Error::new(ErrorKind::Cancelled, message);
            cx.clients.reply(token, Err(error));
        }
        self.release_at_agent(cx);
        self.host_calls
            .end_host_calls(&mut self.decisions, &mut self.talk, cx);
        self.talk.release_roots(cx);
        if let Some(connection) = &mut cx.agent.connection {
            connection.used = cx.now;
        }
        Ok(())
    }

    /// Releases a live session: the agent may forget it until it is needed again.
    pub fn release(&mut self, cx: &mut Cx<'_>) {
        self.release_at_agent(cx);
        self.talk.release_roots(cx);
        self.talk.leave_directory(cx);
        self.talk.rest();
        if let Some(connection) = &mut cx.agent.connection {
            connection.used = cx.now;
        }
    }

    /// Returns `true` if the session has work to do without another event.
    #[must_use]
    pub fn has_more_to_do(&self) -> bool {
        self.deadline().is_some()
            || self.talk.output.log().is_dirty()
            || self.talk.output.has_unsent()
            || self.talk.output.subscribers().are_lagging()
    }

    /// Returns `true` if nothing is in progress, queued or awaited in the session.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        !self.talk.turns.is_prompted()
            && self.talk.queue.is_empty()
            && self.decisions.late_feedback.is_empty()
            && self.talk.turns.background().is_none()
            && self.talk.abandoned.is_none()
            && self.talk.settings.pending().is_empty()
            && !self.talk.is_opening()
    }
}
