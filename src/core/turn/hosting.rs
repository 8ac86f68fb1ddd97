//! What acpipe did for the agent in a turn: the requests that were asked about, and the terminals that tools show.

use super::{AfterWords, ChunkSink, Turn};
use crate::core::event::ToolUpdate;
use crate::core::host::TerminalView;

impl Turn {
    /// What was asked about as a tool call was done, or could not be.
    pub fn served(&mut self, tool: &str, done: bool, sink: &mut impl ChunkSink) {
        let status = if done { "completed" } else { "failed" };
        let update = ToolUpdate {
            id: tool.into(),
            status: Some(status.into()),
            ..ToolUpdate::default()
        };
        let messages = &mut self.messages;
        self.tools
            .update(&update, &mut AfterWords { messages, sink });
    }

    /// The tool that shows a terminal.
    #[must_use]
    pub fn showing(&self, terminal: &str) -> Option<String> {
        self.tools.showing(terminal).map(str::to_owned)
    }

    /// Shows what a terminal said.
    pub fn terminal(
        &mut self,
        id: &str,
        tool: String,
        said: &TerminalView<'_>,
        sink: &mut impl ChunkSink,
    ) {
        self.terminals.served(id, tool, said, sink);
    }
}
