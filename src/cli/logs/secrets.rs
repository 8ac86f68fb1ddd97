//! Redaction of secrets in logs: the values that a client passes to agents and MCP servers.

use crate::core::client::Command;
use crate::core::mcp;
use crate::core::methods::Secret;
use crate::core::secret::{self, HIDDEN};
use crate::proto::wire::{McpPair, McpServer, McpTransport, Variables};
use serde_json::Value;
use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

/// Minimum length in bytes of a redacted value; shorter values occur in ordinary text.
const SHORTEST: usize = 6;

/// Maximum total size of the stored values in bytes; the oldest are dropped.
const ROOM: usize = 1 << 20;

/// Known secrets, shared by all clones.
#[derive(Debug, Clone, Default)]
pub struct Secrets(Arc<RwLock<SecretValues>>);

#[derive(Debug, Default)]
struct SecretValues {
    /// Age (a running number) and value, longest first because one value may be part of another.
    values: Vec<(u64, String)>,
    /// New values that `settle` has not merged into `values` yet.
    new: Vec<String>,
    bytes: usize,
    last: u64,
}

impl Secrets {
    /// Adds the values of environment variables.
    pub fn add_variables(&self, variables: &Variables) {
        for value in variables.0.values().flatten() {
            self.add_value(value);
        }
        self.settle();
    }

    /// Adds the values of acpipe's own environment variables whose names suggest a secret, because agents
    /// inherit them.
    pub fn add_inherited(&self) {
        for (name, value) in std::env::vars_os() {
            if secret::names_secret(&name.to_string_lossy()) {
                self.add_value(&value.to_string_lossy());
            }
        }
        self.settle();
    }

    /// Adds the secrets that a command passes to agents and MCP servers.
    pub fn add_from_command(&self, command: &Command) {
        for secret in command.secrets() {
            match secret {
                Secret::Variables(variables) => self.add_variables(variables),
                Secret::McpServers(servers) => self.add_servers(servers),
            }
        }
    }

    /// Adds the values of MCP servers' variables and headers, credentials and query values in their URLs, and
    /// the values of variables referenced in any of these or in arguments.
    pub fn add_servers(&self, servers: &[McpServer]) {
        for server in servers {
            let pairs = match &server.transport {
                McpTransport::Stdio { args, env, .. } => {
                    for arg in args {
                        self.add_referenced(arg);
                    }
                    env
                }
                McpTransport::Http { url, headers } | McpTransport::Sse { url, headers } => {
                    self.add_url_secrets(url);
                    self.add_referenced(url);
                    headers
                }
            };
            for McpPair { value, .. } in pairs {
                self.add_value(value);
                self.add_referenced(value);
            }
            let others = ["env", "headers"].map(|name| server.other.get(name));
            for value in others.into_iter().flatten() {
                self.add_strings(value);
            }
        }
        self.settle();
    }

    /// Merges new values into the list; they are redacted from now on.
    fn settle(&self) {
        self.0
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .settle();
    }

    /// Adds the defaults of the variables in a text and their values in acpipe's own environment. Values that
    /// the client sets are known already.
    fn add_referenced(&self, text: &str) {
        for (name, default) in mcp::variables(text) {
            self.add_value(default.unwrap_or_default());
            if let Ok(value) = std::env::var(name) {
                self.add_value(&value);
            }
        }
    }

    /// Adds the user information and the query values of a URL.
    fn add_url_secrets(&self, url: &str) {
        let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
        let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
        let host = place.split('/').next().unwrap_or_default();
        let caller = host.rsplit_once('@').map_or("", |(caller, _)| caller);
        let values = query.split('&').filter_map(|pair| pair.split_once('='));
        let values = values.map(|(_, value)| value);
        for value in caller.split(':').chain(values) {
            self.add_value(value);
        }
    }

    /// Adds all strings in a value except those of `name` members.
    fn add_strings(&self, value: &Value) {
        match value {
            Value::String(value) => self.add_value(value),
            Value::Array(values) => values.iter().for_each(|value| self.add_strings(value)),
            Value::Object(fields) => {
                for (_, value) in fields.iter().filter(|(name, _)| *name != "name") {
                    self.add_strings(value);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Adds each line of a value in the forms that logs contain: plain, and quoted as JSON once or twice.
    fn add_value(&self, value: &str) {
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        for line in value.lines().filter(|line| line.len() >= SHORTEST) {
            let once = quoted(line);
            let twice = quoted(&once);
            for form in [line.to_owned(), once, twice] {
                known.new.push(form);
            }
        }
    }

    /// Replaces known secrets and text that looks like a secret.
    pub fn hide<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut shown = Cow::Borrowed(text);
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        for (_, value) in &known.values {
            if shown.contains(value.as_str()) {
                shown = Cow::Owned(shown.replace(value.as_str(), HIDDEN));
            }
        }
        match shown {
            Cow::Borrowed(text) => secret::hide(text),
            Cow::Owned(text) => Cow::Owned(secret::hide(&text).into_owned()),
        }
    }
}

impl SecretValues {
    /// Merges new values into the sorted list, all at once because a single call may have very many.
    fn settle(&mut self) {
        let mut ages: HashMap<String, u64> = std::mem::take(&mut self.values)
            .into_iter()
            .map(|(age, value)| (value, age))
            .collect();
        for value in std::mem::take(&mut self.new) {
            self.last += 1;
            ages.insert(value, self.last);
        }
        let mut values: Vec<(u64, String)> =
            ages.into_iter().map(|(value, age)| (age, value)).collect();
        values.sort_unstable_by_key(|(age, _)| Reverse(*age));
        let (mut bytes, mut full) = (0, false);
        values.retain(|(_, value)| {
            full |= bytes + value.len() > ROOM;
            bytes += if full { 0 } else { value.len() };
            !full
        });
        self.bytes = bytes;
        values.sort_by_key(|(_, value)| Reverse(value.len()));
        self.values = values;
    }
}

/// Escapes a text as JSON, without the quotes.
fn quoted(text: &str) -> String {
    let quoted = Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn command(method: &str, params: Value) -> Command {
        match method {
            "connect" => Command::Connect(serde_json::from_value(params).unwrap()),
            "update" => Command::UpdateEnvironment(serde_json::from_value(params).unwrap()),
            "create" => Command::Create(serde_json::from_value(params).unwrap()),
            _ => Command::Ensure(serde_json::from_value(params).unwrap()),
        }
    }

    #[test]
    fn client_secrets_are_hidden() {
        let started = json!({"name": "the-server", "command": "the-command",
            "env": [{"name": "THE_NAME", "value": "hunter-1"}], "args": ["the-host", "${NONE:-hunter-2}"]});
        let reached = json!({"name": "the-server", "type": "http", "url": "https://hunter-1@the-host/?q=hunter-2"});
        let headers = json!({"name": "the-server", "type": "sse", "url": "https://the-host",
            "headers": {"X-Header": "hunter-1", "Y": "bearer ${NONE:-hunter-2}"}});
        let cases = [
            (
                "connect",
                json!({"env": {"A": "hunter-1", "B": "hunter-2", "C": null}}),
            ),
            ("update", json!({"set": {"A": "hunter-1", "B": "hunter-2"}})),
            ("ensure", json!({"mcpServers": [started]})),
            ("ensure", json!({"mcpServers": [reached]})),
            ("create", json!({"sessionId": "s", "mcpServers": [headers]})),
        ];
        for (method, params) in cases {
            let secrets = Secrets::default();
            secrets.add_from_command(&command(method, params));
            let text = "THE_NAME hunter-1, the-server the-host the-command X-Header hunter-2";
            let want = "THE_NAME [hidden], the-server the-host the-command X-Header [hidden]";
            assert_eq!(secrets.hide(text), want, "{method}");
        }
    }

    #[test]
    fn values_are_known_in_every_form() {
        let secrets = Secrets::default();
        let value = "a\"b\\c-d";
        let set = [
            ("A", value),
            ("B", "line one\nline two\n\nx"),
            ("C", "line one and more"),
        ];
        let set = set.map(|(name, value)| (name.to_owned(), Some(value.to_owned())));
        secrets.add_variables(&set.into_iter().collect());
        let once = json!(value).to_string();
        let twice = json!(once).to_string();
        for text in [value.to_owned(), once, twice, format!("{value:?}")] {
            assert!(!secrets.hide(&text).contains("-d"), "{text}");
        }
        assert_eq!(secrets.hide("line two; x"), "[hidden]; x");
        assert_eq!(
            secrets.hide("line one and more."),
            "[hidden].",
            "the longest first"
        );
    }

    #[test]
    fn oldest_secrets_are_dropped_over_the_limit() {
        let secrets = Secrets::default();
        let of = |n: usize| format!("{n}-{}", "x".repeat(ROOM / 8));
        for n in 0..100 {
            secrets.add_value(&of(n));
            secrets.settle();
            assert_eq!(secrets.hide(&of(n)), HIDDEN);
        }
        let known = secrets.0.read().unwrap();
        assert!(known.bytes <= ROOM);
        assert_eq!(
            known.bytes,
            known.values.iter().map(|(_, v)| v.len()).sum::<usize>()
        );
    }
}
