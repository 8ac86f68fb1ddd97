//! What terminals say, shown by the tools that show them.

use crate::core::bridge::Bridge;
use crate::core::client::Outlet;
use crate::core::host::TerminalId;
use std::time::Instant;

impl Bridge {
    /// When something of a terminal is shown next.
    pub(in crate::core::bridge) fn hosting_due(&self) -> Option<(Instant, &'static str)> {
        let shown = self.hosting.host.deadline().map(|at| (at, "terminal"));
        shown.into_iter().chain(self.client_due()).min()
    }

    /// Shows what terminals said, if it is time for that.
    pub(in crate::core::bridge) fn tick_hosting(&mut self, now: Instant, outlet: &mut impl Outlet) {
        let news = self.hosting.host.news(now);
        self.show_terminals(news, outlet);
        self.tick_client(now, outlet);
    }

    /// Shows what the session's terminals said before its turn ends.
    pub(in crate::core::bridge) fn show_terminals_of(
        &mut self,
        id: &str,
        outlet: &mut impl Outlet,
    ) {
        let news = self.hosting.host.news_of(id);
        self.show_terminals(news, outlet);
    }

    /// A tool may show a terminal from now on.
    pub(in crate::core::bridge) fn tool_shows(&mut self, now: Instant) {
        self.hosting.host.show_soon(now);
    }

    pub(super) fn show_terminals(
        &mut self,
        news: Vec<(String, TerminalId)>,
        outlet: &mut impl Outlet,
    ) {
        for (id, terminal) in news {
            let Some(session) = self.sessions.get_mut(&id) else {
                continue;
            };
            let host = &mut self.hosting.host;
            session.with_turn(outlet, |turn, sink| {
                let name = terminal.to_string();
                // As long as no tool shows it nobody needs to see it.
                if let Some(tool) = turn.showing(&name)
                    && let Some(output) = host.show(terminal)
                {
                    turn.terminal(&name, tool, &output, sink);
                }
            });
        }
    }
}
