//! The way of a prompt: sent, tried again, cancelled, and ended with its turn; and the ends of background turns.
//!
//! Owns the attempts of an `execute` call, and whether the agent may lack a session that it reported as restored. It changes
//! the turns and the queue, which the `Conversation` keeps, and has open requests ended by the
//! decisions. It may not open the session at the agent, nor touch files and terminals: that the agent lacks the session
//! goes up to the machine as a value.

pub mod prompt_retry;
pub mod structured_answer;
pub mod turn_flow;

use crate::agent::connection::Call;
use crate::client_sink::ClientSinks;
use crate::cx::Cx;
use crate::session::one_shot::OneShot;
use crate::session::turns::AbandonedPrompt;
use crate::session::{
    CallerSettings, Conversation, Decisions, Queued, Running, SessionRequest, Stage,
};
use crate::turn_ending::Ending;
use crate::view::chunks::ChunkSink as _;
use acpipe_json::{Raw, to_raw};
use acpipe_model::dialect::AgentCall;
use acpipe_model::error::{Error, ErrorKind, out_of_order};
use acpipe_model::event::CallId;
use acpipe_model::limits::Timeout;
use acpipe_model::prompt_parts::{parts_for, prompt_parts};
use acpipe_protocol::chunk::Chunk;
use acpipe_protocol::wire::{
    PromptParams, PromptWhenBusy, Rung, SteerParams, SteerResult, Strategy,
};
use serde_json::json;

/// Sending of prompts, and ends of turns.
#[derive(Debug, Default)]
pub struct Prompting {
    /// Set if the session serves one `execute` call and is removed after it.
    pub(super) one_shot: Option<OneShot>,
    /// Strategy that restored the session. Set only while a new session may replace it.
    pub(super) restored_by: Option<Rung>,
    /// Error that shows that the agent does not have the session, which is to be replaced.
    gone: Option<Box<Error>>,
}

impl Prompting {
    #[must_use]
    pub fn of_one_call(retries: bool) -> Self {
        Self {
            one_shot: Some(OneShot::new(retries)),
            ..Self::default()
        }
    }

    /// Takes the error that shows that the agent does not have the session.
    pub fn take_gone(&mut self) -> Option<Box<Error>> {
        self.gone.take()
    }

    /// Returns `true` if a prompt can be sent to the agent now.
    #[must_use]
    pub fn is_free(&self, talk: &Conversation) -> bool {
        talk.agent_session().is_some() && !talk.turns.is_prompted() && talk.abandoned.is_none()
    }

    /// Rejects a prompt whose turn is running or queued already, so that it runs only once.
    ///
    /// # Errors
    /// `busy`.
    pub fn must_not_have(&self, turn_id: &str, talk: &Conversation) -> Result<(), Error> {
        let runs = talk.turns.prompted().is_some_and(|r| r.turn_id == turn_id);
        let how = match (runs, talk.queue.has(turn_id)) {
            (true, _) => "running",
            (_, true) => "queued",
            (false, false) => return Ok(()),
        };
        let message = format!(
            "turn {turn_id:?} of session {:?} is already {how}; wait for the response to its first call",
            talk.id
        );
        Err(Error::new(ErrorKind::Busy, message).with("turnId", turn_id))
    }

    /// Checks that a prompt can be sent or queued. It is rejected if it must not wait, or if the queue is
    /// full.
    ///
    /// # Errors
    /// `busy` and `overloaded`.
    pub fn takes_prompt(&self, prompt: &PromptParams, talk: &Conversation) -> Result<(), Error> {
        let id = &talk.id;
        let waits = talk.queue.len();
        if prompt.when_busy != PromptWhenBusy::Reject {
            return talk.queue.check_room(prompt).map_err(|full| {
                let message = format!(
                    "the prompt queue of session {id:?} is full: {full}; prompt again after a turn"
                );
                Error::new(ErrorKind::Overloaded, message)
            });
        }
        if let Some(running) = talk.turns.prompted() {
            let message = format!(
                "session {id:?} is in a turn; prompt again after it, or call session/cancel"
            );
            let error = Error::new(ErrorKind::Busy, message);
            return Err(error.with("turnId", running.turn_id.as_str()));
        }
        let why = match (&talk.abandoned, waits) {
            (Some(_), _) => "has a cancelled turn that the agent has not ended",
            (None, 1..) => "has queued prompts",
            (None, 0) => return Ok(()),
        };
        let message = format!("session {id:?} {why}; prompt again later, or without whenBusy");
        Err(Error::new(ErrorKind::Busy, message))
    }

    /// Returns `true` if prompts are queued, or a turn waits for a new session, and no agent has the session.
    #[must_use]
    pub fn waits_for_agent(&self, talk: &Conversation) -> bool {
        let has_work = !talk.queue.is_empty() || self.is_between_sessions(talk);
        matches!(talk.stage, Stage::Resting) && has_work && !self.waits_for_attempt(talk)
    }

    /// Fails everything that needs the session at an agent, because it cannot be opened.
    pub fn cannot_open(
        &mut self,
        error: &Error,
        decisions: &mut Decisions,
        talk: &mut Conversation,
        cx: &mut Cx<'_>,
    ) {
        self.fail_queue(error, talk, cx.clients);
        self.fail_stale_turn(error, decisions, talk, cx);
    }

    /// Takes the next queued prompt, if it can be sent now. The clients are notified when it is sent
    /// (`SessionMachine::begin_queued`).
    pub fn next_prompt(&mut self, talk: &mut Conversation, cx: &mut Cx<'_>) -> Option<Queued> {
        if !self.is_free(talk) {
            return None;
        }
        talk.queue.next_if(|token| !cx.agent.holds(token))
    }

    /// Cancels one queued prompt: the one of turn `turn_id`, or without an id the first one if no turn runs.
    /// Returns `true` if there was one.
    pub fn cancel_queued(
        &mut self,
        turn_id: Option<&str>,
        talk: &mut Conversation,
        clients: &mut dyn ClientSinks,
    ) -> bool {
        if turn_id.is_none() && talk.turns.is_prompted() {
            return false;
        }
        let Some(queued) = talk.queue.take(turn_id) else {
            return false;
        };
        talk.notify_queue(clients);
        let message = "the prompt was cancelled before its turn began";
        clients.reply(queued.token, Err(Error::new(ErrorKind::Cancelled, message)));
        true
    }

    pub fn fail_queue(
        &mut self,
        error: &Error,
        talk: &mut Conversation,
        clients: &mut dyn ClientSinks,
    ) {
        let tokens = talk.queue.take_all();
        if tokens.is_empty() {
            return;
        }
        talk.notify_queue(clients);
        for token in tokens {
            clients.reply(token, Err(error.clone()));
        }
    }

    /// Returns `true` if `call` is the prompt of the abandoned turn. The session is then free again.
    pub fn was_abandoned(
        &mut self,
        call: CallId,
        decisions: &mut Decisions,
        talk: &mut Conversation,
        cx: &mut Cx<'_>,
    ) -> bool {
        let late = talk.abandoned.take_if(|abandoned| abandoned.call == call);
        if late.is_some() {
            // Updates received after the turn was abandoned belonged to it.
            self.end_unprompted(None, decisions, talk, cx);
            cx.requests.push(SessionRequest::Free);
        }
        late.is_some()
    }

    /// Fails the turn of a session that is lost at its agent, unless it `may_survive` the loss and does.
    pub fn lose_turn(
        &mut self,
        error: &Error,
        may_survive: bool,
        decisions: &mut Decisions,
        talk: &mut Conversation,
        cx: &mut Cx<'_>,
    ) {
        if !may_survive || !self.survives_loss(error, decisions, talk, cx) {
            self.end_turn(Ending::Failed(error.clone()), decisions, talk, cx);
        }
    }

    /// Ends a turn whose cancel the agent does not answer, and waits for the response. Returns `false` if no turn runs.
    pub fn abandon_turn(
        &mut self,
        error: Error,
        decisions: &mut Decisions,
        talk: &mut Conversation,
        cx: &mut Cx<'_>,
    ) -> bool {
        let Some(call) = talk.turns.prompted().map(|r| r.call) else {
            return false;
        };
        talk.abandoned = Some(AbandonedPrompt {
            call,
            // The cancel timeout applies once more before the session is restored without the turn.
            until: cx.until(Timeout::Cancel),
        });
        self.end_turn(Ending::Failed(error), decisions, talk, cx);
        if let Some(connection) = &mut cx.agent.connection {
            let session = talk.id.clone();
            connection.calls.insert(call, Call::Prompt { session });
        }
        true
    }

    /// Stops waiting for the response to the abandoned turn.
    pub fn forget_abandoned(&mut self, talk: &mut Conversation, cx: &mut Cx<'_>) {
        if let Some(abandoned) = talk.abandoned.take()
            && let Some(connection) = &mut cx.agent.connection
        {
            connection.calls.remove(&abandoned.call);
        }
    }

    /// Returns `true` if the session waits for the turns of other sessions before it is restored without the
    /// abandoned turn.
    #[must_use]
    pub fn is_abandoned_overdue(&self, talk: &Conversation) -> bool {
        talk.abandoned.as_ref().is_some_and(|a| a.until.is_none())
    }

    /// Checks that a live session may be opened again, which it may not during a turn. Strategy `new` is also
    /// allowed while the agent has not ended a cancelled turn.
    ///
    /// # Errors
    /// `busy`.
    pub fn may_be_opened_anew(
        &self,
        strategy: &Strategy,
        talk: &Conversation,
    ) -> Result<(), Error> {
        let session_lost = talk.abandoned.is_some() && *strategy != Strategy::Only(Rung::New);
        if !talk.turns.is_prompted() && !session_lost {
            return Ok(());
        }
        let id = &talk.id;
        let message =
            format!("session {id:?} is in a turn; call session/ensure again after the turn");
        Err(Error::new(ErrorKind::Busy, message))
    }

    /// Sends a message into the running turn, and shows it in the turn's message.
    ///
    /// # Errors
    /// `outOfOrder` if no turn runs, another one runs, or the agent takes no messages during a turn;
    /// `invalidParams` if the agent does not accept a part.
    pub fn steer(
        &mut self,
        p: SteerParams,
        caller: &CallerSettings,
        decisions: &mut Decisions,
        talk: &mut Conversation,
        cx: &mut Cx<'_>,
    ) -> Result<SteerResult, Error> {
        let (_, skipped_parts) = prompt_parts(Some(&p.message.parts))?;
        let message = p.message.into_ui_message(|| cx.shared.next_id("user"));
        let (parts, _) = parts_for(cx.agent.spec.protocol, &message)?;
        let turn_id = self.steered_turn(p.turn_id.as_deref(), talk)?;
        let takes = cx.agent.ready().is_some_and(|info| info.capabilities.steer);
        let (true, Some(agent_session), Some(connection)) =
            (takes, talk.agent_session(), &mut cx.agent.connection)
        else {
            return Err(out_of_order(
                "the agent takes no messages during a turn; call session/prompt, which queues the message, or \
                 session/cancel first",
            ));
        };
        connection.call(AgentCall::Steer {
            session: agent_session,
            parts: &parts,
            degrade: p.degrade,
        })?;
        decisions.add_terms(caller, talk, cx);
        let message_id = message["id"].as_str().unwrap_or_default().to_owned();
        let data = to_raw(&json!({
            "messageId": message_id, "message": message, "steering": true,
        }));
        talk.turns
            .with_turn(&mut talk.output, cx.clients, |turn, sink| {
                turn.end_text(sink);
                sink.chunk(&Chunk::DataUserMessage { data: Raw(&data) });
            });
        Ok(SteerResult {
            turn_id,
            message_id,
            skipped_parts,
        })
    }

    /// Returns the id of the running turn, if the agent works on its prompt.
    pub fn steered_turn(&self, wanted: Option<&str>, talk: &Conversation) -> Result<String, Error> {
        let id = &talk.id;
        let takes = |running: &&Running| {
            !running.is_cancelled()
                && running.ended.is_none()
                && !running.waits_for_background
                && running.attempts.pause.is_none()
        };
        let Some(running) = talk.turns.prompted().filter(takes) else {
            let message = format!(
                "session {id:?} has no running turn to send a message into; call session/prompt"
            );
            return Err(out_of_order(&message));
        };
        match wanted.filter(|wanted| *wanted != running.turn_id) {
            None => Ok(running.turn_id.clone()),
            Some(wanted) => {
                let message =
                    format!("turn {wanted:?} of session {id:?} does not run; call session/prompt");
                Err(out_of_order(&message).with("turnId", running.turn_id.as_str()))
            }
        }
    }
}
