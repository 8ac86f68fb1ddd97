//! Names of the tools of known agents, with their kinds, and of the tools of MCP servers.

use super::error::{Error, ErrorKind};

/// Built-in tools of Claude Code with their kinds in ACP's terms.
pub const BUILTIN: &[(&str, &str)] = &[
    ("Agent", "think"),
    ("AskUserQuestion", "other"),
    ("Bash", "execute"),
    ("BashOutput", "execute"),
    ("CronCreate", "other"),
    ("CronDelete", "other"),
    ("CronList", "other"),
    ("Edit", "edit"),
    ("EnterPlanMode", "switch_mode"),
    ("EnterWorktree", "other"),
    ("ExitPlanMode", "switch_mode"),
    ("ExitWorktree", "other"),
    ("Glob", "search"),
    ("Grep", "search"),
    ("KillShell", "execute"),
    ("LS", "search"),
    ("ListAgents", "other"),
    ("ListMcpResourcesTool", "other"),
    ("Monitor", "execute"),
    ("MultiEdit", "edit"),
    ("NotebookEdit", "edit"),
    ("NotebookRead", "read"),
    ("PowerShell", "execute"),
    ("Read", "read"),
    ("ReadMcpResourceTool", "read"),
    ("ReportFindings", "other"),
    ("ScheduleWakeup", "other"),
    ("SendMessage", "other"),
    ("Skill", "other"),
    ("SlashCommand", "other"),
    ("StructuredOutput", "other"),
    ("Task", "think"),
    ("TaskCreate", "think"),
    ("TaskGet", "think"),
    ("TaskList", "think"),
    ("TaskOutput", "execute"),
    ("TaskStop", "execute"),
    ("TaskUpdate", "think"),
    ("TodoWrite", "think"),
    ("ToolSearch", "search"),
    ("WebFetch", "fetch"),
    ("WebSearch", "fetch"),
    ("Workflow", "think"),
    ("Write", "edit"),
];

/// Tools of agents other than Claude Code, with their kinds; names that differ from Claude Code's only in
/// case count as the same.
const OTHERS: &[(&str, &str)] = &[
    // Gemini CLI, Qwen Code
    ("replace", "edit"),
    ("run_shell_command", "execute"),
    ("todo_write", "think"),
    ("write_file", "edit"),
    ("write_todos", "think"),
    // Codex
    ("apply_patch", "edit"),
    ("exec_command", "execute"),
    ("shell", "execute"),
    ("update_plan", "think"),
    // Kimi, Mistral Vibe
    ("FetchURL", "fetch"),
    ("ReadFile", "read"),
    ("ReadMediaFile", "read"),
    ("SearchWeb", "fetch"),
    ("SetTodoList", "think"),
    ("StrReplaceFile", "edit"),
    ("WriteFile", "edit"),
    ("search_replace", "edit"),
    ("todo", "think"),
];

/// Returns the tools of all known agents with their kinds.
pub fn known() -> impl Iterator<Item = (&'static str, &'static str)> {
    BUILTIN.iter().chain(OTHERS).copied()
}

/// Splits the name of an MCP tool into server and tool; the tool is empty if the name is that of a server.
pub fn mcp(name: &str) -> Option<(&str, &str)> {
    let name = name.strip_prefix("mcp__")?;
    Some(name.split_once("__").unwrap_or((name, "")))
}

/// Checks the rules that allow or disallow tools. A rule is a built-in tool, optionally with a rule for its
/// input such as `Bash(git:*)`; a configured MCP server as `mcp__server`; or one of its tools as
/// `mcp__server__tool`. `others` is `true` if there may be servers that acpipe does not know.
///
/// # Errors
/// A rule names a tool or server that does not exist.
pub fn check_rules<'a>(
    rules: impl IntoIterator<Item = &'a str>,
    servers: &[&str],
    others: bool,
) -> Result<(), Error> {
    for rule in rules {
        let name = match rule.split_once('(') {
            Some((name, rest)) if rest.ends_with(')') => Some(name),
            Some(_) => None,
            None => Some(rule),
        };
        let known = name.is_some_and(|name| match mcp(name) {
            Some((server, _)) => others || servers.contains(&server),
            None => BUILTIN.iter().any(|(builtin, _)| *builtin == name),
        });
        if !known {
            return Err(invalid(rule, servers));
        }
    }
    Ok(())
}

fn invalid(rule: &str, servers: &[&str]) -> Error {
    if rule.contains('(') && !rule.ends_with(')') {
        let message = format!("the tool rule {rule:?} has no closing parenthesis");
        return Error::new(ErrorKind::InvalidTool, message).with("tool", rule);
    }
    let builtin: Vec<&str> = BUILTIN.iter().map(|(name, _)| *name).collect();
    let servers: Vec<String> = servers.iter().map(|s| format!("mcp__{s}")).collect();
    let of_servers = if servers.is_empty() {
        "no MCP servers are configured".to_owned()
    } else {
        format!(
            "or a tool of a configured MCP server: {}",
            servers.join(", ")
        )
    };
    let message = format!(
        "tool {rule:?} not found; use one of: {}; {of_servers}",
        builtin.join(", ")
    );
    Error::new(ErrorKind::InvalidTool, message)
        .with("tool", rule)
        .with("tools", builtin)
        .with("servers", servers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_accept_only_existing_tools() {
        let servers = ["files", "my_db"];
        for rule in [
            "Bash",
            "Bash(git:*)",
            "Bash(echo (a) (b))",
            "mcp__files",
            "mcp__files__read",
            "mcp__my_db__*",
            "WebFetch(domain:example.com)",
        ] {
            check_rules([rule], &servers, false).unwrap();
        }
        for rule in ["bash", "mcp__other__read", "mcp__", "", "Bash, Read", "(x)"] {
            let error = check_rules(["Read", rule], &servers, false).unwrap_err();
            assert_eq!(error.kind, ErrorKind::InvalidTool);
            assert!(error.message.contains(&format!("{rule:?}")), "{error}");
            assert!(error.message.contains("Read"), "{error}");
            assert!(error.message.contains("mcp__my_db"), "{error}");
        }
        let error = check_rules(["Bash(git:*"], &servers, false).unwrap_err();
        assert!(error.message.contains("no closing parenthesis"), "{error}");
        assert!(check_rules(["mcp__other__read"], &[], true).is_ok());
        let error = check_rules(["mcp__x"], &[], false).unwrap_err();
        assert!(error.message.contains("no MCP servers are configured"));
    }
}
