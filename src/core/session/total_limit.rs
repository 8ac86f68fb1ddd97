//! End of a call that has used up the time that its client allows for it. The error names the stage that the call
//! waited for.

use super::{SessionMachine, Stage};
use crate::core::client::Token;
use crate::core::cx::Cx;
use crate::core::error::Error;
use crate::core::limits::Timeout;
use crate::core::timeout_error::MORE_TIME;
use std::time::Duration;

impl SessionMachine {
    /// Returns `true` if a call waits for the session to open, or for its turn to begin or end.
    #[must_use]
    pub fn awaits(&self, token: Token) -> bool {
        let opens = match &self.talk.stage {
            Stage::Opening(restore) => restore.waiters().iter().any(|waiter| waiter.token == token),
            Stage::Live { .. } | Stage::Resting => false,
        };
        let runs = self.talk.turns.prompted().is_some_and(|r| r.token == token);
        opens || runs || self.talk.queue.tokens().any(|queued| queued == token)
    }

    /// Ends a call at its limit: a running turn is cancelled, a call that waits fails. `start` is the error if the
    /// session waits for its agent to start. The opening of the session ends if no other call waits for it.
    pub fn end_call(
        &mut self,
        token: Token,
        limit: Duration,
        start: Option<Error>,
        cx: &mut Cx<'_>,
    ) {
        if self.talk.turns.prompted().is_some_and(|r| r.token == token) {
            self.cancel_overlong(limit, cx);
            return;
        }
        let error = start.unwrap_or_else(|| self.total_timeout(limit, cx));
        if self.talk.queue.take_call(token).is_some() {
            self.talk.notify_queue(cx.clients);
        } else if let Stage::Opening(restore) = &mut self.talk.stage {
            restore.waiters_mut().retain(|waiter| waiter.token != token);
        }
        cx.clients.reply(token, Err(error.clone()));
        let is_needed = match &self.talk.stage {
            Stage::Opening(restore) => {
                !restore.waiters().is_empty()
                    || self.talk.turns.is_prompted()
                    || !self.talk.queue.is_empty()
                    || !self.talk.settings.pending().is_empty()
            }
            Stage::Live { .. } | Stage::Resting => true,
        };
        if !is_needed {
            self.opening_failed(&error, cx);
        }
    }

    /// Creates the error of a call that waited until its limit for a session whose agent runs.
    fn total_timeout(&self, limit: Duration, cx: &Cx<'_>) -> Error {
        let Stage::Opening(restore) = &self.talk.stage else {
            let what = "the call used up its time in the queue: its turn did not begin";
            let error = self
                .talk
                .timeout_after(Timeout::Turn, limit, what, MORE_TIME, cx);
            return error.with("stage", "queue");
        };
        if restore.is_setting() {
            let what = "the call used up its time: the agent did not answer the settings request";
            return self
                .talk
                .timeout_after(Timeout::Set, limit, what, MORE_TIME, cx);
        }
        let what = "the call used up its time: the agent did not open the session";
        let error = self
            .talk
            .timeout_after(Timeout::Restore, limit, what, MORE_TIME, cx);
        error.with("stage", Timeout::Open.name())
    }
}
