//! Context of an agent machine while it handles one event.

use crate::client::{Notice, Reply, Token};
use crate::client_sink::ClientSinks;
use crate::effect::Effect;
use crate::shared::Shared;
use acpipe_model::error::Error;
use acpipe_protocol::wire::{AgentState, AgentStateParams};
use std::time::Instant;

/// Context of one event.
pub struct AgentCx<'a> {
    pub now: Instant,
    pub shared: &'a mut Shared,
    pub clients: &'a mut dyn ClientSinks,
    /// Effects for the shell, in order.
    pub effects: &'a mut Vec<Effect>,
}

impl AgentCx<'_> {
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

    pub fn fail(&mut self, tokens: impl IntoIterator<Item = Token>, error: &Error) {
        for token in tokens {
            self.clients.reply(token, Err(error.clone()));
        }
    }

    pub fn reply(&mut self, token: Token, reply: Reply) {
        self.clients.reply(token, Ok(reply));
    }
}
