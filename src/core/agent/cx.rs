//! What an agent machine may use while it handles one event.

use crate::core::client::{Notice, Outlet, Reply, Token};
use crate::core::effect::Effect;
use crate::core::error::Error;
use crate::core::limits::Wait;
use crate::core::shared::Shared;
use crate::proto::wire::{AgentState, AgentStateParams};
use std::time::Instant;

/// The surroundings of one event.
pub struct AgentCx<'a, O> {
    pub now: Instant,
    pub shared: &'a mut Shared,
    /// Receives replies and notices.
    pub client: &'a mut O,
    /// Effects for the shell, in order.
    pub effects: &'a mut Vec<Effect>,
}

impl<O> AgentCx<'_, O> {
    /// When a wait that begins now is over.
    #[must_use]
    pub fn until(&self, wait: Wait) -> Option<Instant> {
        self.shared.settings.limits.until(wait, self.now)
    }
}

impl<O: Outlet> AgentCx<'_, O> {
    /// Notifies the client of the agent's state.
    pub fn notify_state(&mut self, agent: &str, state: AgentState, reason: Option<String>) {
        let params = AgentStateParams {
            agent: agent.to_owned(),
            state,
            reason,
            waiting_for: None,
        };
        self.client.notify(Notice::AgentState(params));
    }

    /// Answers all of these calls with an error.
    pub fn fail(&mut self, tokens: impl IntoIterator<Item = Token>, error: &Error) {
        for token in tokens {
            self.client.reply(token, Err(error.clone()));
        }
    }

    /// Answers a call.
    pub fn reply(&mut self, token: Token, reply: Reply) {
        self.client.reply(token, Ok(reply));
    }
}
