//! Rules in Claude Code's syntax, in tool lists: `Read`, `Bash(git:*)`, `Edit(src/**)`, `mcp__server__*`.

use super::names::{Names, kind, stands_for};
use super::path::alternatives;
use super::{Effect, Rule};

/// Tools that change files, and tools that read files: a path rule for one of them applies to all of the same
/// list.
const EDITING: &[&str] = &["Edit", "MultiEdit", "NotebookEdit", "Write"];
const READING: &[&str] = &["Glob", "Grep", "LS", "NotebookRead", "Read"];

/// Parses an entry of a list as a rule.
///
/// # Errors
/// The tool does not exist, or has no condition of this form.
pub fn rule(
    entry: &str,
    label: String,
    effect: Effect,
    names: &Names,
    home: Option<&str>,
) -> Result<Rule, String> {
    if entry.trim() != entry {
        let form = entry.trim();
        return Err(format!(
            "{entry:?} matches no tool: it has spaces around it; use {form:?}"
        ));
    }
    let mut rule = Rule::new(label, effect);
    let Some((name, rest)) = entry.split_once('(') else {
        rule.tool(entry, names)?;
        return Ok(rule);
    };
    let inner = rest.strip_suffix(')');
    let inner = inner.ok_or_else(|| format!("{entry:?} has no closing parenthesis"))?;
    names.check(name)?;
    match kind(name).or_else(|| stands_for(name)) {
        Some("execute") => {
            rule.tool(name, names)?;
            rule.command(inner)?;
        }
        Some(kind @ ("edit" | "read" | "search")) => {
            let all = if kind == "edit" { EDITING } else { READING };
            let like_claude = all.iter().any(|tool| tool.eq_ignore_ascii_case(name));
            let tools = if like_claude { all } else { &[name] };
            tools.iter().try_for_each(|tool| rule.tool(tool, names))?;
            for pattern in alternatives(inner)? {
                rule.path(&path(&pattern), home)?;
            }
        }
        _ => {
            return Err(format!(
                "{entry:?}: rules for {name} can only use its name; use {name:?}, or write a rule with conditions"
            ));
        }
    }
    Ok(rule)
}

/// Converts a path pattern in Claude Code's syntax: `//` is the root, `/` the working directory, and a bare
/// name matches every file of that name.
fn path(said: &str) -> String {
    if let Some(rest) = said.strip_prefix("//") {
        return format!("/{rest}");
    }
    let rest = said.strip_prefix('/').or_else(|| said.strip_prefix("./"));
    match rest {
        Some(rest) => rest.to_owned(),
        None if said.trim_end_matches('/').contains('/') || said.starts_with(['~', '*']) => {
            said.to_owned()
        }
        None if said.is_empty() => String::new(),
        None => format!("**/{said}"),
    }
}
