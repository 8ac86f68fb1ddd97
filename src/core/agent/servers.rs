//! The MCP servers that a session gets from this agent.

use crate::core::agent_spec::AgentSpec;
use crate::core::config::Settings;
use crate::core::error::Error;
use crate::core::event::AgentInfo;
use crate::core::mcp;
use crate::proto::wire::McpServer;

/// The MCP servers of a session that has these of its own, as far as they are known: whether the agent reaches them is
/// known once it is ready.
///
/// Variables are filled in anew whenever a session is opened: the agent's environment may have changed.
///
/// # Errors
/// A server cannot be reached by the agent, or a variable is not set.
pub fn servers(
    own: &[McpServer],
    settings: &Settings,
    spec: &AgentSpec,
    ready: Option<&AgentInfo>,
) -> Result<Vec<McpServer>, Error> {
    let all = mcp::joined(own, &settings.mcp_servers);
    if let Some(info) = ready {
        mcp::reached(&all, &spec.command, info.capabilities)?;
    }
    let variable = |name: &str| {
        let value = spec.env.0.get(name);
        let value = value.or_else(|| settings.inherited.0.get(name));
        value.cloned().flatten()
    };
    mcp::filled(&all, &variable)
}
