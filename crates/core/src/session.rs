//! State machine of one session, keyed by the client's session id.
//!
//! Owns the parts of the session: the conversation, `Restoring`, `Decisions`, `HostCalls` and `Prompting`; it has no other
//! state. It handles one event at a time: it says which part sees the event, in which order, and what the values that a
//! part returns mean to the others. It reaches neither other sessions nor clients and processes directly: what concerns
//! another session or the agent's machine is a request to the hub (`cx.requests`), and everything that it uses of its
//! surroundings comes in as `Cx`.
//!
//! Here stands what ends or repairs a session; the files `opening`, `requests`, `prompt_events`, `clients` and `timers`
//! have the other events.

mod abandoned;
mod approvals;
mod caller_settings;
mod clients;
mod conversation;
mod decisions;
mod failures;
pub mod history;
mod host_calls;
mod one_shot;
mod opening;
mod outcome;
mod output;
mod pending;
mod policy_notices;
mod preamble;
mod prompt_events;
mod prompting;
mod queue;
mod requests;
mod restore;
pub mod restoring;
mod session_agents;
mod settings;
mod stored_info;
mod summary;
mod terms;
#[cfg(test)]
mod tests;
mod timeouts;
mod timers;
mod total_limit;
mod transcript;
mod turns;
mod undelivered_feedback;
mod wait_notices;

use super::client::Token;
use super::client_sink::ClientSinks;
use super::cx::{Cx, SessionRequest};
use super::ids::AgentRef;
use super::log::Log;
use super::turn_ending::Ending;
use super::view::chunks::ChunkSink as _;
use acpipe_model::decision::DecisionSource;
use acpipe_model::error::{Error, ErrorKind};
use acpipe_protocol::chunk::Chunk;
use acpipe_protocol::wire::Strategy;
pub use approvals::Approvals;
pub use caller_settings::CallerSettings;
pub use conversation::{Conversation, Stage};
pub use decisions::Decisions;
pub use decisions::new_message::answer_with_message;
pub use decisions::questions::denies_question;
pub use decisions::unapproved_runs::{MAY_HAVE_RUN, RAN_UNAPPROVED, RUN_NOTICES};
use host_calls::HostCalls;
pub use outcome::end_note;
use output::SessionOutput;
pub use output::{SessionSink, UpdateOrigin};
pub use pending::{RequiredSettings, SettingsRestore};
pub use preamble::Preamble;
pub use prompt_events::BackgroundEvent;
pub use prompting::Prompting;
pub use queue::{MAX_PROMPTS, Queue, Queued};
pub use requests::{RequestOfAgent, Unapproved, has_stale_requests};
pub use restore::Waiter;
pub use restoring::agent_ids::end_claim;
pub use restoring::{NamedServers, RestoreEvent, already_open};
use restoring::{RestoreStep, Restoring};
pub use session_agents::{Given, SessionAgents};
use std::panic::{AssertUnwindSafe, catch_unwind};
pub use stored_info::stored_info;
pub use summary::unstarted_summary;
pub use terms::asking::MAY_NOT_ASK;
pub use terms::{PromptTerms, SessionTerms};
pub use total_limit::is_awaited;
use turns::BackgroundEnd;
pub use turns::{BACKGROUND_QUIET_LIMIT, BackgroundTurn, EndedMessage, Running, SessionTurns};
pub use undelivered_feedback::UndeliveredFeedback;
pub use wait_notices::waits_for_start;

#[derive(Debug)]
pub struct SessionMachine {
    /// Identity, storage, turns and clients: what every part works on.
    pub talk: Conversation,
    pub restoring: Restoring,
    pub decisions: Decisions,
    host_calls: HostCalls,
    pub prompting: Prompting,
    /// `true` after a panic interrupted the handling of an event of the session.
    pub was_handling: bool,
}

impl SessionMachine {
    /// Creates a resting session without options, MCP servers or subscribers.
    #[must_use]
    pub fn new(id: String, agent: AgentRef, cwd: String, log: Log) -> Self {
        Self {
            talk: Conversation::new(id, agent, cwd, log),
            restoring: Restoring::default(),
            decisions: Decisions::default(),
            host_calls: HostCalls::default(),
            prompting: Prompting::default(),
            was_handling: false,
        }
    }

    /// Handles the loss of the session at an agent that still serves others. The next prompt restores it.
    pub fn session_lost(&mut self, error: &Error, cx: &mut Cx<'_>) {
        self.decisions
            .cancel_requests(&DecisionSource::End, &mut self.talk, cx);
        self.prompting
            .lose_turn(error, true, &mut self.decisions, &mut self.talk, cx);
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
                self.advance(RestoreStep::Next, cx);
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
        self.prompting
            .lose_turn(error, !renews, &mut self.decisions, &mut self.talk, cx);
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
        self.restoring.note_released();
        if let Some(connection) = &mut cx.agent.connection {
            connection.used = cx.now;
        }
    }

    /// Moves the session to another agent; the old one may forget it. The caller must open the session at the
    /// new agent next.
    ///
    /// # Errors
    /// `busy`.
    pub fn hand_over(&mut self, to: AgentRef, cx: &mut Cx<'_>) -> Result<(), Error> {
        self.talk.must_be_idle()?;
        if self.talk.is_opening() {
            let message = format!(
                "session {:?} is being opened; hand it over after that",
                self.talk.id
            );
            return Err(Error::new(ErrorKind::Busy, message));
        }
        self.prompting
            .end_background(&mut self.decisions, &mut self.talk, cx);
        self.release(cx);
        self.restoring.hand_over(
            self.talk.agent,
            cx.agent.name().to_owned(),
            self.talk.settings.options().clone(),
        );
        self.talk.set_agent(to);
        Ok(())
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

    /// Returns `true` if the call of the session is answered, so that the session can be removed.
    #[must_use]
    pub fn is_spent(&self) -> bool {
        self.prompting.is_one_shot()
            && self.talk.must_be_idle().is_ok()
            && !self.talk.output.subscribers().are_lagging()
    }

    /// Removes all messages.
    ///
    /// # Errors
    /// `busy`, `storage`.
    pub fn clear_messages(&mut self, archive: bool, cx: &mut Cx<'_>) -> Result<(), Error> {
        let at = cx.time();
        self.talk.must_be_idle()?;
        self.prompting
            .end_background(&mut self.decisions, &mut self.talk, cx);
        self.talk.write(cx)?;
        self.talk.output.catch_up_at_end(cx.clients);
        self.talk.output.clear(&at, archive)
    }

    /// Repairs a session in which a panic occurred and ends its turn with this error. Returns the client call
    /// that was answered with the error.
    pub fn mend(&mut self, error: &Error, cx: &mut Cx<'_>) -> Option<Token> {
        let running = self.talk.turns.prompted();
        let (token, call) = running.map(|r| (r.token, r.call)).unzip();
        let agent_session = self.talk.agent_session().map(str::to_owned);
        self.talk.output.mend(cx.clients);
        // Ends the turn like any failed turn. If that panics again, only the error chunk is written.
        let _ = catch_unwind(AssertUnwindSafe(|| {
            fail_turns(error, &mut self.talk, cx.clients);
        }));
        self.talk.output.mend(cx.clients);
        self.talk.turns.drop_background();
        for turn in self.talk.output.log().open_turns() {
            let error_text = &error.message;
            let mut sink = self.talk.output.sink(Some(&turn), cx.clients);
            sink.chunk(&Chunk::Error { error_text });
        }
        let (token, call) = token.zip(call)?;
        let ending = Ending::Failed(error.clone());
        let closed = catch_unwind(AssertUnwindSafe(|| {
            self.talk.cancel_lost_prompt(call, agent_session, cx);
            self.talk.close_turn(&ending, cx);
        }));
        if closed.is_err() {
            self.talk.output.mend(cx.clients);
            self.talk.turns.drop_prompted();
            self.talk
                .output
                .reply(token, Err(error.clone()), cx.clients);
            cx.requests.push(SessionRequest::Free);
        }
        Some(token)
    }
}

/// Fails the turns of a session in which a panic occurred.
fn fail_turns(error: &Error, talk: &mut Conversation, clients: &mut dyn ClientSinks) {
    talk.output.number_unsent(clients);
    talk.close_background(BackgroundEnd::Failed(error), clients);
    talk.turns
        .with_turn(&mut talk.output, clients, |turn, sink| {
            turn.fail(error, sink);
        });
}

impl std::ops::Deref for SessionMachine {
    type Target = Conversation;

    fn deref(&self) -> &Conversation {
        &self.talk
    }
}

impl std::ops::DerefMut for SessionMachine {
    fn deref_mut(&mut self) -> &mut Conversation {
        &mut self.talk
    }
}
