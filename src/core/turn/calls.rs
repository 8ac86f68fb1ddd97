//! Calls of a turn by their ids, for the decision to which call an update belongs.

use super::call_ids::CallState;
use super::{AgentIds, Subagent, Turn};
use crate::core::event::ToolUpdate;

impl Turn {
    /// Returns the state of a call of the agent itself or, with `caller`, of a subagent; `None` if it is not
    /// known.
    #[must_use]
    pub fn call_state(&self, caller: Option<&str>, id: &str) -> Option<CallState> {
        let Some(caller) = caller else {
            let known = self.tools.state(id).or_else(|| self.passed.state(id));
            let expected = || self.tools.is_expected(id).then_some(CallState::Open);
            return known.or_else(expected);
        };
        let subagent = self.subagents.turn(caller);
        let known = subagent.and_then(|turn| turn.tools.state(id));
        // The agent asked about the call, or acpipe judged it, before the subagent reported it.
        let expected = || self.tools.is_expected(id).then_some(CallState::Open);
        known.or_else(expected)
    }

    /// Returns `true` if the turn, or a subagent of it, has a call with this id.
    #[must_use]
    pub fn has_call(&self, id: &str) -> bool {
        let mut subagents = self.subagents.turns();
        self.tools.knows(id) || subagents.any(|turn| turn.tools.knows(id))
    }

    /// Iterates over the ids of the calls of the turn and of its subagents.
    pub fn call_ids(&self) -> impl Iterator<Item = &str> {
        let subagents = self.subagents.turns();
        let of_subagents = subagents.flat_map(|turn| turn.tools.ids());
        let own = self.tools.ids().chain(self.passed.ids());
        own.chain(of_subagents)
    }

    /// Returns `true` if an update has nothing that is not known of a call.
    #[must_use]
    pub fn repeats(&self, caller: Option<&str>, id: &str, update: &ToolUpdate<'_>) -> bool {
        let turn = match caller {
            Some(caller) => self.subagents.turn(caller),
            None => Some(self),
        };
        turn.is_some_and(|turn| turn.tools.repeats(id, update))
    }

    /// Takes out the agent's ids of messages, tool calls and subagents.
    pub fn take_agent_ids(&mut self) -> AgentIds {
        let messages = self.messages.take_ids();
        let infos = self.subagents.take_infos();
        let names = self.tools.take_agent_ids().with_messages(messages);
        let names = names.with_subagents(&self.earlier, infos);
        let subagents = self.subagents.turns_mut();
        names.with_decided(
            &self.earlier,
            subagents.map(|turn| turn.tools.take_agent_ids()),
        )
    }

    /// Iterates over the agent's ids of the subagents.
    pub fn subagent_ids(&self) -> impl Iterator<Item = &str> {
        self.subagents.iter().map(Subagent::id)
    }
}
