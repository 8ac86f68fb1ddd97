//! Abandoned turns: turns whose cancel the agent does not answer. The session takes prompts again after a
//! while, and the agent's other sessions continue.

use super::turns::AbandonedPrompt;
use super::{SessionMachine, SessionRequest};
use crate::core::agent::connection::Call;
use crate::core::cx::Cx;
use crate::core::error::{Error, ErrorKind};
use crate::core::limits::Timeout;
use crate::core::turn_ending::Ending;
use tracing::warn;

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
        self.prompting.end_turn(
            Ending::Failed(error),
            &mut self.decisions,
            &mut self.talk,
            cx,
        );
        if let Some(connection) = &mut cx.agent.connection {
            let session = self.talk.id.clone();
            connection.calls.insert(call, Call::Prompt { session });
        }
        self.end_own_process(cx);
    }

    /// Ends the wait for the response to the abandoned turn. The session is restored without it, now or after
    /// the turns of other sessions.
    pub(super) fn give_up_abandoned(&mut self, others_run: bool, cx: &mut Cx<'_>) {
        if let Some(abandoned) = &mut self.talk.abandoned {
            abandoned.until = None;
            self.recover_abandoned(others_run, cx);
        }
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
}

fn too_late() -> Error {
    let message = "the agent did not end a cancelled turn; its session is restored";
    Error::new(ErrorKind::Cancelled, message)
}
