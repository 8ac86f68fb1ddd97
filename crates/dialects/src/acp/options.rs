//! Session options that an ACP agent supports.

use acpipe_model::error::{Error, invalid};
use acpipe_policy::Policy;
use acpipe_protocol::wire::{McpServer, SessionOptions};

/// Checks the options of a session. ACP has modes and models; the policy enforces lists of tools, and acpipe
/// itself applies an output schema.
///
/// # Errors
/// `invalidParams` for any other option, and for lists that the policy cannot enforce.
pub fn check(
    options: &SessionOptions,
    servers: &[McpServer],
    policy: &Policy,
) -> Result<(), Error> {
    let own = SessionOptions {
        model: None,
        mode: None,
        allowed_tools: Vec::new(),
        disallowed_tools: Vec::new(),
        output_schema: None,
        ..options.clone()
    };
    let given = serde_json::to_value(&own).ok();
    let first = given
        .as_ref()
        .and_then(|given| given.as_object()?.keys().next());
    if let Some(name) = first {
        let why = "ACP agents do not support this option; use only model, mode, allowedTools, disallowedTools and outputSchema";
        return Err(invalid(&format!("options.{name}"), why));
    }
    // The agent's own settings may contain servers besides those of the client, so an empty list means
    // unknown.
    let names = servers.iter().map(|server| server.name.clone());
    let names = Some(names.collect()).filter(|names: &Vec<String>| !names.is_empty());
    policy.check_lists(options, names)
}
