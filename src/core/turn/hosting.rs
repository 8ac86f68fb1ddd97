//! What acpipe did for the agent in a turn: the requests that were asked about, and the terminals that tools show.

use super::{Turn, TurnView};
use crate::core::event::ToolUpdate;
use crate::core::host::TerminalView;

impl Turn {
    /// What was asked about as a tool call was done, or could not be.
    pub fn served(&mut self, tool: &str, done: bool, view: &mut impl TurnView) {
        let status = if done { "completed" } else { "failed" };
        let update = ToolUpdate {
            id: tool.into(),
            status: Some(status.into()),
            ..ToolUpdate::default()
        };
        self.tools.update(&update, view);
    }

    /// The tool that shows a terminal.
    #[must_use]
    pub fn showing(&self, terminal: &str) -> Option<String> {
        self.tools.showing(terminal).map(str::to_owned)
    }

    /// Takes over the state of a terminal that acpipe runs.
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
