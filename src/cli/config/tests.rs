//! Tests of parsing a configuration and of its error messages.

use super::tests_page::subject;
use super::*;
use acpipe_policy::Effect;

fn policy_at_home(text: &str) -> Result<Policy, String> {
    policy_of(text, Some("/home/me".into()))
}

#[track_caller]
fn assert_wrong(text: &str, want: &str) {
    let error = policy_at_home(text).unwrap_err();
    assert!(error.starts_with(want), "{text}\n{error}");
}

#[test]
fn configuration_sets_the_policy() {
    let policy = policy_at_home(
        r#"
        [permissions]
        default = "ask"
        always = true
        unanswered = "allow"
        tools = ["deploy"]
        allowed_tools = ["Read", "deploy"]
        disallowed_tools = "Bash(rm:*)"

        [[permissions.rules]]
        name = "sources"
        effect = "allow"
        kind = ["edit", "delete"]
        path = "src/**"

        [[permissions.rules]]
        effect = "deny"
        command = ["git push:*"]
        "#,
    )
    .unwrap();
    assert!(policy.prefers_always());
    assert_eq!(policy.unanswered(), Effect::Allow);
    let run = |line: &str| subject("run", line, "/w");
    for (subject, effect, by) in [
        (
            subject("read", "a", "/w"),
            Effect::Allow,
            "allowed_tools \"Read\"",
        ),
        (
            subject("use", "deploy", "/w"),
            Effect::Allow,
            "allowed_tools \"deploy\"",
        ),
        (
            run("ls; rm x"),
            Effect::Deny,
            "disallowed_tools \"Bash(rm:*)\"",
        ),
        (run("git push"), Effect::Deny, "rule 2"),
        (
            subject("write", "src/a", "/w"),
            Effect::Allow,
            "rule \"sources\"",
        ),
        (run("ls"), Effect::Ask, "permissions \"ask\""),
    ] {
        let verdict = policy.judge(&subject);
        assert_eq!(
            (verdict.effect, verdict.by.as_str()),
            (effect, by),
            "{subject:?}"
        );
    }
    let policy = policy_at_home("[permissions]\npreset = \"holodeck\"").unwrap();
    assert_eq!(policy.judge(&run("ls")).by, "preset \"holodeck\"");
    assert_eq!(
        policy_at_home("").unwrap().judge(&run("ls")).effect,
        Effect::Allow
    );
}

#[test]
fn configuration_errors_name_line_and_column() {
    for (text, want) in [
        (
            "[permission]",
            "1:2: permission: \"permission\" is not a known key; did you mean \"permissions\"?",
        ),
        (
            "permissions = 1",
            "1:15: permissions: must be a table: [permissions]",
        ),
        ("\n\n[permissions\n", "3:13: "),
        (
            "[permissions]\ndefautl = 1",
            "2:1: permissions.defautl: \"defautl\" is not a known key; did you mean \"default\"?",
        ),
        (
            "[permissions]\ndefault = 1",
            "2:11: permissions.default: must be a string",
        ),
        (
            "[permissions]\ndefault = \"all\"",
            "2:11: permissions.default: \"all\" is not a known mode; use one of approve, reads, ask, deny",
        ),
        (
            "[permissions]\npreset = \"holodek\"",
            "2:10: permissions.preset: \"holodek\" is not a known preset; did you mean \"holodeck\"?",
        ),
        (
            "[permissions]\ndefault = \"ask\"\npreset = \"holodeck\"",
            "3:10: permissions.preset: cannot be combined with default",
        ),
        (
            "[permissions]\nalways = \"yes\"",
            "2:10: permissions.always: must be true or false",
        ),
        (
            "[permissions]\nunanswered = \"ask\"",
            "2:14: permissions.unanswered: \"ask\" is not a known answer",
        ),
        (
            "[permissions]\nallowed_tools = [\n\"Read\",\n\"Edit(~root/**)\"]",
            "4:1: permissions.allowed_tools: \"~root/**\" matches no path: only ~ itself is expanded; use \"/root/**\"",
        ),
        (
            "[permissions]\nallowed_tools = [\n\"Read\",\n\"Wriet\"]",
            "4:1: permissions.allowed_tools: \"Wriet\" is not a known tool; did you mean \"Write\"?",
        ),
        (
            "[permissions]\nallowed_tools = [1]",
            "2:18: permissions.allowed_tools: must be a string or a list of strings",
        ),
        (
            "[permissions]\ntools = [\"a*\"]",
            "2:10: permissions.tools: \"a*\" is not a valid tool name",
        ),
        (
            "[permissions]\nrules = 1",
            "2:9: permissions.rules: must be a list of tables: [[permissions.rules]]",
        ),
        (
            "[permissions]\nrules = [1]",
            "2:10: permissions.rules: must be a list of tables",
        ),
    ] {
        assert_wrong(text, want);
    }
}

#[test]
fn rule_errors_name_line_and_column() {
    for (text, want) in [
        (
            "kind = \"read\"",
            "2:1: permissions.rules[1]: the rule has no effect",
        ),
        (
            "effect = \"allow\"",
            "2:1: permissions.rules[1]: the rule has no condition; add at least one of kind, tool, title, path, command",
        ),
        (
            "effect = \"allow\"\nkind = \"execute\"\npath = \"src/**\"",
            "2:1: permissions.rules[1]: the rule allows nothing: commands cannot be allowed by path",
        ),
        (
            "effect = \"allow\"\ntool = [\"Bash\"]\npath = \"src/**\"",
            "2:1: permissions.rules[1]: the rule allows nothing: commands cannot be allowed by path",
        ),
        (
            "effect = \"allow\"\ncommand = \"printf *\"",
            "4:11: permissions.rules[1].command: \"printf *\" allows nothing",
        ),
        (
            "effect = \"allow\"\nkind = []",
            "4:8: permissions.rules[1].kind: must not be an empty list",
        ),
        (
            "effect = \"alow\"\nkind = \"read\"",
            "3:10: permissions.rules[1].effect: \"alow\" is not a known effect; did you mean \"allow\"?",
        ),
        (
            "effect = \"allow\"\nkind = \"exec\"",
            "4:8: permissions.rules[1].kind: \"exec\" is not a known kind",
        ),
        (
            "effect = \"allow\"\ntool = [\"Bsh\"]",
            "4:9: permissions.rules[1].tool: \"Bsh\" is not a known tool; did you mean \"Bash\"?",
        ),
        (
            "effect = \"allow\"\npath = \"a[\"",
            "4:8: permissions.rules[1].path: \"a[\" is not a valid path pattern",
        ),
        (
            "effect = \"allow\"\ncommand = \"a | b\"",
            "4:11: permissions.rules[1].command: \"a | b\" is not one command",
        ),
        (
            "effect = \"deny\"\ntool = \"Bash(rm:*)\"",
            "4:8: permissions.rules[1].tool: \"Bash(rm:*)\" matches no tool: a name has no parentheses; use \"Bash\" \
                 with",
        ),
        (
            "effect = \"deny\"\npath = [\"a\",\n\"//etc/**\"]",
            "5:1: permissions.rules[1].path: \"//etc/**\" matches no path: it has an empty component or a .; use \
                 \"/etc/**\"",
        ),
        (
            "effect = \"deny\"\npath = \"$HOME/.ssh/**\"",
            "4:8: permissions.rules[1].path: \"$HOME/.ssh/**\" matches no path: variables are not expanded; use \
                 \"~/.ssh/**\"",
        ),
        (
            "effect = \"deny\"\npath = \"file:///etc/**\"",
            "4:8: permissions.rules[1].path: \"file:///etc/**\" matches no path: a pattern must be a path, not a URL; \
                 use \"/etc/**\"",
        ),
        (
            "effect = \"deny\"\npath = \"/etc/** \"",
            "4:8: permissions.rules[1].path: \"/etc/** \" matches no path: it has spaces around it; use \"/etc/**\"",
        ),
        (
            "effect = \"deny\"\ncommand = \"rm :*\"",
            "4:11: permissions.rules[1].command: \"rm :*\" matches no command: `:*` must follow the last word without a \
                 space; use \"rm:*\"",
        ),
        (
            "effect = \"deny\"\ncommand = \"<read-only>\"",
            "4:11: permissions.rules[1].command: \"<read-only>\" can be used only in rules that allow",
        ),
        (
            "effect = \"allow\"\ncommand = \"git *\"\nwithout = \"output\"",
            "5:11: permissions.rules[1].without: \"output\" is not the name of an option",
        ),
        (
            "effect = \"deny\"\ncommand = \"git *\"\nwithout = \"--output\"",
            "5:11: permissions.rules[1].without: options can be forbidden only in rules that allow commands",
        ),
        (
            "effect = \"allow\"\nwithout = []",
            "4:11: permissions.rules[1].without: must not be an empty list",
        ),
        (
            "effect = \"allow\"\npaths = \"a\"",
            "4:1: permissions.rules[1].paths: \"paths\" is not a known key; did you mean \"path\"?",
        ),
        (
            "effect = \"allow\"\nname = \"\"\nkind = \"read\"",
            "4:8: permissions.rules[1].name: the name of a rule must not be empty",
        ),
        (
            "effect = \"allow\"\ntitle = \"\"",
            "4:9: permissions.rules[1].title: a title pattern must not be empty",
        ),
    ] {
        assert_wrong(
            &format!("[permissions]\n[[permissions.rules]]\n{text}"),
            want,
        );
    }
}

/// Returns a value that a part of the schema allows, for a key of this name.
fn sample(part: &'static serde_json::Value, key: &str) -> String {
    let known = match key {
        "name" | "model" | "prompt" | "description" | "effort" => Some("\"x\""),
        "use" | "extends" | "agent" => Some("\"claude\""),
        "tool" | "tools" | "disallowed_tools" | "allowed_tools" => Some("\"Read\""),
        "kind" => Some("\"read\""),
        "permissions" => Some("{}"),
        "without" => Some("\"--output\""),
        "cwd" => Some("\"/w\""),
        "add_dirs" => Some("[\"/w\"]"),
        "effect" => Some("\"allow\""),
        _ => None,
    };
    if let Some(known) = known {
        return known.to_owned();
    }
    let one = schema::alternatives(part)[0];
    match one.schema["type"].as_str() {
        Some("string") => format!("{:?}", schema::words(one.schema).first().unwrap_or(&"5s")),
        Some("boolean") => "true".to_owned(),
        Some("integer") => "1".to_owned(),
        Some("array") => "[]".to_owned(),
        _ => "{}".to_owned(),
    }
}

/// Returns the keys of a definition of the schema, with their parts.
fn keys_of(name: &str) -> Vec<(&'static str, &'static serde_json::Value)> {
    let properties = match name {
        "" => &generate_schema()["properties"],
        name => &generate_schema()["$defs"][name]["properties"],
    };
    let all = properties.as_object().unwrap().iter();
    all.map(|(key, part)| (key.as_str(), part)).collect()
}

#[test]
fn reader_accepts_every_key_of_the_schema() {
    let agent = "[agents.a]\nuse = \"claude\"\n";
    for (table, least, before) in [
        ("", 3, String::new()),
        ("PermissionTable", 8, "[permissions]\n".to_owned()),
        (
            "RuleTable",
            8,
            "[[permissions.rules]]\neffect = \"allow\"\ncommand = \"git *\"\n".to_owned(),
        ),
        ("AgentTable", 23, "[agents.a]\n".to_owned()),
        (
            "HistoryTable",
            2,
            "[agents.a]\ncommand = \"c\"\nprotocol = \"command\"\n[agents.a.history]\n".to_owned(),
        ),
        ("OptionTable", 5, format!("{agent}[agents.a.options]\n")),
        ("TimeoutStages", 16, format!("{agent}[agents.a.timeout]\n")),
    ] {
        let keys = keys_of(table);
        assert!(keys.len() >= least, "{table}: {keys:?}");
        for (key, part) in keys {
            if before.contains(&format!("\n{key} = ")) {
                continue;
            }
            let base = match (table, key) {
                ("AgentTable", "use" | "command" | "extends") => "",
                ("AgentTable", "args") => "command = \"c\"\n",
                ("AgentTable", "url") => "protocol = \"openai\"\n",
                ("AgentTable", "api_key_env" | "headers" | "stream") => {
                    "protocol = \"openai\"\nurl = \"http://h/v1\"\n"
                }
                ("AgentTable", "input" | "output" | "answer" | "history") => {
                    "protocol = \"command\"\ncommand = \"c\"\n"
                }
                ("AgentTable", _) => "use = \"claude\"\n",
                _ => "",
            };
            // Commands cannot be allowed by path, and options can be forbidden only for commands.
            let before = match (table, key) {
                ("RuleTable", "path" | "title" | "kind" | "tool") => {
                    "[[permissions.rules]]\neffect = \"deny\"\n"
                }
                _ => &before,
            };
            let value = match table {
                "TimeoutStages" => "\"5s\"".to_owned(),
                _ if key == "url" => "\"http://h/v1\"".to_owned(),
                _ => sample(part, key),
            };
            let text = format!("{before}{base}{key} = {value}\n");
            let read = policy_at_home(&text);
            assert!(read.is_ok(), "{text}{read:?}");
        }
    }
}

#[test]
fn reader_refuses_keys_that_the_schema_lacks() {
    let agent = "[agents.a]\nuse = \"claude\"\n";
    for before in [
        String::new(),
        "[permissions]\n".to_owned(),
        "[[permissions.rules]]\n".to_owned(),
        agent.to_owned(),
        format!("{agent}[agents.a.options]\n"),
        format!("{agent}[agents.a.timeout]\n"),
        format!("{agent}[agents.a.permissions]\n"),
    ] {
        let error = policy_at_home(&format!("{before}x-x-x = 1\n")).unwrap_err();
        assert!(error.contains("\"x-x-x\" is not a known key"), "{error}");
    }
}

#[test]
fn schema_has_no_null_and_describes_every_key() {
    let text = generate_schema().to_string();
    assert!(!text.contains("null"), "{text}");
    for table in [
        "",
        "PermissionTable",
        "RuleTable",
        "AgentTable",
        "OptionTable",
    ] {
        for (key, part) in keys_of(table) {
            let description = part["description"].as_str().unwrap_or_default();
            assert!(description.len() > 10, "{table}.{key}");
        }
    }
}

#[test]
fn deeply_nested_file_is_read_or_refused() {
    let agent = "[agents.a]\nuse = \"claude\"\n";
    for depth in [50, 400_000] {
        for text in [
            format!("{agent}options.output_schema{} = 1", ".a".repeat(depth)),
            format!(
                "{agent}[agents.a.options.output_schema{}]",
                ".a".repeat(depth)
            ),
            format!("{agent}options.output_schema.x = {}", "[".repeat(depth)),
        ] {
            // Must not overflow the stack.
            let read = policy_at_home(&text);
            assert_eq!(
                read.is_ok(),
                depth == 50 && !text.ends_with('['),
                "{read:?}"
            );
        }
    }
}

#[test]
fn trust_decides_whether_keys_of_a_project_have_effect() {
    let dir = test_dir::TestDir::new("load");
    let (project, state) = (dir.path().join("project"), dir.path().join("state"));
    let below = project.join("src/deep");
    std::fs::create_dir_all(&below).unwrap();
    let user = dir.path().join("user.toml");
    std::fs::write(
        &user,
        "[permissions]\ndefault = \"reads\"\n[agents.a]\ncommand = \"c\"\n",
    )
    .unwrap();
    let file = project.join(project::NAME);
    let text = "agent = \"p\"\n[permissions]\ndefault = \"deny\"\n[agents.p]\ncommand = \"x\"\n";
    std::fs::write(&file, text).unwrap();
    let args = LoadArgs {
        texts: None,
        config: Some(&user),
        ignores_variable: false,
        mode: None,
        default_mode: None,
        cwd: Some(&below),
        state_dir: Some(&state),
        is_builtin: &|_| false,
    };
    let is_locked = || load(&args).unwrap().agent("p").unwrap().locked.is_some();
    let config = load(&args).unwrap();
    assert_eq!(
        (config.user_file, config.project_file),
        (
            Some(UserFile::named(user.clone())),
            Some((file.clone(), text.to_owned()))
        )
    );
    assert_eq!(config.default_agent.unwrap().0, "p");
    assert_eq!(
        config.policy.judge(&subject("read", "a", "/w")).effect,
        Effect::Deny
    );
    assert!(is_locked());
    trust::trust(&state, &file, text).unwrap();
    assert!(!is_locked());
    std::fs::write(&file, format!("{text}# changed")).unwrap();
    assert!(is_locked());

    // Without a working directory, and with the mode of the command line.
    let alone = load(&LoadArgs { cwd: None, ..args }).unwrap();
    assert!(alone.agent("p").is_none() && alone.project_file.is_none());
    let mode = Some(acpipe_policy::Mode::Approve);
    let overridden = load(&LoadArgs { mode, ..args }).unwrap();
    assert_eq!(
        overridden.policy.judge(&subject("write", "a", "/w")).effect,
        Effect::Allow
    );
    // A file that the user names is theirs, wherever it is.
    let named = load(&LoadArgs {
        config: Some(&file),
        ..args
    })
    .unwrap();
    assert!(!named.agent("p").unwrap().from_project);
}
