//! Known kinds and names of tools, and suggestions for unknown ones.

use acpipe_model::similar::nearest;
use acpipe_model::tool_names::known;
pub use acpipe_model::tool_names::mcp;

/// Kinds of tools, by ACP's names.
pub const KINDS: &[&str] = &[
    "read",
    "edit",
    "delete",
    "move",
    "search",
    "execute",
    "think",
    "fetch",
    "switch_mode",
    "other",
];

/// Tool names that stand for a kind, for agents that do not report tool names.
const STANDS_FOR: &[(&str, &str)] = &[
    ("Bash", "execute"),
    ("Edit", "edit"),
    ("Glob", "search"),
    ("Grep", "search"),
    ("Read", "read"),
    ("WebFetch", "fetch"),
    ("Write", "edit"),
];

pub fn kind(name: &str) -> Option<&'static str> {
    let of = |wanted: &str| known().find(|(name, _)| name.eq_ignore_ascii_case(wanted));
    of(name)
        .map(|(_, kind)| kind)
        .filter(|kind| *kind != "other")
}

/// Returns the kind that a name in a rule stands for; a kind stands for itself.
pub fn stands_for(name: &str) -> Option<&'static str> {
    let own = KINDS.iter().find(|kind| **kind == name).copied();
    let other = || {
        STANDS_FOR
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name))
    };
    own.or_else(|| other().map(|(_, kind)| *kind))
}

/// Requests that acpipe serves to agents, by ACP's method names.
const SERVED: &[&str] = &["fs/readTextFile", "fs/writeTextFile", "terminal/create"];

/// Returns `true` if a tool of this name is identified only by its kind. A tool without a name is displayed
/// by its kind, and requests that acpipe serves match rules for their kind.
pub fn is_kind_or_served(name: &str) -> bool {
    KINDS.contains(&name) || SERVED.contains(&name)
}

/// Checks that a kind exists.
///
/// # Errors
/// The kind does not exist.
pub fn check_kind(name: &str) -> Result<(), String> {
    if KINDS.contains(&name) {
        return Ok(());
    }
    Err(unknown("kind", name, KINDS))
}

/// Names of tools in addition to those that are always known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Names {
    pub declared: Vec<String>,
    /// MCP servers; `None` if they are unknown.
    pub servers: Option<Vec<String>>,
}

impl Names {
    /// Checks that a rule may use this tool name; a name with `*` is a pattern.
    ///
    /// # Errors
    /// The tool does not exist.
    pub fn check(&self, name: &str) -> Result<(), String> {
        if name.is_empty() {
            return Err("a tool name must not be empty".to_owned());
        }
        if name.trim() != name {
            let form = name.trim();
            return Err(format!(
                "{name:?} matches no tool: it has spaces around it; use {form:?}"
            ));
        }
        if name.contains(['(', ')']) {
            return Err(in_parentheses(name));
        }
        if let Some((server, _)) = mcp(name) {
            return match &self.servers {
                None => Ok(()),
                Some(servers) if server.contains('*') || servers.iter().any(|s| s == server) => {
                    Ok(())
                }
                Some(servers) => Err(unknown("MCP server", server, servers)),
            };
        }
        let declared = self.declared.iter().map(String::as_str);
        let all = known().map(|(name, _)| name).chain(KINDS.iter().copied());
        let all: Vec<&str> = all.chain(declared).collect();
        if name.contains('*') || all.iter().any(|known| known.eq_ignore_ascii_case(name)) {
            return Ok(());
        }
        let message = unknown("tool", name, &all);
        Err(format!(
            "{message}; to allow another tool name, declare it with permissions.tools = [{name:?}]"
        ))
    }

    pub fn declares(&self, name: &str) -> bool {
        self.declared.iter().any(|known| known == name)
    }
}

/// Returns the error for a list entry such as `Bash(rm:*)` in the position of a name.
fn in_parentheses(entry: &str) -> String {
    let (name, rest) = entry.split_once('(').unwrap_or((entry, ""));
    let inner = rest.strip_suffix(')').unwrap_or(rest);
    let condition = match kind(name).or_else(|| stands_for(name)) {
        Some("execute") => "command",
        _ => "path",
    };
    format!(
        "{entry:?} matches no tool: a name has no parentheses; use {name:?} with {condition} = {inner:?}, or put \
             {entry:?} in allowed_tools or disallowed_tools"
    )
}

/// Returns the message for an unknown word, with a suggestion or the known words.
pub fn unknown<S: AsRef<str>>(what: &str, word: &str, known: &[S]) -> String {
    let known = known.iter().map(AsRef::as_ref);
    if let Some(near) = nearest(word, known.clone()) {
        return format!("{word:?} is not a known {what}; did you mean {near:?}?");
    }
    let known: Vec<&str> = known.collect();
    format!(
        "{word:?} is not a known {what}; use one of {}",
        known.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_known_declared_or_patterns() {
        let names = Names {
            declared: vec!["deploy".into()],
            servers: Some(vec!["files".into()]),
        };
        for name in [
            "Read",
            "bash",
            "run_shell_command",
            "execute",
            "deploy",
            "*",
            "db_*",
            "mcp__files",
            "mcp__files__read",
            "mcp__*",
        ] {
            assert_eq!(names.check(name), Ok(()), "{name}");
        }
        for (name, why) in [
            ("Bsh", "\"Bsh\" is not a known tool; did you mean \"Bash\"?"),
            ("executes", "did you mean \"execute\"?"),
            ("deplyo", "did you mean \"deploy\"?"),
            ("frobnicate", "permissions.tools = [\"frobnicate\"]"),
            ("frobnicate", "use one of Agent, "),
            (
                "mcp__file__read",
                "\"file\" is not a known MCP server; did you mean \"files\"?",
            ),
            ("", "a tool name must not be empty"),
            (" Read", "it has spaces around it; use \"Read\""),
            ("Bash(rm:*)", "use \"Bash\" with command = \"rm:*\", or"),
            ("Edit(src/**)", "use \"Edit\" with path = \"src/**\", or"),
            ("mcp__s(x)", "a name has no parentheses"),
        ] {
            let error = names.check(name).unwrap_err();
            assert!(error.contains(why), "{name}: {error}");
        }
        assert_eq!(Names::default().check("mcp__any__thing"), Ok(()));
    }
}
