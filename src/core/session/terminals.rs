//! Output of terminals that acpipe serves, shown in the tool calls that refer to them.

use super::SessionMachine;
use crate::core::client_sink::ClientSinks;
use crate::core::cx::Cx;
use crate::core::host::{Host, TerminalId};

impl SessionMachine {
    /// Shows new output of the session's terminals.
    pub fn show_terminals(&mut self, cx: &mut Cx<'_>) {
        for (_, terminal) in cx.hosting.host.unreported_of(&self.id) {
            self.show_terminal(terminal, &mut cx.hosting.host, cx.clients);
        }
    }

    /// Shows new output of a terminal. The output is not sent until a tool call shows the terminal.
    pub fn show_terminal(
        &mut self,
        terminal: TerminalId,
        host: &mut Host,
        client: &mut dyn ClientSinks,
    ) {
        self.with_turn(client, |turn, sink| {
            let name = terminal.to_string();
            if let Some(tool) = turn.tools().showing(&name).map(str::to_owned)
                && let Some(output) = host.take_view(terminal)
            {
                turn.terminal(&name, tool, &output, sink);
            }
        });
    }
}
