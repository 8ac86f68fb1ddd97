//! Turn state for files and terminals that acpipe serves: judged requests, and terminals that tool calls
//! show.

use super::{Turn, TurnView};
use crate::core::event::ToolUpdate;
use crate::core::host::TerminalView;

impl Turn {
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

    /// Returns the id of the tool call that shows a terminal.
    #[must_use]
    pub fn showing(&self, terminal: &str) -> Option<String> {
        self.tools.showing(terminal).map(str::to_owned)
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
