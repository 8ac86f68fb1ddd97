//! MCP servers that a session gets from this agent.

use crate::agent_definition::AgentDefinition;
use crate::agent_spec::AgentSpec;
use crate::config::Settings;
use acpipe_model::error::Error;
use acpipe_model::event::AgentInfo;
use acpipe_model::mcp;
use acpipe_protocol::wire::McpServer;

/// Returns the MCP servers of a session, given those that it declares itself. Whether the agent can reach
/// them is checked only once the agent is ready.
///
/// Variables are filled in at every opening of a session, since the agent's environment may have changed.
///
/// # Errors
/// `invalidParams` if the agent cannot reach a server, or a variable is not set.
pub fn servers(
    own: &[McpServer],
    settings: &Settings,
    (definition, spec): (&AgentDefinition, &AgentSpec),
    ready: Option<&AgentInfo>,
) -> Result<Vec<McpServer>, Error> {
    let all = mcp::joined(own, &settings.mcp_servers_of(definition));
    if let Some(info) = ready {
        mcp::check_reachable(&all, (&spec.command, spec.protocol), info.capabilities)?;
    }
    let variable = |name: &str| {
        let value = spec.env.0.get(name);
        let value = value.or_else(|| settings.inherited.0.get(name));
        value.cloned().flatten()
    };
    mcp::filled(&all, &variable)
}
