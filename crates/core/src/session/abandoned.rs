//! Abandoned turns: turns whose cancel the agent does not answer. The session takes prompts again after a
//! while, and the agent's other sessions continue.

use super::{Conversation, SessionRequest};
use crate::cx::Cx;
use acpipe_model::error::{Error, ErrorKind};
use acpipe_model::limits::Timeout;
use tracing::warn;

/// Frees the session from a turn that does not end. If no other turn runs in the agent process, the agent
/// is restarted. Otherwise only the session is closed and restored, if the agent supports that. If it
/// does not, the session waits for the other turns. Returns `true` if the session is lost by this.
pub fn recover(others_run: bool, talk: &Conversation, cx: &mut Cx<'_>) -> bool {
    if end_own_process(talk, cx) {
        return true;
    }
    let Some(info) = cx.agent.ready() else {
        return false;
    };
    let can = info.capabilities;
    let id = &talk.id;
    if !others_run && !talk.turns.is_prompted() {
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
        if let Some(agent_session) = talk.agent_session() {
            cx.close_at_agent(agent_session);
            return true;
        }
    }
    false
}

/// Ends the session's own process, if it has one; the next prompt restores the session. Returns `true` if
/// it did.
pub fn end_own_process(talk: &Conversation, cx: &mut Cx<'_>) -> bool {
    let until = cx.until(Timeout::CloseSession);
    let (Some(agent_session), Some(connection)) = (talk.agent_session(), &mut cx.agent.connection)
    else {
        return false;
    };
    let ended = connection.end_session_process(agent_session, cx.now, until);
    if ended {
        warn!(
            session = talk.id,
            "a cancelled turn does not end; stopping its process"
        );
    }
    ended
}

/// Creates the error of a session that is lost with its turn.
pub fn too_late() -> Error {
    let message = "the agent did not end a cancelled turn; its session is restored";
    Error::new(ErrorKind::Cancelled, message)
}
