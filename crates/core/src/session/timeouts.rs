//! Timeouts of turns: their errors, and output of the agent that postpones them.

use super::{Conversation, Running};
use crate::cx::Cx;
use acpipe_model::error::Error;
use acpipe_model::limits::Timeout;
use std::time::Duration;

/// Resets the idle timer on output that is not an update of the session: output of the session's own
/// process, or, while the session has no agent session id, updates of unknown sessions.
pub fn note_process_output(talk: &mut Conversation, cx: &mut Cx<'_>) {
    let Some(connection) = &cx.agent.connection else {
        return;
    };
    let process = connection.process_of(talk.agent_session(), talk.asked());
    let own = process
        .filter(|p| p.is_for_one())
        .and_then(|p| p.last_activity);
    let early = connection.directory.early_at();
    let early = early.filter(|_| talk.asked().is_some());
    let limit = cx.limits().of(Timeout::Open);
    if let Some(at) = own.max(early)
        && talk.idle_timer.is_some_and(|s| s.is_latest(at))
    {
        talk.note_activity(at, "update", cx.clients);
        talk.restart_opening_step(at, limit);
    }
}

/// Creates the error of a cancel that the agent did not answer, and adds it to the error of a turn that was cancelled
/// for its own timeout.
pub fn unanswered_cancel(talk: &mut Conversation, cx: &Cx<'_>) -> Error {
    let advice = "the next prompt waits until the agent ends the turn or the session is restored";
    let what = "the agent did not answer session/cancel";
    let error = talk.timeout(Timeout::Cancel, what, advice, cx);
    let running = talk.turns.prompted_mut();
    if let Some(silent) = running.and_then(|r| r.timed_out.as_mut()) {
        silent.message = format!("{}; {}", silent.message, error.message);
    }
    error
}

pub fn silent_turn(talk: &Conversation, cx: &Cx<'_>) -> Option<Error> {
    let advice = cancelled_in(talk.turns.prompted()?, "");
    let what = "the turn timed out: no output from the agent";
    Some(talk.timeout(Timeout::Prompt, what, &advice, cx))
}

/// Creates the error of a turn that has reached a limit on its whole length; `None` if it ends anyway.
pub fn overlong_turn(limit: Duration, talk: &Conversation, cx: &Cx<'_>) -> Option<Error> {
    let goes_on = |running: &&Running| running.ended.is_none() && !running.is_cancelled();
    let running = talk.turns.prompted().filter(goes_on)?;
    let advice = cancelled_in(running, "; prompt again to continue");
    let what = "the turn timed out: it did not end";
    Some(talk.timeout_after(Timeout::Turn, limit, what, &advice, cx))
}

fn cancelled_in(running: &Running, advice: &str) -> String {
    match running.turn.activity() {
        Some(tool) => format!(
            "the turn was cancelled while tool {} was running",
            tool.tool_name
        ),
        None => format!("the turn was cancelled{advice}"),
    }
}
