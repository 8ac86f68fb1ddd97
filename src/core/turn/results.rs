//! Tool calls and results of a turn, for its summary.

use super::{Call, SUMMARY_LIMIT, Turn};
use crate::proto::wire::{ToolCall, ToolResult};

impl Turn {
    /// Returns the tool calls of the turn, in order, and the size of the omitted arguments in bytes.
    #[must_use]
    pub fn tool_calls(&self) -> (Vec<ToolCall>, u64) {
        let mut calls = self.tools.calls(SUMMARY_LIMIT);
        self.passed.add_calls(&mut calls);
        calls
    }

    /// Returns the results of the turn's tools, in the order of the calls, and their omitted size in bytes.
    #[must_use]
    pub fn tool_results(&self) -> (Vec<ToolResult>, u64) {
        let mut results = self.tools.results(SUMMARY_LIMIT);
        self.passed.add_results(&mut results);
        results
    }

    /// Returns `true` if the tool call with this id has not ended; `None` if there is no such call.
    #[must_use]
    pub fn is_call_open(&self, id: &str) -> Option<bool> {
        self.tools.is_open(id)
    }

    /// Returns the calls of the agent's tools, in the order of their first appearance.
    pub fn calls(&self) -> impl Iterator<Item = &Call> {
        self.tools.iter()
    }

    /// Returns the name of the tool whose failure was the last event of the turn, if it was.
    #[must_use]
    pub fn failed_tool(&self) -> Option<&str> {
        self.tools.failed_last()
    }
}
