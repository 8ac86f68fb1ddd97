//! Calls of a turn: by their ids, for the decision to which call an update belongs; for the summary; and those that show files and
//! terminals which acpipe serves.

use super::call_ids::CallState;
use super::{AgentIds, Call, SUMMARY_LIMIT, Subagent, Turn, TurnView};
use acpipe_model::event::ToolUpdate;
use acpipe_model::host::TerminalView;
use acpipe_protocol::wire::{ToolCall, ToolResult};

impl Turn {
    /// Returns the state of a call of the agent itself or, with `caller`, of a subagent; `None` if it is not
    /// known.
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
    pub fn repeats(&self, caller: Option<&str>, id: &str, update: &ToolUpdate<'_>) -> bool {
        let turn = match caller {
            Some(caller) => self.subagents.turn(caller),
            None => Some(self),
        };
        turn.is_some_and(|turn| turn.tools.repeats(id, update))
    }

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

    pub fn subagent_ids(&self) -> impl Iterator<Item = &str> {
        self.subagents.iter().map(Subagent::id)
    }

    /// Returns the tool calls of the turn, in order, and the size of the omitted arguments in bytes.
    pub fn tool_calls(&self) -> (Vec<ToolCall>, u64) {
        let mut calls = self.tools.calls(SUMMARY_LIMIT);
        self.passed.add_calls(&mut calls);
        calls
    }

    /// Returns the results of the turn's tools, in the order of the calls, and their omitted size in bytes.
    pub fn tool_results(&self) -> (Vec<ToolResult>, u64) {
        let mut results = self.tools.results(SUMMARY_LIMIT);
        self.passed.add_results(&mut results);
        results
    }

    /// Returns the calls of the agent's tools, in the order of their first appearance.
    pub fn calls(&self) -> impl Iterator<Item = &Call> {
        self.tools.iter()
    }

    /// Records the result of a request that was shown as tool call `tool`.
    pub fn served(&mut self, tool: &str, done: bool, view: &mut impl TurnView) {
        let status = if done { "completed" } else { "failed" };
        let update = ToolUpdate {
            id: tool.into(),
            status: Some(status.into()),
            ..ToolUpdate::default()
        };
        self.tools.update(&update, view);
    }

    /// Copies the state of a terminal that acpipe runs.
    pub fn terminal(
        &mut self,
        id: &str,
        tool: String,
        state: &TerminalView<'_>,
        view: &mut impl TurnView,
    ) {
        self.terminals.served(id, tool, state, view);
    }
}
