//! MCP servers of sessions: which servers a session gets, whether its agent can reach them, and the variables
//! in their fields.

use super::error::{Error, ErrorKind};
use acpipe_protocol::wire::{AgentCapabilities, McpPair, McpServer, McpTransport, Protocol};
use std::collections::HashSet;

/// Checks that the names of the servers are unique, since agents identify servers by name.
///
/// # Errors
/// `invalidParams` if two servers have the same name.
pub fn check(servers: &[McpServer]) -> Result<(), Error> {
    let mut names = HashSet::new();
    for (n, McpServer { name, .. }) in servers.iter().enumerate() {
        if !names.insert(name) {
            let field = format!("mcpServers[{n}].name");
            let message =
                format!("{field}: the name {name:?} is used twice; server names must be unique");
            return Err(Error::new(ErrorKind::InvalidParams, message).with("field", field));
        }
    }
    Ok(())
}

/// Returns a session's own servers, followed by those of `others` whose names are not taken.
pub fn joined(own: &[McpServer], others: &[McpServer]) -> Vec<McpServer> {
    let taken: HashSet<&str> = own.iter().map(|server| server.name.as_str()).collect();
    let others = others
        .iter()
        .filter(|other| !taken.contains(other.name.as_str()));
    own.iter().chain(others).cloned().collect()
}

/// Checks that an agent takes MCP servers, and supports the transport of each.
///
/// # Errors
/// `invalidParams` if the agent takes none, or a server uses a transport that it does not support.
pub fn check_reachable(
    servers: &[McpServer],
    (agent, protocol): (&str, Protocol),
    can: AgentCapabilities,
) -> Result<(), Error> {
    if let Some(server) = servers.first()
        && !protocol.takes_mcp_servers()
    {
        let protocol = protocol.name();
        let why = format!(
            "the agent {agent:?} takes no MCP servers, because its protocol is {protocol}; remove the server, or use \
             another agent"
        );
        return Err(wrong(&server.name, &why));
    }
    let is_unsupported = |server: &&McpServer| match server.transport {
        McpTransport::Stdio { .. } => false,
        McpTransport::Http { .. } => !can.mcp_http,
        McpTransport::Sse { .. } => !can.mcp_sse,
    };
    let Some(server) = servers.iter().find(is_unsupported) else {
        return Ok(());
    };
    let (name, transport) = (&server.name, server.transport.name());
    let offered = [("http", can.mcp_http), ("sse", can.mcp_sse)];
    let offered = offered.into_iter().filter(|(_, can)| *can);
    let offered: Vec<&str> = offered.map(|(name, _)| name).collect();
    let offered = if offered.is_empty() {
        "it supports only stdio".to_owned()
    } else {
        format!("it supports stdio and {}", offered.join(" and "))
    };
    let why = format!(
        "the agent {agent:?} does not support MCP servers over {transport} ({offered}); remove the server, or use a \
             command that bridges it to stdio"
    );
    Err(wrong(name, &why))
}

/// Returns the servers with their variables replaced; `variable` returns the value of a variable that is set.
///
/// # Errors
/// `invalidParams` if a variable without a default is not set, or `${…}` is not valid.
pub fn filled(
    servers: &[McpServer],
    variable: &impl Fn(&str) -> Option<String>,
) -> Result<Vec<McpServer>, Error> {
    let filled = |server: &McpServer| {
        let mut server = server.clone();
        let done = each_text(&mut server.transport, &mut |field, text| {
            if text.contains("${") {
                *text = fill(text, variable).map_err(|why| format!("{field}: {why}"))?;
            }
            Ok(())
        });
        done.map_err(|why| wrong(&server.name, &why))?;
        Ok(server)
    };
    servers.iter().map(filled).collect()
}

/// Returns the variables in a text, each with its default value if it has one.
pub fn variables(text: &str) -> impl Iterator<Item = (&str, Option<&str>)> {
    template_parts(text).filter_map(|piece| match piece {
        Ok(TemplatePart::Variable(name, default)) => Some((name, default)),
        _ => None,
    })
}

/// Calls `act` with each field of a server that may contain variables; stops at the first error.
fn each_text(
    transport: &mut McpTransport,
    act: &mut impl FnMut(&str, &mut String) -> Result<(), String>,
) -> Result<(), String> {
    let all =
        |field: &str, pairs: &mut Vec<McpPair>, act: &mut dyn FnMut(&str, &mut String) -> _| {
            let mut pairs = pairs.iter_mut();
            pairs.try_for_each(|pair| act(&format!("{field}.{}", pair.name), &mut pair.value))
        };
    match transport {
        McpTransport::Stdio { command, args, env } => {
            act("command", command)?;
            for (n, arg) in args.iter_mut().enumerate() {
                act(&format!("args[{n}]"), arg)?;
            }
            all("env", env, act)
        }
        McpTransport::Http { url, headers } | McpTransport::Sse { url, headers } => {
            act("url", url)?;
            all("headers", headers, act)
        }
    }
}

fn fill(text: &str, variable: &impl Fn(&str) -> Option<String>) -> Result<String, String> {
    let mut filled = String::new();
    for piece in template_parts(text) {
        match piece? {
            TemplatePart::Text(text) => filled.push_str(text),
            TemplatePart::Variable(name, default) => {
                // As in a shell, an empty variable counts as not set if there is a default.
                let value = variable(name).filter(|value| !value.is_empty() || default.is_none());
                let value = value.or_else(|| default.map(str::to_owned)).ok_or_else(|| {
                    format!(
                        "the variable {name} is not set; set it in the agent's environment, or write \
                             ${{{name}:-default}} for a default"
                    )
                })?;
                filled.push_str(&value);
            }
        }
    }
    Ok(filled)
}

enum TemplatePart<'a> {
    Text(&'a str),
    /// Variable with its default value, if any.
    Variable(&'a str, Option<&'a str>),
}

/// Splits a text at its variables; ends at the first error.
fn template_parts(text: &str) -> impl Iterator<Item = Result<TemplatePart<'_>, String>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (piece, left) = match rest.find("${") {
            None => (Ok(TemplatePart::Text(rest)), ""),
            Some(0) => variable_at(rest),
            Some(at) if rest[..at].ends_with('$') => {
                if at > 1 {
                    (Ok(TemplatePart::Text(&rest[..at - 1])), &rest[at - 1..])
                } else {
                    (Ok(TemplatePart::Text("${")), &rest[at + 2..])
                }
            }
            Some(at) => (Ok(TemplatePart::Text(&rest[..at])), &rest[at..]),
        };
        rest = left;
        Some(piece)
    })
}

/// Parses the variable at the beginning of a text. Also returns the text after it.
fn variable_at(text: &str) -> (Result<TemplatePart<'_>, String>, &str) {
    let Some((inside, left)) = text[2..].split_once('}') else {
        return (
            Err("a ${ has no closing }; write $${ for a literal ${".to_owned()),
            "",
        );
    };
    let (name, default) = match inside.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (inside, None),
    };
    let of_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if name.is_empty()
        || !name.chars().all(of_name)
        || name.starts_with(|c: char| c.is_ascii_digit())
    {
        let why = "the name in ${} is not a valid variable name; write $${ for a literal ${";
        return (Err(why.to_owned()), "");
    }
    (Ok(TemplatePart::Variable(name, default)), left)
}

fn wrong(server: &str, why: &str) -> Error {
    let message = format!("mcpServers: {server:?}: {why}");
    let error = Error::new(ErrorKind::InvalidParams, message);
    error.with("field", "mcpServers").with("server", server)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn servers(given: Value) -> Vec<McpServer> {
        serde_json::from_value(given).unwrap()
    }

    fn filled_with(text: &str) -> Result<String, String> {
        let variable = |name: &str| match name {
            "A" => Some("a-value".to_owned()),
            "EMPTY" => Some(String::new()),
            "ODD" => Some("${A}".to_owned()),
            _ => None,
        };
        fill(text, &variable)
    }

    #[test]
    fn variables_are_filled_in() {
        for (text, want) in [
            ("", ""),
            ("plain $A $ {A} }", "plain $A $ {A} }"),
            ("${A}", "a-value"),
            ("x${A}y${A}", "xa-valueya-value"),
            ("${NONE:-words}", "words"),
            ("${NONE:-}", ""),
            ("${A:-words}", "a-value"),
            ("${EMPTY}", ""),
            ("${EMPTY:-words}", "words"),
            ("${NONE:-a:-b}", "a:-b"),
            ("$${A}", "${A}"),
            ("x$${A}${A}", "x${A}a-value"),
            ("$$${A}", "$${A}"),
            // The value of a variable is not expanded again.
            ("${ODD}", "${A}"),
            ("é${A}é", "éa-valueé"),
        ] {
            assert_eq!(filled_with(text), Ok(want.to_owned()), "{text}");
        }
        for (text, why) in [
            ("${NONE}", "the variable NONE is not set"),
            ("x${A", "has no closing }"),
            ("${}", "not a valid variable name"),
            ("${1A}", "not a valid variable name"),
            ("${a.b}", "not a valid variable name"),
            ("${:-x}", "not a valid variable name"),
        ] {
            let error = filled_with(text).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }

    #[test]
    fn every_text_is_filled_in_and_the_field_is_named() {
        let all = servers(json!([
            {"name": "${A}", "command": "${A}", "args": ["x", "${A}"], "env": {"K": "${A}"}, "cwd": "${A}"},
            {"name": "b", "type": "http", "url": "http://${A}", "headers": {"K": "${A}"}},
        ]));
        let done = filled(&all, &|name| Some(name.to_lowercase())).unwrap();
        let want = json!([
            {"name": "${A}", "command": "a", "args": ["x", "a"], "env": [{"name": "K", "value": "a"}], "cwd": "${A}"},
            {"name": "b", "type": "http", "url": "http://a", "headers": [{"name": "K", "value": "a"}]},
        ]);
        assert_eq!(serde_json::to_value(done).unwrap(), want);
        for (given, why) in [
            (
                json!({"name": "s", "command": "${X}"}),
                "\"s\": command: the variable X",
            ),
            (
                json!({"name": "s", "command": "c", "args": ["", "${X}"]}),
                "\"s\": args[1]: the variable X",
            ),
            (
                json!({"name": "s", "command": "c", "env": {"K": "v${X}"}}),
                "\"s\": env.K: the variable X",
            ),
            (
                json!({"name": "s", "type": "sse", "url": "${X}"}),
                "\"s\": url: the variable X",
            ),
            (
                json!({"name": "s", "type": "sse", "url": "u", "headers": {"H": "${X}"}}),
                "\"s\": headers.H: the variable X",
            ),
        ] {
            let error = filled(&servers(json!([given])), &|_| None).unwrap_err();
            assert!(error.message.contains(why), "{error}");
            assert_eq!(
                (&error.data["field"], &error.data["server"]),
                (&json!("mcpServers"), &json!("s"))
            );
        }
    }

    #[test]
    fn own_servers_win() {
        let own = servers(json!([{"name": "a", "command": "own"}]));
        let others =
            servers(json!([{"name": "a", "command": "other"}, {"name": "b", "command": "other"}]));
        let all = joined(&own, &others);
        assert_eq!(all, [own[0].clone(), others[1].clone()]);
        let twice = [&own[..], &own[..]].concat();
        let error = check(&twice).unwrap_err();
        assert_eq!(
            error.message,
            "mcpServers[1].name: the name \"a\" is used twice; server names must be unique"
        );
        assert_eq!(check(&all), Ok(()));
    }

    #[test]
    fn unsupported_transport_is_reported() {
        let can = |mcp_http, mcp_sse| AgentCapabilities {
            mcp_http,
            mcp_sse,
            ..AgentCapabilities::default()
        };
        let all = servers(json!([
            {"name": "a", "command": "c"},
            {"name": "b", "type": "http", "url": "u"},
            {"name": "c", "type": "sse", "url": "u"},
        ]));
        assert_eq!(
            check_reachable(&all, ("x", Protocol::Acp), can(true, true)),
            Ok(())
        );
        assert_eq!(
            check_reachable(&all[..1], ("x", Protocol::Acp), can(false, false)),
            Ok(())
        );
        for (can, words) in [
            (
                can(false, false),
                ["\"b\"", "over http", "supports only stdio"],
            ),
            (can(true, false), ["\"c\"", "over sse", "stdio and http"]),
        ] {
            let error = check_reachable(&all, ("x", Protocol::Acp), can).unwrap_err();
            assert_eq!(error.kind, ErrorKind::InvalidParams);
            assert!(
                words.iter().all(|word| error.message.contains(word)),
                "{error}"
            );
        }
    }

    #[test]
    fn agent_of_a_protocol_without_mcp_servers_gets_none() {
        let all = servers(json!([{"name": "a", "command": "c"}]));
        for protocol in [Protocol::Command, Protocol::OpenAi, Protocol::UiStream] {
            let can = AgentCapabilities::default();
            assert_eq!(check_reachable(&[], ("x", protocol), can), Ok(()));
            let error = check_reachable(&all, ("x", protocol), can).unwrap_err();
            assert_eq!(error.kind, ErrorKind::InvalidParams);
            let why = format!(
                "takes no MCP servers, because its protocol is {}",
                protocol.name()
            );
            assert!(error.message.contains(&why), "{error}");
        }
    }
}
