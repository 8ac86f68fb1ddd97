//! Tests of lists of allowed and disallowed tools, with Claude Code's names.

use super::super::*;
use acpipe_model::error::ErrorKind;
use serde_json::json;
use serde_json::value::to_raw_value;

/// Call with this name, kind and input, and whether a list with these entries matches it.
type Case = (Option<&'static str>, &'static str, serde_json::Value, bool);

fn listed(entry: &str, case: &Case, effect: Effect) -> bool {
    let (name, kind, input, _) = case;
    let input = to_raw_value(input).unwrap();
    let tool = ToolProperties {
        name: *name,
        kind: Some(kind),
        input: Some(&input),
        ..ToolProperties::default()
    };
    let mut policy = Policy::at_home(Some("/home/me".into()));
    policy.set_mode(Mode::Ask);
    policy.declare("deploy");
    policy.add_listed(entry, "list", effect).unwrap();
    let verdict = policy.judge(&Subject::of_tool(&tool, "/w"));
    let by = verdict.by == format!("list {entry:?}");
    assert_eq!(verdict.effect == effect, by, "{verdict:?}");
    by
}

#[test]
fn lists_name_tools_as_claude_code_does() {
    let none = || json!({});
    let run = |line: &str| json!({ "command": line });
    let file = |path: &str| json!({ "file_path": path });
    let cases: Vec<(&str, Case)> = vec![
        ("Read", (Some("Read"), "read", none(), true)),
        ("Read", (Some("Write"), "edit", none(), false)),
        ("bash", (Some("Bash"), "execute", none(), true)),
        // An agent that reports only kinds.
        ("Read", (None, "read", none(), true)),
        ("Bash", (None, "execute", none(), true)),
        ("Bash", (Some("terminal/create"), "execute", none(), true)),
        ("Read", (Some("fs/readTextFile"), "read", none(), true)),
        ("Write", (None, "edit", none(), true)),
        ("NotebookEdit", (None, "edit", none(), false)),
        ("Bash", (Some("run_it"), "execute", none(), false)),
        ("execute", (Some("run_it"), "execute", none(), true)),
        ("edit", (Some("Write"), "edit", none(), true)),
        (
            "Bash(git:*)",
            (Some("Bash"), "execute", run("git log"), true),
        ),
        ("Bash(git *)", (None, "execute", run("git log"), true)),
        ("Bash(git:*)", (None, "execute", run("ls"), false)),
        ("read", (None, "read", run("cat x"), true)),
        (
            "execute(git:*)",
            (Some("run_it"), "execute", run("git log"), true),
        ),
        (
            "Edit(src/**)",
            (Some("Write"), "edit", file("/w/src/a"), true),
        ),
        (
            "Edit(src/**)",
            (Some("Read"), "read", file("/w/src/a"), false),
        ),
        ("Edit(src/**)", (None, "edit", file("src/a"), true)),
        ("Edit(/src/**)", (None, "edit", file("src/a"), true)),
        ("Edit(./src/**)", (None, "edit", file("src/a"), true)),
        ("Read(.env)", (Some("Read"), "read", file("a/b/.env"), true)),
        (
            "Read(**/.env)",
            (Some("Grep"), "search", file(".env"), true),
        ),
        (
            "Read(//etc/**)",
            (Some("Read"), "read", file("/etc/passwd"), true),
        ),
        (
            "Read({//etc,/src,~/x}/**)",
            (Some("Read"), "read", file("/etc/passwd"), true),
        ),
        (
            "Read({//etc,/src,~/x}/**)",
            (Some("Read"), "read", file("src/a"), true),
        ),
        (
            "Read(~/**)",
            (Some("Read"), "read", file("/home/me/x"), true),
        ),
        ("mcp__s", (Some("mcp__s__t"), "other", none(), true)),
        ("mcp__s__*", (Some("mcp__s__t"), "other", none(), true)),
        ("mcp__s__t", (Some("mcp__s__t"), "other", none(), true)),
        ("mcp__s__t", (Some("mcp__s__u"), "other", none(), false)),
        ("mcp__s", (Some("mcp__st__t"), "other", none(), false)),
        ("deploy", (Some("mcp__s__deploy"), "other", none(), true)),
        ("Read", (Some("mcp__s__Read"), "other", none(), false)),
        ("*", (None, "other", none(), true)),
        ("db_*", (Some("db_drop"), "other", none(), true)),
    ];
    for (entry, case) in &cases {
        for effect in [Effect::Allow, Effect::Deny] {
            assert_eq!(listed(entry, case, effect), case.3, "{entry} {case:?}");
        }
    }
}

#[test]
fn tool_under_another_name_is_refused_by_its_effect() {
    let command = json!({ "command": "rm x" });
    let path = json!({ "file_path": "/w/src/a" });
    for (entry, name, kind, input, denied) in [
        ("Bash(rm:*)", "Monitor", "execute", &command, true),
        ("Bash(rm:*)", "mcp__shell__run", "execute", &command, true),
        ("Bash(rm:*)", "mcp__shell__run", "other", &command, true),
        ("Bash(rm:*)", "Write", "edit", &path, false),
        ("Bash", "Monitor", "execute", &command, true),
        ("Bash", "TaskStop", "execute", &json!({ "id": "1" }), false),
        ("Edit(src/**)", "apply_patch", "edit", &path, true),
        ("Edit(src/**)", "ReadFile", "read", &path, false),
        ("Read(src/**)", "ReadFile", "read", &path, true),
        ("Edit", "apply_patch", "edit", &path, false),
    ] {
        let case = (Some(name), kind, input.clone(), denied);
        assert_eq!(listed(entry, &case, Effect::Deny), denied, "{entry} {name}");
        // To allow, the name must match.
        assert!(!listed(entry, &case, Effect::Allow), "{entry} {name}");
    }
}

#[test]
fn unenforceable_tool_lists_are_refused() {
    let policy = Policy::default();
    for (entry, why) in [
        ("Raed", "did you mean \"Read\"?"),
        ("Bash(git", "no closing parenthesis"),
        ("Bash(a | b)", "not one command"),
        ("Bash()", "contains no command"),
        ("Edit()", "is empty after"),
        ("WebFetch(domain:x.org)", "can only use its name"),
        ("mcp__other__t", "\"other\" is not a known MCP server"),
    ] {
        let options = SessionOptions {
            allowed_tools: vec!["Read".into(), entry.into()],
            ..SessionOptions::default()
        };
        let error = policy
            .check_lists(&options, Some(vec!["mine".into()]))
            .unwrap_err();
        assert_eq!(error.kind, ErrorKind::InvalidTool);
        assert!(
            error.message.starts_with("options.allowedTools: "),
            "{error}"
        );
        assert!(error.message.contains(why), "{error}");
    }
}

#[test]
fn a_session_adds_its_own_lists() {
    let of = |name| {
        let tool = ToolProperties {
            name: Some(name),
            ..ToolProperties::default()
        };
        Subject::of_tool(&tool, "/w")
    };
    let options = SessionOptions {
        allowed_tools: vec!["Read".into(), "Bash".into(), "gone".into()],
        disallowed_tools: vec!["Bash".into()],
        ..SessionOptions::default()
    };
    let policy = Policy::from(Mode::Ask);
    let said = |name, options: &SessionOptions| policy.judge_in(&of(name), options);
    assert_eq!(said("Read", &options).by, "allowedTools \"Read\"");
    // A form that only Claude Code supports denies its tool, and no other.
    let domain = SessionOptions {
        disallowed_tools: vec!["WebFetch(domain:x.org)".into()],
        ..SessionOptions::default()
    };
    assert_eq!(said("WebFetch", &domain).effect, Effect::Deny);
    assert_eq!(said("Read", &domain).effect, Effect::Ask);
    assert_eq!(said("Bash", &options).by, "disallowedTools \"Bash\"");
    assert_eq!(said("Write", &options).by, "permissions \"ask\"");
    // A stored list with a name that is not known any more.
    let options = SessionOptions {
        disallowed_tools: vec!["gone".into()],
        ..options
    };
    assert_eq!(said("Read", &options).effect, Effect::Deny);
}

/// A policy with tool lists that count in every session.
fn with_lists(mode: Mode, allowed: &[&str], disallowed: &[&str]) -> Policy {
    let texts =
        |list: &[&str]| -> Vec<String> { list.iter().map(|entry| (*entry).to_owned()).collect() };
    let mut policy = Policy::from(mode);
    policy.set_lists(&texts(allowed), &texts(disallowed));
    policy
}

fn call(name: &str, kind: &str) -> Subject {
    let tool = ToolProperties {
        name: Some(name),
        kind: Some(kind),
        ..ToolProperties::default()
    };
    Subject::of_tool(&tool, "/w")
}

#[test]
fn lists_that_count_in_every_session_are_added_to_those_of_the_session() {
    let policy = with_lists(Mode::Ask, &["Read"], &["Bash"]);
    let session = SessionOptions {
        allowed_tools: vec!["Bash".to_owned(), "Write".to_owned()],
        disallowed_tools: vec!["WebFetch".to_owned()],
        ..SessionOptions::default()
    };
    for (name, kind, want) in [
        ("Bash", "execute", Effect::Deny),
        ("Read", "read", Effect::Allow),
        ("Write", "edit", Effect::Allow),
        ("WebFetch", "fetch", Effect::Deny),
        ("Task", "think", Effect::Ask),
    ] {
        let verdict = policy.judge_in(&call(name, kind), &session);
        assert_eq!(verdict.effect, want, "{name}: {verdict:?}");
    }
    assert_eq!(policy.judge(&call("Bash", "execute")).effect, Effect::Deny);
    // An agent's own lists can only add refusals.
    let mut agent = policy.clone();
    agent.add_listed("Bash", "list", Effect::Allow).unwrap();
    agent.add_listed("Read", "list", Effect::Deny).unwrap();
    let none = SessionOptions::default();
    for (name, kind) in [("Bash", "execute"), ("Read", "read")] {
        let verdict = agent.judge_in(&call(name, kind), &none);
        assert_eq!(verdict.effect, Effect::Deny, "{name}");
    }
    // They count for restrictions, too, whatever is set first.
    let before = policy.clone().restricted_by(Policy::from(Mode::Deny));
    let mut after = Policy::from(Mode::Ask).restricted_by(Policy::from(Mode::Deny));
    after.set_lists(&["Read".to_owned()], &["Bash".to_owned()]);
    assert_eq!(before, after);
    let verdict = after.judge_in(&call("Read", "read"), &none);
    assert_eq!(verdict.effect, Effect::Allow);
    assert!(with_lists(Mode::Approve, &[], &["Bash"]).may_restrict(&none));
    assert!(!with_lists(Mode::Approve, &["Bash"], &[]).may_restrict(&none));
}

#[test]
fn entry_that_only_claude_code_understands_is_left_to_an_agent_that_enforces_lists() {
    let policy = with_lists(Mode::Approve, &[], &["WebFetch(domain:x.org)"]);
    let fetch = call("WebFetch", "fetch");
    let none = SessionOptions::default();
    assert_eq!(policy.judge_in(&fetch, &none).effect, Effect::Deny);
    assert_eq!(policy.judge(&fetch).effect, Effect::Allow);
    // It enforces what it knows; for the others, it has to report its calls.
    assert!(!with_lists(Mode::Approve, &["shell"], &["Bash", "mcp__a__b"]).has_rules());
    assert!(with_lists(Mode::Approve, &[], &["Bash", "shell"]).has_rules());
    // The agent does not know the list of a client that did not open the session.
    let caller = Policy::from(Mode::Approve).with_caller(&policy, None);
    assert_eq!(caller.judge(&fetch).effect, Effect::Deny);
}
