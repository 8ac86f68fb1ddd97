//! End of a call that has used up the time that its client allows for it. The error names the stage that the call
//! waited for.

use super::{Conversation, Stage};
use crate::client::Token;
use crate::cx::Cx;
use crate::timeout_error::MORE_TIME;
use acpipe_model::error::Error;
use acpipe_model::limits::Timeout;
use std::time::Duration;

/// Returns `true` if a call waits for the session to open, or for its turn to begin or end.
#[must_use]
pub fn is_awaited(token: Token, talk: &Conversation) -> bool {
    let opens = match &talk.stage {
        Stage::Opening(restore) => restore.waiters().iter().any(|waiter| waiter.token == token),
        Stage::Live { .. } | Stage::Resting => false,
    };
    let runs = talk.turns.prompted().is_some_and(|r| r.token == token);
    opens || runs || talk.queue.tokens().any(|queued| queued == token)
}

/// Creates the error of a call that waited until its limit for a session whose agent runs.
pub fn total_timeout(limit: Duration, talk: &Conversation, cx: &Cx<'_>) -> Error {
    let Stage::Opening(restore) = &talk.stage else {
        let what = "the call used up its time in the queue: its turn did not begin";
        let error = talk.timeout_after(Timeout::Turn, limit, what, MORE_TIME, cx);
        return error.with("stage", "queue");
    };
    if restore.is_setting() {
        let what = "the call used up its time: the agent did not answer the settings request";
        return talk.timeout_after(Timeout::Set, limit, what, MORE_TIME, cx);
    }
    let what = "the call used up its time: the agent did not open the session";
    let error = talk.timeout_after(Timeout::Restore, limit, what, MORE_TIME, cx);
    error.with("stage", Timeout::Open.name())
}
