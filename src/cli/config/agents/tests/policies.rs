//! Tests of the policies of agents.

use super::*;
use crate::cli::config::tests_page::subject;
use acpipe_policy::{Effect, Mode};

const TEXT: &str = r#"
    [permissions]
    default = "ask"
    tools = ["deploy"]
    disallowed_tools = ["Bash(rm:*)"]

    [agents.base]
    use = "claude"
    [agents.base.permissions]
    default = "deny"
    rules = [{ effect = "allow", tool = "deploy" }]

    [agents.reviewer]
    extends = "base"
    permissions = "reads"

    [agents.other]
    extends = "base"
    permissions.rules = [{ name = "web", effect = "ask", kind = "fetch" }, { effect = "allow", path = "src/**" }]

    [agents.preset]
    use = "claude"
    permissions = "holodeck"

    [agents.plain]
    use = "claude"
"#;

#[test]
fn verdict_names_the_definition_that_decided() {
    let config = read(TEXT, None).unwrap();
    for (name, verb, what, effect, by) in [
        (
            "reviewer",
            "write",
            "a",
            Effect::Ask,
            "agent \"reviewer\": permissions \"reads\"",
        ),
        (
            "reviewer",
            "use",
            "deploy",
            Effect::Allow,
            "agent \"base\": rule 1",
        ),
        (
            "reviewer",
            "run",
            "rm x",
            Effect::Deny,
            "disallowed_tools \"Bash(rm:*)\"",
        ),
        (
            "other",
            "write",
            "a",
            Effect::Deny,
            "agent \"base\": permissions \"deny\"",
        ),
        (
            "other",
            "write",
            "src/a",
            Effect::Allow,
            "agent \"other\": rule 2",
        ),
        (
            "preset",
            "write",
            "a",
            Effect::Deny,
            "agent \"preset\": preset \"holodeck\"",
        ),
        ("plain", "write", "a", Effect::Ask, "permissions \"ask\""),
    ] {
        let policy = policy_of_agent(&config.policy, config.agent(name).unwrap()).unwrap();
        let verdict = policy.judge(&subject(verb, what, "/w"));
        assert_eq!(
            (verdict.effect, verdict.by.as_str()),
            (effect, by),
            "{name} {what}"
        );
    }
}

#[test]
fn mode_of_the_command_line_overrides_modes_and_keeps_rules() {
    let source = || ConfigSource::parse("/u.toml", TEXT, FileOwner::User).unwrap();
    let is_builtin = |name: &str| name == "claude";
    let config = combine(&[source()], None, (None, Some(Mode::Deny)), &is_builtin).unwrap();
    for (name, verb, what, by) in [
        ("reviewer", "read", "a", "permissions \"deny\""),
        ("preset", "read", "a", "permissions \"deny\""),
        ("other", "use", "deploy", "agent \"base\": rule 1"),
    ] {
        let policy = policy_of_agent(&config.policy, config.agent(name).unwrap()).unwrap();
        assert_eq!(policy.judge(&subject(verb, what, "/w")).by, by, "{name}");
    }
}
