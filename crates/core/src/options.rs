//! Checks of session options that all dialects share.

use super::output_schema;
use acpipe_dialects as dialects;
use acpipe_model::error::{Error, invalid};
use acpipe_policy::Policy;
use acpipe_protocol::wire::{McpServer, Protocol, SessionOptions};
use std::path::Path;

/// Checks the session options for an agent of this protocol; `servers` are all MCP servers of the session.
///
/// # Errors
/// `invalidParams` if an option is not valid, the agent cannot be given it, or the policy cannot enforce the lists of tools.
pub fn check(
    protocol: Protocol,
    options: &SessionOptions,
    servers: &[McpServer],
    policy: &Policy,
) -> Result<(), Error> {
    let is_absolute = |path: &&String| Path::new(path).is_absolute();
    let mut directories = options.additional_directories.iter();
    if let Some(directory) = directories.find(|d| !is_absolute(d)) {
        let why = format!("{directory:?} must be an absolute path");
        return Err(invalid("options.additionalDirectories", &why));
    }
    if options.max_turns == Some(0) {
        return Err(invalid("options.maxTurns", "must be at least 1"));
    }
    output_schema::check("options.outputSchema", options.output_schema.as_ref())?;
    dialects::check_options(protocol, options, servers)?;
    if dialects::traits(protocol).enforces_tool_lists {
        return Ok(());
    }
    // The agent's own settings may contain servers besides those of the client, so an empty list means unknown.
    let names = servers.iter().map(|server| server.name.clone());
    let names = Some(names.collect()).filter(|names: &Vec<String>| !names.is_empty());
    policy.check_lists(options, names)
}
