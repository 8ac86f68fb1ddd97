//! Parts of the schema of MCP servers that are read by hand.

use super::McpServer;
use schemars::JsonSchema;
use std::collections::BTreeMap;

/// Fields that other programs have in their configurations of MCP servers. Agents may know them: they get them as they are.
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

/// Variables or headers: a list, or an object of values by their names.
#[derive(JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "McpPairs")]
#[expect(dead_code, reason = "only its schema is used")]
pub enum GivenPairs {
    /// One after the other.
    List(Vec<GivenPair>),
    /// By their names.
    ByName(McpValues),
}

/// A variable or a header.
#[derive(JsonSchema)]
#[schemars(rename = "McpPair")]
#[expect(dead_code, reason = "only its schema is used")]
pub struct GivenPair {
    /// Its name.
    name: String,
    /// Its value.
    value: String,
}

/// Values by their names.
#[derive(JsonSchema)]
#[schemars(transparent)]
#[expect(dead_code, reason = "only its schema is used")]
pub struct McpValues(BTreeMap<String, String>);

/// MCP servers of a session.
#[derive(JsonSchema)]
#[schemars(transparent)]
#[expect(dead_code, reason = "only its schema is used")]
pub struct McpServerList(Vec<McpServer>);
