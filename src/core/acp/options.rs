//! Options of sessions that an ACP agent can be given.

use crate::core::error::{Error, invalid};
use crate::core::policy::Policy;
use crate::proto::wire::{McpServer, SessionOptions};

/// Checks options: the protocol has modes and models; lists of tools are enforced by the policy.
///
/// # Errors
/// `invalidParams`.
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
        ..options.clone()
    };
    let given = serde_json::to_value(&own).ok();
    let first = given
        .as_ref()
        .and_then(|given| given.as_object()?.keys().next());
    if let Some(name) = first {
        let why = "agents that speak ACP take no such option: only model, mode, allowedTools and \
                   disallowedTools";
        return Err(invalid(&format!("options.{name}"), why));
    }
    // Servers that the client does not name may stand in the agent's own settings.
    let names = servers.iter().map(|server| server.name.clone());
    let names = Some(names.collect()).filter(|names: &Vec<String>| !names.is_empty());
    policy.check_lists(options, names)
}
