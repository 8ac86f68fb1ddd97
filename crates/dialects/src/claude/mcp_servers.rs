//! MCP servers of a session. They are sent in a control request, because the command line would show their
//! secrets to everyone who can list processes.

use acpipe_json::{non_null, raw_object};
use acpipe_protocol::wire::{McpPair, McpServer, McpTransport};
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// Converts MCP servers to the form of the CLI's configuration: an object by name.
pub fn by_name(servers: &[McpServer]) -> Value {
    let pairs = |pairs: &[McpPair]| {
        let pair = |pair: &McpPair| (pair.name.clone(), Value::from(pair.value.as_str()));
        Value::Object(pairs.iter().map(pair).collect())
    };
    let server = |server: &McpServer| {
        let mut fields = match &server.transport {
            McpTransport::Stdio { command, args, env } => {
                json!({"command": command, "args": args, "env": pairs(env)})
            }
            McpTransport::Http { url, headers } | McpTransport::Sse { url, headers } => {
                let kind = server.transport.name();
                json!({"type": kind, "url": url, "headers": pairs(headers)})
            }
        };
        for (name, value) in &server.other {
            fields[name] = value.clone();
        }
        (server.name.clone(), fields)
    };
    Value::Object(servers.iter().map(server).collect())
}

/// Returns the servers that the CLI could not reach, by name, with the reasons; `None` if it reached all.
pub fn failures(answer: &RawValue) -> Option<Box<RawValue>> {
    raw_object! {
        struct SetServersResponse { errors = "errors" }
    }
    let answer: SetServersResponse<'_> = serde_json::from_str(answer.get()).ok()?;
    let errors = non_null(answer.errors).filter(|errors| errors.get() != "{}")?;
    Some(errors.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mcp_servers_are_written_in_the_format_of_claude() {
        let given = [
            json!({"name": "a", "command": "c", "args": ["x"], "env": [{"name": "K", "value": "v"}]}),
            json!({"name": "b", "type": "http", "url": "u", "headers": []}),
        ];
        let want = json!({
            "a": {"command": "c", "args": ["x"], "env": {"K": "v"}},
            "b": {"type": "http", "url": "u", "headers": {}},
        });
        let given = given.map(|server| serde_json::from_value(server).unwrap());
        assert_eq!(by_name(&given), want);
    }
}
