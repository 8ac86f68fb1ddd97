//! Lifecycle of a session: loss by its agent, renaming, close, release, and its entry in lists.

use super::claims::end_other_claims;
use super::{SessionMachine, SessionRequest, Stage};
use crate::core::agent_spec::DEFAULT_AGENT;
use crate::core::client::Token;
use crate::core::cx::Cx;
use crate::core::decision::DecisionSource;
use crate::core::error::{Error, ErrorKind};
use crate::core::store::Card;
use crate::core::turn::{TurnEvent, TurnView as _};
use crate::core::turn_ending::Ending;
use crate::proto::wire::{Protocol, Recovery, SessionInfo, SessionResult, SessionStage, Strategy};
use serde_json::Value;

impl SessionMachine {
    /// Handles the loss of the session at an agent that still serves others. The next prompt restores it.
    pub fn session_lost(&mut self, error: &Error, cx: &mut Cx<'_>) {
        self.cancel_requests(&DecisionSource::End, cx);
        if !self.survives_loss(error, cx) {
            self.end_turn(Ending::Failed(error.clone()), cx);
        }
        self.end_unprompted(Some(error), cx);
        for token in self.settings.pending_mut().take_waiting() {
            cx.clients.reply(token, Err(error.clone()));
        }
        self.opening_failed(error, cx);
        self.leave_directory(cx);
        self.end_host_calls(cx);
        self.forget_abandoned(cx);
        cx.requests.push(SessionRequest::Free);
        self.rest();
        // Queued prompts still need the session. Prompts that wait for another environment open it later.
        let prompts: Vec<Token> = self.queue.tokens().collect();
        if !prompts.is_empty() {
            self.begin_opening(Strategy::Auto, Vec::new());
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
        self.cancel_requests(&DecisionSource::End, cx);
        if renews || !self.survives_loss(error, cx) {
            self.end_turn(Ending::Failed(error.clone()), cx);
        }
        self.end_unprompted(Some(error).filter(|_| broke_off), cx);
        for token in self.settings.pending_mut().take_waiting() {
            cx.clients.reply(token, Err(error.clone()));
        }
        if !renews {
            self.opening_failed(error, cx);
            self.rest();
        }
    }

    /// Handles a requested stop of the agent: cancels the running turn and fails the queued prompts.
    pub fn agent_stopping(&mut self, cx: &mut Cx<'_>) {
        let message = "the agent was disconnected before the prompt's turn began";
        self.fail_queue(&Error::new(ErrorKind::Cancelled, message), cx.clients);
        self.cancel(None, cx);
    }

    /// Handles a change of the agent session id. Everything that the agent stored under the old id may be
    /// gone.
    pub fn renamed(&mut self, to: String, cx: &mut Cx<'_>) {
        self.known.rename(to.clone(), cx.time());
        // The agent may count costs from zero again.
        self.cost = None;
        self.with_turn(cx.clients, |_, sink| {
            sink.event(&TurnEvent::AgentSessionReplaced { agent_session: &to });
        });
        if let Stage::Live { agent_session } = &mut self.stage {
            *agent_session = to;
        }
        // A storage error is reported by the turn that hits it.
        let _ = self.identify(cx);
        end_other_claims(cx);
    }

    /// Closes the session: the agent may forget it, and other programs may open it. Stored data stays.
    ///
    /// # Errors
    /// `busy`.
    pub fn close(&mut self, cx: &mut Cx<'_>) -> Result<(), Error> {
        self.must_be_idle()?;
        self.end_background(cx);
        // The log may lack changes outside of turns, such as the title, and records from before the session
        // was open. A full disk does not prevent the close.
        let _ = match self.output.log().identity() {
            Some(_) => self.identify(cx),
            None => Ok(()),
        };
        let _ = self.write(cx);
        let message = "the session was closed before it was open";
        self.opening_failed(&Error::new(ErrorKind::Cancelled, message), cx);
        for token in self.settings.pending_mut().take_waiting() {
            let message = "the session was closed before the agent answered";
            let error = Error::new(ErrorKind::Cancelled, message);
            cx.clients.reply(token, Err(error));
        }
        self.release_at_agent(cx);
        self.end_host_calls(cx);
        self.release_roots(cx);
        if let Some(connection) = &mut cx.agent.connection {
            connection.used = cx.now;
        }
        Ok(())
    }

    /// Releases a live session: the agent may forget it until it is needed again.
    pub fn release(&mut self, cx: &mut Cx<'_>) {
        self.release_at_agent(cx);
        self.release_roots(cx);
        self.leave_directory(cx);
        self.rest();
        if let Some(connection) = &mut cx.agent.connection {
            connection.used = cx.now;
        }
    }

    /// Removes the session from the agent's directory. Later updates under its agent session ids belong to no
    /// session.
    pub(super) fn leave_directory(&self, cx: &mut Cx<'_>) {
        if let Some(connection) = &mut cx.agent.connection {
            connection.directory.remove(&self.id);
        }
    }

    /// Returns `true` if the session is not at its agent, and no prompt waits for that.
    #[must_use]
    pub fn is_resting(&self) -> bool {
        matches!(self.stage, Stage::Resting) && self.running.is_none() && self.queue.is_empty()
    }

    /// Returns `true` while the session is being opened.
    #[must_use]
    pub fn is_opening(&self) -> bool {
        matches!(self.stage, Stage::Opening(_))
    }

    /// Returns `true` if the session has work to do without another event.
    #[must_use]
    pub fn has_more_to_do(&self) -> bool {
        self.deadline().is_some()
            || self.output.log().is_dirty()
            || self.output.has_unsent()
            || self.output.subscribers().are_lagging()
    }

    /// Returns `true` if nothing is in progress, queued or awaited in the session.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.running.is_none()
            && self.queue.is_empty()
            && self.late_feedback.is_empty()
            && self.background_turn.is_none()
            && self.abandoned.is_none()
            && self.settings.pending().is_empty()
            && !self.is_opening()
    }

    /// Checks that no turn runs and no prompt is queued.
    ///
    /// # Errors
    /// `busy`.
    pub fn must_be_idle(&self) -> Result<(), Error> {
        if self.running.is_none() && self.queue.is_empty() && self.abandoned.is_none() {
            return Ok(());
        }
        let text = format!(
            "session {:?} is in a turn or has queued prompts; try again later, or call session/cancel",
            self.id
        );
        Err(Error::new(ErrorKind::Busy, text))
    }

    /// Returns the result of a call that opens the session.
    #[must_use]
    pub fn result(&self, recovery: Recovery, protocol: Protocol) -> SessionResult {
        SessionResult {
            is_acp: protocol == Protocol::Acp,
            session_id: self.id.clone(),
            agent_session_id: self.agent_session().unwrap_or_default().to_owned(),
            agent_name: self.known.agent_name().to_owned(),
            cwd: self.cwd.clone(),
            recovery,
            state: Value::Object(self.settings.state().clone()),
        }
    }

    /// Returns the session's entry in lists.
    #[must_use]
    pub fn info(&self) -> SessionInfo {
        let card = self.output.log().card();
        SessionInfo {
            state: match self.stage {
                Stage::Live { .. } => SessionStage::Live,
                Stage::Opening(_) => SessionStage::Opening,
                Stage::Resting => SessionStage::Resting,
            },
            turn_id: self.turn_id().map(str::to_owned),
            activity: Some(self.work()),
            clients: Some(self.output.subscribers().count()),
            corrupt_lines: Some(self.output.log().corrupt()),
            waiting_for: None,
            mode: self.settings.mode().or(card.mode.clone()),
            model: self.settings.model().or(card.model.clone()),
            ..stored_info(card)
        }
    }
}

/// Returns the list entry of a stored session that is not open.
#[must_use]
pub fn stored_info(card: Card) -> SessionInfo {
    SessionInfo {
        agent: card.shown_agent(),
        session_id: Some(card.session_id),
        agent_session_id: card.agent_session_id,
        agent_name: Some(card.agent_name.unwrap_or_else(|| DEFAULT_AGENT.to_owned())),
        state: SessionStage::Resting,
        turn_id: None,
        activity: None,
        clients: None,
        cwd: card.cwd,
        title: card.title,
        mode: card.mode,
        model: card.model,
        created_at: Some(card.created_at),
        updated_at: Some(card.updated_at),
        messages: Some(card.messages),
        seq: Some(card.seq),
        corrupt_lines: None,
        waiting_for: None,
    }
}
