//! Tests of parsing a configuration and of its error messages.

use super::tests_page::subject;
use super::*;
use crate::core::policy::Effect;

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
fn configuration_errors_name_their_line() {
    for (text, want) in [
        (
            "[permission]",
            "1: permission: \"permission\" is not a known key; did you mean \"permissions\"?",
        ),
        (
            "permissions = 1",
            "1: permissions: must be a table: [permissions]",
        ),
        ("\n\n[permissions\n", "3: "),
        (
            "[permissions]\ndefautl = 1",
            "2: permissions.defautl: \"defautl\" is not a known key; did you mean \"default\"?",
        ),
        (
            "[permissions]\ndefault = 1",
            "2: permissions.default: must be a string",
        ),
        (
            "[permissions]\ndefault = \"all\"",
            "2: permissions.default: \"all\" is not a known mode; use one of approve, reads, ask, deny",
        ),
        (
            "[permissions]\npreset = \"holodek\"",
            "2: permissions.preset: \"holodek\" is not a known preset; did you mean \"holodeck\"?",
        ),
        (
            "[permissions]\ndefault = \"ask\"\npreset = \"holodeck\"",
            "3: permissions.preset: cannot be combined with default",
        ),
        (
            "[permissions]\nalways = \"yes\"",
            "2: permissions.always: must be true or false",
        ),
        (
            "[permissions]\nunanswered = \"ask\"",
            "2: permissions.unanswered: \"ask\" is not a known answer",
        ),
        (
            "[permissions]\nallowed_tools = [\n\"Read\",\n\"Edit(~root/**)\"]",
            "4: permissions.allowed_tools: \"~root/**\" matches no path: only ~ itself is expanded; use \"/root/**\"",
        ),
        (
            "[permissions]\nallowed_tools = [\n\"Read\",\n\"Wriet\"]",
            "4: permissions.allowed_tools: \"Wriet\" is not a known tool; did you mean \"Write\"?",
        ),
        (
            "[permissions]\nallowed_tools = [1]",
            "2: permissions.allowed_tools: must be a string or a list of strings",
        ),
        (
            "[permissions]\ntools = [\"a*\"]",
            "2: permissions.tools: \"a*\" is not a valid tool name",
        ),
        (
            "[permissions]\nrules = 1",
            "2: permissions.rules: must be a list of tables: [[permissions.rules]]",
        ),
        (
            "[permissions]\nrules = [1]",
            "2: permissions.rules: must be a list of tables",
        ),
    ] {
        assert_wrong(text, want);
    }
}

#[test]
fn rule_errors_name_their_line() {
    for (text, want) in [
        (
            "kind = \"read\"",
            "2: permissions.rules[1]: the rule has no effect",
        ),
        (
            "effect = \"allow\"",
            "2: permissions.rules[1]: the rule has no condition; add at least one of kind, tool, title, path, command",
        ),
        (
            "effect = \"allow\"\nkind = \"execute\"\npath = \"src/**\"",
            "2: permissions.rules[1]: the rule allows nothing: commands cannot be allowed by path",
        ),
        (
            "effect = \"allow\"\ntool = [\"Bash\"]\npath = \"src/**\"",
            "2: permissions.rules[1]: the rule allows nothing: commands cannot be allowed by path",
        ),
        (
            "effect = \"allow\"\ncommand = \"printf *\"",
            "4: permissions.rules[1].command: \"printf *\" allows nothing",
        ),
        (
            "effect = \"allow\"\nkind = []",
            "4: permissions.rules[1].kind: must not be an empty list",
        ),
        (
            "effect = \"alow\"\nkind = \"read\"",
            "3: permissions.rules[1].effect: \"alow\" is not a known effect; did you mean \"allow\"?",
        ),
        (
            "effect = \"allow\"\nkind = \"exec\"",
            "4: permissions.rules[1].kind: \"exec\" is not a known kind",
        ),
        (
            "effect = \"allow\"\ntool = [\"Bsh\"]",
            "4: permissions.rules[1].tool: \"Bsh\" is not a known tool; did you mean \"Bash\"?",
        ),
        (
            "effect = \"allow\"\npath = \"a[\"",
            "4: permissions.rules[1].path: \"a[\" is not a valid path pattern",
        ),
        (
            "effect = \"allow\"\ncommand = \"a | b\"",
            "4: permissions.rules[1].command: \"a | b\" is not one command",
        ),
        (
            "effect = \"deny\"\ntool = \"Bash(rm:*)\"",
            "4: permissions.rules[1].tool: \"Bash(rm:*)\" matches no tool: a name has no parentheses; use \"Bash\" \
                 with",
        ),
        (
            "effect = \"deny\"\npath = [\"a\",\n\"//etc/**\"]",
            "5: permissions.rules[1].path: \"//etc/**\" matches no path: it has an empty component or a .; use \
                 \"/etc/**\"",
        ),
        (
            "effect = \"deny\"\npath = \"$HOME/.ssh/**\"",
            "4: permissions.rules[1].path: \"$HOME/.ssh/**\" matches no path: variables are not expanded; use \
                 \"~/.ssh/**\"",
        ),
        (
            "effect = \"deny\"\npath = \"file:///etc/**\"",
            "4: permissions.rules[1].path: \"file:///etc/**\" matches no path: a pattern must be a path, not a URL; \
                 use \"/etc/**\"",
        ),
        (
            "effect = \"deny\"\npath = \"/etc/** \"",
            "4: permissions.rules[1].path: \"/etc/** \" matches no path: it has spaces around it; use \"/etc/**\"",
        ),
        (
            "effect = \"deny\"\ncommand = \"rm :*\"",
            "4: permissions.rules[1].command: \"rm :*\" matches no command: `:*` must follow the last word without a \
                 space; use \"rm:*\"",
        ),
        (
            "effect = \"deny\"\ncommand = \"<read-only>\"",
            "4: permissions.rules[1].command: \"<read-only>\" can be used only in rules that allow",
        ),
        (
            "effect = \"allow\"\ncommand = \"git *\"\nwithout = \"output\"",
            "5: permissions.rules[1].without: \"output\" is not the name of an option",
        ),
        (
            "effect = \"deny\"\ncommand = \"git *\"\nwithout = \"--output\"",
            "5: permissions.rules[1].without: options can be forbidden only in rules that allow commands",
        ),
        (
            "effect = \"allow\"\nwithout = []",
            "4: permissions.rules[1].without: must not be an empty list",
        ),
        (
            "effect = \"allow\"\npaths = \"a\"",
            "4: permissions.rules[1].paths: \"paths\" is not a known key; did you mean \"path\"?",
        ),
        (
            "effect = \"allow\"\nname = \"\"\nkind = \"read\"",
            "4: permissions.rules[1].name: the name of a rule must not be empty",
        ),
        (
            "effect = \"allow\"\ntitle = \"\"",
            "4: permissions.rules[1].title: a title pattern must not be empty",
        ),
    ] {
        assert_wrong(
            &format!("[permissions]\n[[permissions.rules]]\n{text}"),
            want,
        );
    }
}
