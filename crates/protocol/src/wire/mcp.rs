//! MCP servers on the wire: written as in ACP, read in all forms that configuration files use.
//!
//! The values may be secrets: errors and debug output contain only the names of fields.

#[cfg(feature = "schema")]
mod schema;

#[cfg(feature = "schema")]
use schema::GivenPairs;
#[cfg(feature = "schema")]
pub use schema::McpServerList;
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error as _, MapAccess, Visitor};
use serde::ser::SerializeMap as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};
use std::fmt;

/// An MCP server of a session.
#[derive(Clone, PartialEq, Eq)]
pub struct McpServer {
    /// Name of the server, unique in its session.
    pub name: String,
    /// How the agent connects to the server.
    pub transport: McpTransport,
    /// Unknown fields, passed on to the agent unchanged.
    pub other: Map<String, Value>,
}

/// Transport of an MCP server.
#[derive(Clone, PartialEq, Eq)]
pub enum McpTransport {
    /// The agent starts the server as a process and uses its stdin and stdout.
    Stdio {
        /// Path or name of the program.
        command: String,
        /// Arguments of the program.
        args: Vec<String>,
        /// Environment variables of the process.
        env: Vec<McpPair>,
    },
    /// The agent connects to the server over HTTP.
    Http {
        /// Address of the server.
        url: String,
        /// Headers of each request to the server.
        headers: Vec<McpPair>,
    },
    /// The agent connects to the server over SSE.
    Sse {
        /// Address of the server.
        url: String,
        /// Headers of each request to the server.
        headers: Vec<McpPair>,
    },
}

impl McpTransport {
    /// Name on the wire: `stdio`, `http` or `sse`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Stdio { .. } => "stdio",
            Self::Http { .. } => "http",
            Self::Sse { .. } => "sse",
        }
    }
}

/// An environment variable or a header.
#[derive(Clone, PartialEq, Eq, Serialize)]
pub struct McpPair {
    /// Name of the variable or header, not empty.
    pub name: String,
    /// Value, possibly a secret.
    pub value: String,
    /// Unknown fields, such as `_meta`, passed on to the agent unchanged.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

impl fmt::Debug for McpServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} over {}", self.name, self.transport.name())
    }
}

impl Serialize for McpServer {
    /// Writes the form that ACP requires: a stdio server has no `type`, and empty lists are present.
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        map.serialize_entry("name", &self.name)?;
        match &self.transport {
            McpTransport::Stdio { command, args, env } => {
                map.serialize_entry("command", command)?;
                map.serialize_entry("args", args)?;
                map.serialize_entry("env", env)?;
            }
            McpTransport::Http { url, headers } | McpTransport::Sse { url, headers } => {
                map.serialize_entry("type", self.transport.name())?;
                map.serialize_entry("url", url)?;
                map.serialize_entry("headers", headers)?;
            }
        }
        for (name, value) in &self.other {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

/// An MCP server of a session. The agent starts it if it has a `command`, or connects to its `url` by its
/// `type`. In all strings except `name`, `${NAME}` stands for a variable of the agent's environment,
/// `${NAME:-text}` for `text` if that variable is unset or empty, and `$${` for a literal `${`.
#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "McpServer"))]
struct ServerFields {
    /// Name of the server, unique in its session. Required.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    name: Option<Text>,
    /// Transport: `stdio`, `http` or `sse`. Default: `stdio`. Required if there is a `url`.
    #[serde(rename = "type")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    kind: Option<Text>,
    /// Program to start, for `stdio`. ACP requires an absolute path; many agents also accept a name.
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    command: Option<Text>,
    /// Arguments of the program. Default: none.
    #[cfg_attr(feature = "schema", schemars(with = "Option<Vec<String>>"))]
    args: Option<StringList>,
    /// Environment variables of the program. Default: none.
    #[cfg_attr(feature = "schema", schemars(with = "Option<GivenPairs>"))]
    env: Option<Pairs>,
    /// Address of the server, for `http` and `sse`.
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    url: Option<Text>,
    /// Headers of each request to the server, for `http` and `sse`. Default: none.
    #[cfg_attr(feature = "schema", schemars(with = "Option<GivenPairs>"))]
    headers: Option<Pairs>,
    #[serde(flatten)]
    #[cfg_attr(feature = "schema", schemars(skip))]
    other: Map<String, Value>,
}

impl ServerFields {
    /// Checks and converts the server; `elsewhere` is its name if a configuration file gives that as a key.
    fn server(self, elsewhere: Option<String>) -> Result<McpServer, String> {
        let name = elsewhere.or(self.name.map(|name| name.0));
        let name = name.ok_or("name is missing")?;
        if name.is_empty() {
            return Err("name must not be empty".to_owned());
        }
        let some = |text: Option<Text>| text.map(|text| text.0).filter(|text| !text.is_empty());
        let (command, url) = (some(self.command), some(self.url));
        let pairs = |pairs: Option<Pairs>| pairs.unwrap_or_default().0;
        let mut other = self.other;
        // A field of the other transport is unknown to this one, so the agent receives it unchanged.
        let mut keep = |field: &str, pairs: Option<Pairs>| {
            if let Some(pairs) = pairs {
                other.insert(field.to_owned(), serde_json::json!(pairs.0));
            }
        };
        let kind = self.kind.map(|kind| kind.0);
        let transport = match kind.as_deref() {
            None if command.is_some() && url.is_some() => {
                return Err(
                    "command and url are both given; add type to choose stdio, http or sse".into(),
                );
            }
            None if url.is_some() => {
                return Err("type is missing; use http or sse for a server with a url".into());
            }
            None | Some("stdio") => {
                keep("headers", self.headers);
                McpTransport::Stdio {
                    command: command
                        .ok_or("command is missing; give a command, or a type and a url")?,
                    args: self.args.unwrap_or_default().0,
                    env: pairs(self.env),
                }
            }
            Some(kind @ ("http" | "sse")) => {
                keep("env", self.env);
                let url = url.ok_or("url is missing")?;
                let headers = pairs(self.headers);
                match kind {
                    "http" => McpTransport::Http { url, headers },
                    _ => McpTransport::Sse { url, headers },
                }
            }
            Some(kind) => {
                return Err(format!(
                    "type {kind:?} is not valid; use stdio, http or sse"
                ));
            }
        };
        Ok(McpServer {
            name,
            transport,
            other,
        })
    }
}

impl<'de> Deserialize<'de> for McpServer {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let given = from.deserialize_any(ServerVisitor)?;
        given.server(None).map_err(D::Error::custom)
    }
}

/// Visitor for one server, written by hand because serde's own errors quote the input.
struct ServerVisitor;

impl<'de> Visitor<'de> for ServerVisitor {
    type Value = ServerFields;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<ServerFields, A::Error> {
        ServerFields::deserialize(MapAccessDeserializer::new(map))
    }

    fn visit_str<E: serde::de::Error>(self, _: &str) -> Result<ServerFields, E> {
        Err(E::custom("must be an object"))
    }
}

/// MCP servers of a configuration file: an object with their names as keys, as in `.mcp.json`.
#[derive(Debug, Default)]
pub struct McpServersByName(pub Vec<McpServer>);

impl<'de> Deserialize<'de> for McpServersByName {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(ByNameVisitor)
    }
}

struct ByNameVisitor;

impl<'de> Visitor<'de> for ByNameVisitor {
    type Value = McpServersByName;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of servers by their names")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<McpServersByName, A::Error> {
        let mut servers: Vec<McpServer> = Vec::new();
        while let Some(name) = map.next_key::<String>()? {
            let NamedServer(given) = map.next_value()?;
            if servers.iter().any(|server| server.name == name) {
                return Err(A::Error::custom("two servers have this name"));
            }
            // The path of the error has the name.
            let server = given.server(Some(name));
            servers.push(server.map_err(A::Error::custom)?);
        }
        Ok(McpServersByName(servers))
    }
}

struct NamedServer(ServerFields);

impl<'de> Deserialize<'de> for NamedServer {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(ServerVisitor).map(Self)
    }
}

struct Text(String);

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        match Value::deserialize(from)? {
            Value::String(text) => Ok(Self(text)),
            _ => Err(D::Error::custom("must be a string")),
        }
    }
}

#[derive(Default)]
struct StringList(Vec<String>);

impl<'de> Deserialize<'de> for StringList {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = |value| match value {
            Value::String(text) => Some(text),
            _ => None,
        };
        let texts = match Value::deserialize(from)? {
            Value::Array(values) => values.into_iter().map(text).collect(),
            _ => None,
        };
        let texts = texts.ok_or_else(|| D::Error::custom("must be a list of strings"))?;
        Ok(Self(texts))
    }
}

#[derive(Default)]
struct Pairs(Vec<McpPair>);

impl<'de> Deserialize<'de> for Pairs {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let of_list = |value| {
            let Value::Object(mut fields) = value else {
                return None;
            };
            let (name, value) = (fields.remove("name")?, fields.remove("value")?);
            pair(name, value, fields)
        };
        let of_object = |(name, value)| pair(Value::String(name), value, Map::new());
        let pairs = match Value::deserialize(from)? {
            Value::Array(pairs) => pairs.into_iter().map(of_list).collect(),
            Value::Object(pairs) => pairs.into_iter().map(of_object).collect(),
            _ => None,
        };
        let why = "must be a list of objects with name and value, or an object of strings";
        pairs.map(Self).ok_or_else(|| D::Error::custom(why))
    }
}

fn pair(name: Value, value: Value, other: Map<String, Value>) -> Option<McpPair> {
    match (name, value) {
        (Value::String(name), Value::String(value)) if !name.is_empty() => {
            Some(McpPair { name, value, other })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn servers_are_read_in_every_spelling_and_written_in_acps() {
        let cases = [
            (
                json!({"name": "a", "command": "c"}),
                json!({"name": "a", "command": "c", "args": [], "env": []}),
            ),
            (
                json!({"name": "a", "type": "stdio", "command": "c", "args": ["x"], "env": {"K": "v"}, "url": null}),
                json!({"name": "a", "command": "c", "args": ["x"], "env": [{"name": "K", "value": "v"}]}),
            ),
            (
                json!({"name": "a", "type": "http", "url": "u", "headers": null}),
                json!({"name": "a", "type": "http", "url": "u", "headers": []}),
            ),
            (
                json!({"name": "a", "type": "sse", "url": "u", "headers": [{"name": "K", "value": "v", "_meta": {}}],
                    "_meta": {"x": 1}, "env": {"K": "v"}}),
                json!({"name": "a", "type": "sse", "url": "u", "headers": [{"name": "K", "value": "v", "_meta": {}}],
                    "_meta": {"x": 1}, "env": [{"name": "K", "value": "v"}]}),
            ),
        ];
        for (given, want) in cases {
            let server: McpServer = serde_json::from_value(given).unwrap();
            assert_eq!(serde_json::to_value(&server).unwrap(), want);
        }
    }

    #[test]
    fn mcp_errors_name_the_field_and_hide_the_value() {
        let cases = [
            (json!({"command": "s3cret"}), "[0]: name is missing"),
            (
                json!({"name": "", "command": "s3cret"}),
                "[0]: name must not be empty",
            ),
            (
                json!({"name": "a"}),
                "[0]: command is missing; give a command, or a type and a url",
            ),
            (
                json!({"name": "a", "command": ""}),
                "[0]: command is missing; give a command, or a type and a url",
            ),
            (json!({"name": "a", "type": "http"}), "[0]: url is missing"),
            (
                json!({"name": "a", "url": "s3cret"}),
                "[0]: type is missing; use http or sse",
            ),
            (
                json!({"name": "a", "url": "s3cret", "command": "s3cret"}),
                "[0]: command and url are both given",
            ),
            (
                json!({"name": "a", "type": "acp"}),
                "[0]: type \"acp\" is not valid; use stdio, http or sse",
            ),
            (
                json!({"name": "a", "command": ["s3cret"]}),
                "[0].command: must be a string",
            ),
            (
                json!({"name": "a", "command": "c", "args": "s3cret"}),
                "[0].args: must be a list of strings",
            ),
            (
                json!({"name": "a", "command": "c", "args": [1]}),
                "[0].args: must be a list of strings",
            ),
            (
                json!({"name": "a", "command": "c", "env": "s3cret"}),
                "[0].env: must be a list of objects",
            ),
            (
                json!({"name": "a", "command": "c", "env": [{"name": "s3cret"}]}),
                "[0].env: must be a list of objects",
            ),
            (
                json!({"name": "a", "command": "c", "env": {"K": 7}}),
                "[0].env: must be a list of objects",
            ),
            (json!("s3cret"), "[0]: must be an object"),
        ];
        for (given, why) in cases {
            let text = json!([given]).to_string();
            let read = acpipe_json::read_typed::<Vec<McpServer>>(&text);
            let fault = read.unwrap_err();
            let error = format!("{fault}: {}", fault.reason);
            assert!(error.starts_with(why), "{error}");
            assert!(!error.contains("s3cret"), "{error}");
        }
    }

    #[test]
    fn mcp_server_debug_output_hides_secrets() {
        let given = json!({"name": "a", "type": "http", "url": "http://me:s3cret@h", "headers": {"K": "s3cret"}});
        let server: McpServer = serde_json::from_value(given).unwrap();
        assert_eq!(format!("{server:?}"), "\"a\" over http");
    }

    #[test]
    fn a_file_names_its_servers() {
        let read = |text: &str| serde_json::from_str::<McpServersByName>(text);
        let McpServersByName(servers) =
            read(r#"{"b": {"command": "c"}, "a": {"type": "sse", "url": "u"}}"#).unwrap();
        let names: Vec<&str> = servers.iter().map(|s| s.name.as_str()).collect();
        assert_eq!(names, ["b", "a"]);
        let twice = read(r#"{"a": {"command": "c"}, "a": {"command": "d"}}"#).unwrap_err();
        assert!(twice.to_string().starts_with("two servers"), "{twice}");
        let wrong = read(r#"{"a": {"url": "s3cret"}}"#).unwrap_err().to_string();
        assert!(wrong.starts_with("type is missing"), "{wrong}");
    }
}
