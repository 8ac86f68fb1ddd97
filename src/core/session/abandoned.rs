//! Turns that were given up: the agent did not answer their cancel. The session takes prompts again after a while, and the
//! other sessions of the agent go on.

use super::{SessionMachine, SessionRequest};
use crate::core::agent::connection::Call;
use crate::core::client_sink::ClientSinks;
use crate::core::cx::Cx;
use crate::core::error::{Error, ErrorKind};
use crate::core::event::CallId;
use crate::core::limits::Wait;
use crate::core::turn_ending::Ending;
use crate::proto::wire::{Rung, Strategy};
use std::time::Instant;
use tracing::warn;

/// The prompt of a turn that was given up and that the agent has not answered yet.
#[derive(Debug)]
pub struct Abandoned {
    pub call: CallId,
    /// When the wait for its answer is over; `None` once it is, and the session waits for other sessions of its agent.
    pub until: Option<Instant>,
}

impl SessionMachine {
    /// Ends a turn whose cancel the agent does not answer. Where the session has a process of its own that is ended,
    /// else the session waits for the answer.
    pub(super) fn abandon_turn<C: ClientSinks>(&mut self, error: Error, cx: &mut Cx<'_, C>) {
        let Some(call) = self.running.as_ref().map(|r| r.call) else {
            return;
        };
        self.abandoned = Some(Abandoned {
            call,
            // As long again, before the session is restored without it.
            until: cx.until(Wait::Cancel),
        });
        self.end_turn(Ending::Failed(error), cx);
        if let Some(connection) = &mut cx.agent.connection {
            let session = self.id.clone();
            connection.calls.insert(call, Call::Prompt { session });
        }
        self.end_own_process(cx);
    }

    /// Whether this is the late answer to a turn that was given up: then the session is free again.
    pub(super) fn was_abandoned<C: ClientSinks>(
        &mut self,
        call: CallId,
        cx: &mut Cx<'_, C>,
    ) -> bool {
        let late = self.abandoned.take_if(|abandoned| abandoned.call == call);
        if late.is_some() {
            // What came after the turn was given up belonged to it.
            self.end_unprompted(None, cx.clients);
            cx.requests.push(SessionRequest::Free);
        }
        late.is_some()
    }

    /// Stops waiting for the answer to a turn that was given up.
    pub fn forget_abandoned<C>(&mut self, cx: &mut Cx<'_, C>) {
        if let Some(abandoned) = self.abandoned.take()
            && let Some(connection) = &mut cx.agent.connection
        {
            connection.calls.remove(&abandoned.call);
        }
    }

    /// Stops the wait for the answer to a turn that was given up: the session is restored without it, now or when the
    /// turns of others have ended.
    pub(super) fn give_up_abandoned<C: ClientSinks>(
        &mut self,
        others_run: bool,
        cx: &mut Cx<'_, C>,
    ) {
        if let Some(abandoned) = &mut self.abandoned {
            abandoned.until = None;
            self.recover_abandoned(others_run, cx);
        }
    }

    /// Whether the session waits for the turns of others, to be restored without a turn that was given up.
    #[must_use]
    pub fn is_abandoned_overdue(&self) -> bool {
        self.abandoned.as_ref().is_some_and(|a| a.until.is_none())
    }

    /// Frees the session of a turn that does not end. A process that no other turn runs in is started again; where one
    /// does, the session alone is closed and restored, if the agent can do that. If it cannot, the other turns are
    /// waited for.
    pub fn recover_abandoned<C: ClientSinks>(&mut self, others_run: bool, cx: &mut Cx<'_, C>) {
        if self.end_own_process(cx) {
            return;
        }
        let Some(info) = cx.agent.ready() else {
            return;
        };
        let can = info.capabilities;
        let id = &self.id;
        if !others_run && self.running.is_none() {
            warn!(
                session = id,
                "a turn that was cancelled does not end: the agent is started again"
            );
            cx.requests.push(SessionRequest::RestartAgent);
        } else if can.close && (can.resume || can.load) {
            warn!(
                session = id,
                "a turn that was cancelled does not end: its session is closed"
            );
            if let Some(agent_session) = self.agent_session().map(str::to_owned) {
                cx.close_at_agent(&agent_session);
                self.lost(&too_late(), cx);
            }
        }
    }

    /// Ends the process of the session, if it has one of its own; the next prompt restores the session.
    fn end_own_process<C: ClientSinks>(&mut self, cx: &mut Cx<'_, C>) -> bool {
        let Some(agent_session) = self.agent_session().map(str::to_owned) else {
            return false;
        };
        let until = cx.until(Wait::CloseSession);
        let Some(connection) = &mut cx.agent.connection else {
            return false;
        };
        if !connection.end_session_process(&agent_session, cx.now, until) {
            return false;
        }
        warn!(
            session = self.id,
            "a turn that was cancelled does not end: its process is ended"
        );
        self.lost(&too_late(), cx);
        true
    }

    /// Checks whether a live session may be opened anew: not in a turn. A new session takes the place of whatever the
    /// agent does.
    ///
    /// # Errors
    /// `busy`.
    pub fn may_be_opened_anew(&self, strategy: &Strategy) -> Result<(), Error> {
        let lost = self.abandoned.is_some() && *strategy != Strategy::Only(Rung::New);
        if self.running.is_none() && !lost {
            return Ok(());
        }
        let id = &self.id;
        let message = format!("session {id:?} is in a turn: ensure it again when that has ended");
        Err(Error::new(ErrorKind::Busy, message))
    }
}

fn too_late() -> Error {
    let message = "the agent did not end a turn that was cancelled: its session is brought back";
    Error::new(ErrorKind::Cancelled, message)
}
