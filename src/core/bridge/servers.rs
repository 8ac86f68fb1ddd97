//! The MCP servers that sessions are opened with.

use super::{Bridge, Phase};
use crate::core::error::Error;
use crate::core::mcp;
use crate::proto::wire::McpServer;

impl Bridge {
    /// What a session with these servers of its own gets, as far as it can be told by now: whether the agent reaches
    /// them is known once it is ready.
    ///
    /// Variables are filled in anew whenever it is opened: the agent's environment may have changed.
    pub(super) fn servers(&self, own: &[McpServer]) -> Result<Vec<McpServer>, Error> {
        let all = mcp::joined(own, &self.settings.mcp_servers);
        let spec = self.spec_in_use();
        if let Some(Phase::Ready(info)) = self.agent.as_ref().map(|agent| &agent.phase) {
            mcp::reached(&all, &spec.command, info.capabilities)?;
        }
        mcp::filled(&all, &|name: &str| self.variable(name))
    }
}
