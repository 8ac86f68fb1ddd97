//! MCP servers of a session: handed over by a control request, since a command line shows its secrets to whoever may
//! list processes.

use crate::core::error::{Error, ErrorKind};
use crate::proto::json::{non_null, raw_object};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// Whether each MCP server has a name of its own: the CLI knows them by their names.
///
/// # Errors
/// One has none, or that of another.
pub fn check(servers: &[Value]) -> Result<(), Error> {
    let name = |server: &Value| server.get("name")?.as_str().map(str::to_owned);
    let names: Vec<Option<String>> = servers.iter().map(name).collect();
    for (n, name) in names.iter().enumerate() {
        let why = match name.as_deref() {
            None | Some("") => "a name is needed".to_owned(),
            Some(same) if names[..n].contains(name) => format!("there are two named {same:?}"),
            Some(_) => continue,
        };
        let field = format!("mcpServers[{n}].name");
        let error = Error::new(ErrorKind::InvalidParams, format!("{field}: {why}"));
        return Err(error.with("field", field));
    }
    Ok(())
}

/// MCP servers as ACP writes them, in the form of the CLI's configuration: by their names.
#[must_use]
pub fn by_name(servers: &[Value]) -> Value {
    let pairs = |list: &Value| {
        let pairs = list.as_array().into_iter().flatten();
        let pair = |p: &Value| Some((p.get("name")?.as_str()?.to_owned(), p.get("value")?.clone()));
        Value::Object(pairs.filter_map(pair).collect())
    };
    let server = |server: &Value| {
        let mut fields = server.as_object()?.clone();
        let name = fields.remove("name")?.as_str()?.to_owned();
        for list in ["env", "headers"] {
            if let Some(value) = fields.get_mut(list).filter(|value| value.is_array()) {
                *value = pairs(value);
            }
        }
        Some((name, Value::Object(fields)))
    };
    let all: Map<String, Value> = servers.iter().filter_map(server).collect();
    Value::Object(all)
}

/// The servers that the CLI could not reach, by their names, and why; nothing where it reached all.
#[must_use]
pub fn failures(answer: &RawValue) -> Option<Box<RawValue>> {
    raw_object! {
        struct Answer { errors = "errors" }
    }
    let answer: Answer<'_> = serde_json::from_str(answer.get()).ok()?;
    let errors = non_null(answer.errors).filter(|errors| errors.get() != "{}")?;
    Some(errors.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn mcp_servers_are_given_in_the_form_of_the_cli() {
        let given = [
            json!({"name": "a", "command": "c", "args": ["x"], "env": [{"name": "K", "value": "v"}]}),
            json!({"name": "b", "type": "http", "url": "u", "headers": []}),
        ];
        let want = json!({
            "a": {"command": "c", "args": ["x"], "env": {"K": "v"}},
            "b": {"type": "http", "url": "u", "headers": {}},
        });
        assert_eq!(by_name(&given), want);
    }

    #[test]
    fn servers_have_names_of_their_own() {
        let said = |servers: Value| {
            let servers = servers.as_array().unwrap().clone();
            check(&servers).map_err(|error| error.message)
        };
        assert_eq!(said(json!([{"name": "a"}, {"name": "b"}])), Ok(()));
        for (servers, why) in [
            (
                json!([{"name": "a"}, {"command": "c"}]),
                "mcpServers[1].name: a name is needed",
            ),
            (
                json!([{"name": ""}]),
                "mcpServers[0].name: a name is needed",
            ),
            (json!([7]), "mcpServers[0].name: a name is needed"),
            (
                json!([{"name": "a"}, {"name": "a"}]),
                "mcpServers[1].name: there are two named \"a\"",
            ),
        ] {
            assert_eq!(said(servers), Err(why.to_owned()));
        }
    }
}
