//! JSON schema of the parts of an MCP server that are parsed by hand.

use super::McpServer;
use schemars::JsonSchema;
use std::collections::BTreeMap;

/// Fields of MCP servers in the configurations of other programs. acpipe passes them on unchanged, since the
/// agent may know them.
pub const PASSED_ON: &[&str] = &[
    "alwaysAllow",
    "autoApprove",
    "bearerTokenEnvVar",
    "cwd",
    "description",
    "disabled",
    "disabledTools",
    "enabled",
    "enabledTools",
    "envFile",
    "excludeTools",
    "headersHelper",
    "httpUrl",
    "id",
    "includeTools",
    "oauth",
    "timeout",
    "title",
    "tools",
    "transport",
    "trust",
    "version",
];

/// Environment variables or headers: a list, or an object with the names as keys.
#[derive(JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "McpPairs")]
#[expect(dead_code, reason = "only its schema is used")]
pub enum GivenPairs {
    /// List of `{name, value}` objects.
    List(Vec<GivenPair>),
    /// Object with the names as keys.
    ByName(McpValues),
}

/// An environment variable or a header.
#[derive(JsonSchema)]
#[schemars(rename = "McpPair")]
#[expect(dead_code, reason = "only its schema is used")]
pub struct GivenPair {
    /// Name of the variable or header.
    name: String,
    /// Value of the variable or header.
    value: String,
}

/// Values by name.
#[derive(JsonSchema)]
#[schemars(transparent)]
#[expect(dead_code, reason = "only its schema is used")]
pub struct McpValues(BTreeMap<String, String>);

/// MCP servers of a session.
#[derive(JsonSchema)]
#[schemars(transparent)]
#[expect(dead_code, reason = "only its schema is used")]
pub struct McpServerList(Vec<McpServer>);
