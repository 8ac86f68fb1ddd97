//! Tests of errors in agents: each names line, column and key.

use super::*;

#[track_caller]
fn assert_wrong(text: &str, want: &str) {
    let error = read(text, None).unwrap_err();
    let want = format!("/u.toml:{want}");
    assert!(
        error.message.starts_with(&want),
        "{text}\n{}",
        error.message
    );
    assert_eq!(error.kind, ErrorKind::InvalidParams, "{text}");
}

/// Keys of an agent, and the beginning of the error.
const CASES: &[(&str, &str)] = &[
    (
        "comand = 1",
        "3:1: agents.a.comand: \"comand\" is not a known key; did you mean \"command\"?",
    ),
    ("command = 1", "3:11: agents.a.command: must be a string"),
    (
        "command = \"\"",
        "3:11: agents.a.command: must not be empty",
    ),
    (
        "command = \"c\"\nargs = \"x\"",
        "4:8: agents.a.args: must be a list of strings",
    ),
    (
        "command = \"c\"\nargs = [\n \"x\",\n 1]",
        "6:2: agents.a.args: must be a list of strings",
    ),
    (
        "use = \"claude\"\ncommand = \"c\"",
        "4:11: agents.a.command: cannot be combined with use",
    ),
    (
        "use = \"claude\"\nargs = []",
        "4:8: agents.a.args: cannot be combined with use",
    ),
    (
        "use = \"cluade\"",
        "3:7: agents.a.use: \"cluade\" is not a built-in agent; give command",
    ),
    (
        "extends = \"claude\"\nargs = []",
        "4:8: agents.a.args: the built-in agent \"claude\" takes no args",
    ),
    (
        "prompt = \"p\"",
        "2:9: agents.a: the agent has no program; add use, command, url or extends",
    ),
    (
        "env = { A = true }",
        "3:13: agents.a.env.A: must be a string or false",
    ),
    (
        "options = { output_schema = { type = \"int\" } }",
        "3:29: agents.a.options.output_schema: not a valid JSON schema: /type: ",
    ),
    ("env = { \"A=s3cret\" = \"x\" }", "3:7: agents.a.env: "),
    (
        "cwd = \"work\"",
        "3:7: agents.a.cwd: must be an absolute path or begin with ~/",
    ),
    (
        "protocol = \"acpp\"",
        "3:12: agents.a.protocol: \"acpp\" is not a known protocol; did you mean \"acp\"?",
    ),
    (
        "tags = [\"a\", 1]",
        "3:14: agents.a.tags: must be a list of strings",
    ),
    (
        "tools = [\"Read\", \"Raed\"]",
        "3:18: agents.a.tools: \"Raed\" is not a known tool; did you mean \"Read\"?",
    ),
    (
        "disallowed_tools = \"Raed\"",
        "3:20: agents.a.disallowed_tools: \"Raed\" is not a known tool",
    ),
    (
        "permissions = \"read\"",
        "3:15: agents.a.permissions: \"read\" is not a known mode or preset; did you mean \"reads\"?",
    ),
    (
        "permissions = 1",
        "3:15: agents.a.permissions: must be a string or a table: [agents.a.permissions]",
    ),
    (
        "permissions = { default = \"al\" }",
        "3:27: agents.a.permissions.default: \"al\" is not a known mode",
    ),
    (
        "permissions.rules = [{ kind = \"read\" }]",
        "3:22: agents.a.permissions.rules[1]: the rule has no effect",
    ),
    (
        "permissions.allowed_tools = [\"Raed\"]",
        "3:30: agents.a.permissions.allowed_tools: \"Raed\" is not a known tool",
    ),
    (
        "timeout = \"5\"",
        "3:11: agents.a.timeout: a duration must be a whole number with the unit",
    ),
    (
        "timeout = { turns = \"5s\" }",
        "3:13: agents.a.timeout.turns: \"turns\" is not a known key; did you mean \"turn\"?",
    ),
    (
        "timeout = { spawn = \"none\" }",
        "3:21: agents.a.timeout.spawn: spawn must have a limit",
    ),
    (
        "timeout = { turn = 5 }",
        "3:20: agents.a.timeout.turn: must be a string",
    ),
    (
        "options.max_turns = 0",
        "3:21: agents.a.options.max_turns: must be a whole number from 1 to 4294967295",
    ),
    (
        "options.max_turns = 1.5",
        "3:21: agents.a.options.max_turns: must be a whole number",
    ),
    (
        "options.add_dirs = [\"/a\", \"b\"]",
        "3:27: agents.a.options.add_dirs: must be an absolute path",
    ),
    (
        "options.modle = \"x\"",
        "3:9: agents.a.options.modle: \"modle\" is not a known key",
    ),
    (
        "description = 2020-01-01",
        "3:15: agents.a.description: must be a string",
    ),
    (
        "options.output_schema = { x = 2020-01-01 }",
        "3:31: agents.a.options.output_schema.x: must not be a date",
    ),
    (
        "options.output_schema = { x = inf }",
        "3:31: agents.a.options.output_schema.x: must be a finite number",
    ),
    (
        "mcp_servers.s = { command = 7 }",
        "3:29: agents.a.mcp_servers.s.command: must be a string",
    ),
    ("mcp_servers.s = { args = [] }", "3:"),
    ("description = \"ö\"; x", "3:18: "),
];

#[test]
fn agent_errors_name_line_column_and_key() {
    for (keys, want) in CASES {
        let has_base = ["use", "command", "extends", "prompt", "comand"];
        let base = if has_base.iter().any(|key| keys.starts_with(key)) {
            ""
        } else {
            "\ncommand = \"c\""
        };
        assert_wrong(&format!("\n[agents.a]\n{keys}{base}"), want);
    }
}

#[test]
fn mcp_server_errors_name_the_server_and_hide_values() {
    let text = "[agents.a]\nuse = \"claude\"\nmcp_servers.s = { url = \"s3cret\" }";
    let error = read(text, None).unwrap_err().message;
    assert!(error.starts_with("/u.toml:3:"), "{error}");
    assert!(
        error.contains("type is missing; use http or sse"),
        "{error}"
    );
    assert!(!error.contains("s3cret"), "{error}");
}

#[test]
fn invalid_names_are_refused() {
    let long = "x".repeat(65);
    for name in ["default", "\"\"", "-a", ".a", "\"a b\"", "\"ä\"", &long] {
        let quoted = if name.starts_with('.') {
            "\".a\""
        } else {
            name
        };
        let error = read(&format!("[agents.{quoted}]\nuse = \"claude\""), None).unwrap_err();
        assert!(
            error.message.starts_with("/u.toml:1:9: agents."),
            "{}",
            error.message
        );
        assert!(error.message.contains(": must "), "{}", error.message);
    }
    for name in ["a", "7", "a_b-c", "\"a.b\"", &"x".repeat(64)] {
        read(&format!("[agents.{name}]\nuse = \"claude\""), None).unwrap();
    }
}

#[test]
fn unknown_and_circular_parents_are_refused() {
    for (text, want) in [
        (
            "[agents.a]\nextends = \"b\"",
            "2:11: agents.a.extends: \"b\" is not a known agent; define [agents.b], or use the name of a built-in",
        ),
        (
            "[agents.a]\nextends = \"reviewr\"\n[agents.reviewer]\nuse = \"claude\"",
            "2:11: agents.a.extends: \"reviewr\" is not a known agent; did you mean \"reviewer\"?",
        ),
        (
            "[agents.a]\nextends = \"a\"",
            "2:11: agents.a.extends: the agents extend each other: a → a; remove one `extends`",
        ),
        (
            "[agents.a]\nextends = \"b\"\n[agents.b]\nextends = \"c\"\n[agents.c]\nextends = \"a\"",
            "6:11: agents.c.extends: the agents extend each other: a → b → c → a; remove one `extends`",
        ),
        (
            "agent = \"b\"\n[agents.a]\nuse = \"claude\"",
            "1:9: agent: \"b\" is not a known agent",
        ),
    ] {
        assert_wrong(text, want);
    }
    let variant = |n: usize| format!("[agents.a{}]\nextends = \"a{n}\"\n", n + 1);
    let variants: String = (0..40).map(variant).collect();
    let text = format!("[agents.a0]\nuse = \"claude\"\n{variants}");
    let error = read(&text, None).unwrap_err();
    assert!(
        error
            .message
            .contains("more than 32 agents extend each other"),
        "{}",
        error.message
    );
}

#[test]
fn agent_that_is_defined_twice_is_refused() {
    let agent = "[agents.a]\nuse = \"claude\"\n";
    let error = read(&format!("{agent}{agent}"), None).unwrap_err();
    assert_eq!(error.kind, ErrorKind::DuplicateAgent);
    let want =
        "/u.toml:3:9: agents.a: the agent is defined twice; rename or remove one of the tables";
    assert_eq!(error.message, want);

    let error = read(agent, Some((agent, true))).unwrap_err();
    assert_eq!(error.kind, ErrorKind::DuplicateAgent);
    let want =
        "/p/.acpipe.toml:1:9: agents.a: the agent is also defined at /u.toml:1; rename one of them";
    assert_eq!(error.message, want);

    // Another key that is set twice is a plain mistake.
    let error = read(&format!("{agent}use = \"claude\"\n"), None).unwrap_err();
    assert_eq!(error.kind, ErrorKind::InvalidParams);
    assert!(
        error.message.starts_with("/u.toml:3:1: duplicate key"),
        "{}",
        error.message
    );
}
