//! Context of an agent machine while it handles one event.

use crate::core::client::{Notice, Reply, Token};
use crate::core::client_sink::ClientSinks;
use crate::core::effect::Effect;
use crate::core::error::Error;
use crate::core::shared::Shared;
use crate::proto::wire::{AgentState, AgentStateParams};
use std::time::Instant;

/// Context of one event.
pub struct AgentCx<'a> {
    /// Running time of the event.
    pub now: Instant,
    /// State that all machines use.
    pub shared: &'a mut Shared,
    /// Sinks of the clients, which receive replies and notifications.
    pub clients: &'a mut dyn ClientSinks,
    /// Effects for the shell, in order.
    pub effects: &'a mut Vec<Effect>,
}

impl AgentCx<'_> {
    /// Notifies all clients of the agent's state.
    pub fn notify_state(&mut self, agent: &str, state: AgentState, reason: Option<String>) {
        let params = AgentStateParams {
            agent: agent.to_owned(),
            state,
            reason,
            waiting_for: None,
        };
        let notice = Notice::AgentState(params);
        self.shared.notify_all(&notice, self.clients);
    }

    /// Answers all of these calls with an error.
    pub fn fail(&mut self, tokens: impl IntoIterator<Item = Token>, error: &Error) {
        for token in tokens {
            self.clients.reply(token, Err(error.clone()));
        }
    }

    /// Answers a call.
    pub fn reply(&mut self, token: Token, reply: Reply) {
        self.clients.reply(token, Ok(reply));
    }
}
