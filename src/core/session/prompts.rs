//! Prompts: sent to the agent at once, or queued. An agent never has two prompts of one session at a time.

use super::{Queued, SessionMachine};
use crate::core::client::Token;
use crate::core::cx::Cx;
use crate::core::terms::CallerTerms;
use crate::proto::wire::Strategy;

impl SessionMachine {
    /// Answers a call at the end of a running or queued turn whose own client has left. Returns the call of that
    /// client; `None` if there is no such turn, or its client is still connected.
    pub fn take_over(
        &mut self,
        turn_id: &str,
        token: Token,
        caller: Option<&CallerTerms>,
        cx: &mut Cx<'_>,
    ) -> Option<Token> {
        let has_left = |owner: &Token| cx.shared.clients.get(owner.client).is_none();
        let running = self
            .talk
            .turns
            .prompted_mut()
            .filter(|r| r.turn_id == turn_id);
        let former = if let Some(running) = running {
            has_left(&running.token).then(|| std::mem::replace(&mut running.token, token))?
        } else {
            let queued = self.talk.queue.prompt_of(turn_id)?;
            has_left(&queued.token).then(|| queued.take_over(token, caller))?
        };
        // The client gets the notices about its terms.
        self.join(token.client, cx);
        if self.talk.turns.id() == Some(turn_id) {
            self.decisions.add_terms(caller, &mut self.talk, cx);
        }
        Some(former)
    }

    /// Queues a prompt. With `restores` it also starts the restore of the session.
    pub fn enqueue(&mut self, queued: Queued, restores: bool, cx: &mut Cx<'_>) {
        self.talk.queue.push(queued);
        self.talk.notify_queue(cx.clients);
        if restores {
            self.open(Strategy::Auto, cx);
        }
    }
}
