//! Abandoned turns: turns whose cancel the agent does not answer. The session takes prompts again after a
//! while, and the agent's other sessions continue.

use super::{SessionMachine, SessionRequest};
use crate::core::agent::connection::Call;
use crate::core::cx::Cx;
use crate::core::error::{Error, ErrorKind};
use crate::core::event::CallId;
use crate::core::limits::Timeout;
use crate::core::turn_ending::Ending;
use crate::proto::wire::{Rung, Strategy};
use std::time::Instant;
use tracing::warn;

/// The unanswered prompt of an abandoned turn.
#[derive(Debug)]
pub struct AbandonedPrompt {
    pub call: CallId,
    /// When the wait for the response ends. `None` after that, while the session waits for turns of other
    /// sessions of its agent.
    pub until: Option<Instant>,
}

impl SessionMachine {
    /// Ends a turn whose cancel the agent does not answer. If the session has its own process, the process is
    /// ended; otherwise the session waits for the response.
    pub(super) fn abandon_turn(&mut self, error: Error, cx: &mut Cx<'_>) {
        let Some(call) = self.talk.turns.prompted().map(|r| r.call) else {
            return;
        };
        self.talk.abandoned = Some(AbandonedPrompt {
            call,
            // The cancel timeout applies once more before the session is restored without the turn.
            until: cx.until(Timeout::Cancel),
        });
        self.end_turn(Ending::Failed(error), cx);
        if let Some(connection) = &mut cx.agent.connection {
            let session = self.talk.id.clone();
            connection.calls.insert(call, Call::Prompt { session });
        }
        self.end_own_process(cx);
    }

    /// Returns `true` if `call` is the prompt of the abandoned turn. The session is then free again.
    pub(super) fn was_abandoned(&mut self, call: CallId, cx: &mut Cx<'_>) -> bool {
        let late = self
            .talk
            .abandoned
            .take_if(|abandoned| abandoned.call == call);
        if late.is_some() {
            // Updates received after the turn was abandoned belonged to it.
            self.end_unprompted(None, cx);
            cx.requests.push(SessionRequest::Free);
        }
        late.is_some()
    }

    /// Stops waiting for the response to the abandoned turn.
    pub fn forget_abandoned(&mut self, cx: &mut Cx<'_>) {
        if let Some(abandoned) = self.talk.abandoned.take()
            && let Some(connection) = &mut cx.agent.connection
        {
            connection.calls.remove(&abandoned.call);
        }
    }

    /// Ends the wait for the response to the abandoned turn. The session is restored without it, now or after
    /// the turns of other sessions.
    pub(super) fn give_up_abandoned(&mut self, others_run: bool, cx: &mut Cx<'_>) {
        if let Some(abandoned) = &mut self.talk.abandoned {
            abandoned.until = None;
            self.recover_abandoned(others_run, cx);
        }
    }

    /// Returns `true` if the session waits for the turns of other sessions before it is restored without the
    /// abandoned turn.
    #[must_use]
    pub fn is_abandoned_overdue(&self) -> bool {
        self.talk
            .abandoned
            .as_ref()
            .is_some_and(|a| a.until.is_none())
    }

    /// Frees the session from a turn that does not end. If no other turn runs in the agent process, the agent
    /// is restarted. Otherwise only the session is closed and restored, if the agent supports that. If it
    /// does not, the session waits for the other turns.
    pub fn recover_abandoned(&mut self, others_run: bool, cx: &mut Cx<'_>) {
        if self.end_own_process(cx) {
            return;
        }
        let Some(info) = cx.agent.ready() else {
            return;
        };
        let can = info.capabilities;
        let id = &self.talk.id;
        if !others_run && !self.talk.turns.is_prompted() {
            warn!(
                session = id,
                "a cancelled turn does not end; restarting the agent"
            );
            cx.requests.push(SessionRequest::RestartAgent);
        } else if can.close && (can.resume || can.load) {
            warn!(
                session = id,
                "a cancelled turn does not end; closing its session"
            );
            if let Some(agent_session) = self.talk.agent_session().map(str::to_owned) {
                cx.close_at_agent(&agent_session);
                self.session_lost(&too_late(), cx);
            }
        }
    }

    /// Ends the session's own process, if it has one; the next prompt restores the session. Returns `true` if
    /// it did.
    fn end_own_process(&mut self, cx: &mut Cx<'_>) -> bool {
        let Some(agent_session) = self.talk.agent_session().map(str::to_owned) else {
            return false;
        };
        let until = cx.until(Timeout::CloseSession);
        let Some(connection) = &mut cx.agent.connection else {
            return false;
        };
        if !connection.end_session_process(&agent_session, cx.now, until) {
            return false;
        }
        warn!(
            session = self.talk.id,
            "a cancelled turn does not end; stopping its process"
        );
        self.session_lost(&too_late(), cx);
        true
    }

    /// Checks that a live session may be opened again, which it may not during a turn. Strategy `new` is also
    /// allowed while the agent has not ended a cancelled turn.
    ///
    /// # Errors
    /// `busy`.
    pub fn may_be_opened_anew(&self, strategy: &Strategy) -> Result<(), Error> {
        let session_lost = self.talk.abandoned.is_some() && *strategy != Strategy::Only(Rung::New);
        if !self.talk.turns.is_prompted() && !session_lost {
            return Ok(());
        }
        let id = &self.talk.id;
        let message =
            format!("session {id:?} is in a turn; call session/ensure again after the turn");
        Err(Error::new(ErrorKind::Busy, message))
    }
}

fn too_late() -> Error {
    let message = "the agent did not end a cancelled turn; its session is restored";
    Error::new(ErrorKind::Cancelled, message)
}
