//! Keys that a project's file may use only if the user trusts it: those that start or change programs, or
//! may allow more.

use super::{Definition, Parent, ResolutionContext};
use crate::cli::config::file::AgentTable;

/// Returns the reason why an agent cannot be used before the user trusts the file that defines it, or `None`
/// for an agent that can be used.
pub fn reason(
    definition: &Definition<'_>,
    parent: &Parent<'_>,
    context: ResolutionContext<'_>,
) -> Option<String> {
    if !definition.source.is_untrusted() {
        return None;
    }
    let does = if let Some(key) = first_key(definition.table) {
        format!("sets {key}")
    } else if (context.is_builtin)(definition.name) {
        "has the name of a built-in agent".to_owned()
    } else {
        match parent {
            Parent::Agent(parent) if !parent.from_project => {
                format!("extends your agent {:?}", parent.name)
            }
            Parent::Agent(parent) => return parent.locked.clone(),
            Parent::None | Parent::Builtin(_) => return None,
        }
    };
    let (name, file) = (definition.name, &definition.source.file);
    Some(review(&format!("agent {name:?} of {file} {does}")))
}

/// Adds the remedy to a reason.
#[must_use]
pub fn review(what: &str) -> String {
    format!("{what}; review the file, then run: acpipe agents trust")
}

/// Returns the first key of a definition that requires trust.
fn first_key(table: &AgentTable) -> Option<&'static str> {
    // Without `..`, so that a new key has to be sorted.
    let AgentTable {
        uses: _,
        command,
        args,
        extends: _,
        env,
        cwd,
        protocol,
        description: _,
        tags: _,
        prompt: _,
        model: _,
        mode,
        asks,
        tools,
        disallowed_tools: _,
        mcp_servers,
        permissions: _,
        timeout,
        child_per_session,
        options,
        // They change only how an agent that is trusted already is read.
        input: _,
        output: _,
        answer: _,
        history: _,
        stream: _,
        url,
        api_key_env,
        headers,
    } = table;
    let keys = [
        ("command", command.is_some()),
        ("url", url.is_some()),
        ("api_key_env", api_key_env.is_some()),
        ("headers", headers.is_some()),
        ("args", args.is_some()),
        ("env", env.is_some()),
        ("cwd", cwd.is_some()),
        ("protocol", protocol.is_some()),
        ("mode", mode.is_some()),
        ("asks", asks.is_some()),
        ("tools", tools.is_some()),
        ("mcp_servers", mcp_servers.is_some()),
        ("options", options.is_some()),
        ("timeout", timeout.is_some()),
        ("child_per_session", child_per_session.is_some()),
    ];
    keys.into_iter()
        .find(|(_, is_set)| *is_set)
        .map(|(key, _)| key)
}
