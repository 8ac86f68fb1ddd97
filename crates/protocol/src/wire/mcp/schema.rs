//! JSON schema of the parts of an MCP server that are parsed by hand.

use super::{McpServer, McpServersByName, ServerFields};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Fields of MCP servers in the configurations of other programs. acpipe passes them on unchanged, since the
/// agent may know them.
const PASSED_ON: &[&str] = &[
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

impl JsonSchema for McpServer {
    fn schema_name() -> Cow<'static, str> {
        "McpServer".into()
    }

    fn json_schema(g: &mut SchemaGenerator) -> Schema {
        let mut schema = ServerFields::json_schema(g);
        if let Some(Value::Object(properties)) = schema.get_mut("properties") {
            for name in PASSED_ON {
                let description = "Passed to the agent unchanged.";
                let field = json!({ "description": description });
                properties.insert((*name).to_owned(), field);
            }
        }
        schema
    }
}

impl JsonSchema for McpServersByName {
    fn schema_name() -> Cow<'static, str> {
        "McpServersByName".into()
    }

    fn json_schema(g: &mut SchemaGenerator) -> Schema {
        let server = g.subschema_for::<NamedMcpServer>();
        json_schema!({
            "description": "MCP servers by name.",
            "type": "object",
            "additionalProperties": server,
        })
    }
}

/// An MCP server whose name is the key of its table.
struct NamedMcpServer;

impl JsonSchema for NamedMcpServer {
    fn schema_name() -> Cow<'static, str> {
        "NamedMcpServer".into()
    }

    fn json_schema(g: &mut SchemaGenerator) -> Schema {
        let mut schema = McpServer::json_schema(g);
        if let Some(properties) = schema.get_mut("properties").and_then(|p| p.as_object_mut()) {
            properties.remove("name");
        }
        schema.remove("required");
        schema
    }
}
