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
/// `invalidParams` if an option is not valid, or the agent cannot be given it.
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
    dialects::check_options(protocol, options, servers, policy)
}
