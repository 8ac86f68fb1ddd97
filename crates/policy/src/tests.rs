//! Tests of modes and presets, and of precedence between rules.

mod generated;
mod inputs;
mod restriction;
mod titled;
mod tool_lists;
mod unreadable;

use super::*;
use serde_json::json;
use serde_json::value::to_raw_value;

/// Returns a tool call of this kind that accesses a file.
fn file(kind: &str, path: &str, cwd: &str) -> Subject {
    let places = to_raw_value(&json!([{ "path": path }])).unwrap();
    let tool = ToolProperties {
        kind: Some(kind),
        locations: Some(&places),
        ..ToolProperties::default()
    };
    Subject::of_tool(&tool, cwd)
}

#[test]
fn presets_act_as_the_systems_they_are_named_after() {
    use Effect::{Allow, Ask, Deny};
    // Columns: Read, Grep, Write, a deletion, Bash, WebFetch, ExitPlanMode, AskUserQuestion, a tool of an MCP server.
    let calls = [
        ("Read", "read"),
        ("Grep", "search"),
        ("Write", "edit"),
        ("", "delete"),
        ("Bash", "execute"),
        ("WebFetch", "fetch"),
        ("ExitPlanMode", "switch_mode"),
        ("AskUserQuestion", "other"),
        ("mcp__s__t", "other"),
    ];
    let table = [
        ("leashd", [Ask; 9]),
        (
            "leashd-accept-edits",
            [Allow, Allow, Allow, Allow, Ask, Ask, Ask, Ask, Ask],
        ),
        (
            "holodeck",
            [Allow, Allow, Deny, Deny, Deny, Deny, Deny, Deny, Deny],
        ),
        (
            "holodeck-chat",
            [Allow, Allow, Allow, Allow, Ask, Ask, Ask, Ask, Ask],
        ),
        (
            "discobot",
            [Allow, Allow, Allow, Allow, Allow, Allow, Ask, Ask, Allow],
        ),
        (
            "maverick",
            [Allow, Allow, Allow, Allow, Deny, Deny, Deny, Deny, Deny],
        ),
        (
            "maverick-deny-dangerous",
            [Allow, Allow, Deny, Deny, Deny, Allow, Allow, Allow, Allow],
        ),
    ];
    assert_eq!(table.len(), PRESETS.len());
    for (name, wanted) in table {
        let mut policy = Policy::default();
        policy.set_preset(Preset::named(name).unwrap());
        let effects = calls.map(|(name, kind)| {
            let tool = ToolProperties {
                name: Some(name).filter(|name| !name.is_empty()),
                kind: Some(kind),
                ..ToolProperties::default()
            };
            policy.judge(&Subject::of_tool(&tool, "/w")).effect
        });
        assert_eq!(effects, wanted, "{name}");
        // A rule has precedence over the preset.
        policy.add_listed("Bash", "allowed_tools", Allow).unwrap();
        let bash = ToolProperties {
            name: Some("Bash"),
            ..ToolProperties::default()
        };
        assert_eq!(policy.judge(&Subject::of_tool(&bash, "/w")).effect, Allow);
        assert_eq!(policy.unanswered(), Deny);
    }
}

#[test]
fn the_first_of_the_strongest_rules_is_named() {
    let mut policy = Policy::from(Mode::Approve);
    for (label, effect) in [
        ("a", Effect::Allow),
        ("b", Effect::Ask),
        ("c", Effect::Deny),
        ("d", Effect::Deny),
    ] {
        let mut rule = Rule::new(label.into(), effect);
        rule.kind("read").unwrap();
        policy.add(rule);
    }
    let verdict = policy.judge(&file("read", "/w/a", "/w"));
    assert_eq!((verdict.effect, verdict.by.as_str()), (Effect::Deny, "c"));
    let verdict = policy.judge(&file("edit", "/w/a", "/w"));
    assert_eq!(
        (verdict.effect, verdict.by.as_str()),
        (Effect::Allow, "permissions \"approve\"")
    );
}

#[test]
fn each_mode_decides_reads_and_edits() {
    use Effect::{Allow, Ask, Deny};
    for (mode, read, write) in [
        (Mode::Approve, Allow, Allow),
        (Mode::Reads, Allow, Ask),
        (Mode::Ask, Ask, Ask),
        (Mode::Deny, Deny, Deny),
    ] {
        let policy = Policy::from(mode);
        assert_eq!(policy.judge(&file("read", "a", "/w")).effect, read);
        let verdict = policy.judge(&file("edit", "a", "/w"));
        assert_eq!(verdict.effect, write);
        assert_eq!(verdict.by, format!("permissions {:?}", mode.name()));
    }
}

#[test]
fn a_command_is_not_allowed_by_less_than_its_words() {
    let of = |kind, json: &serde_json::Value| {
        let input = to_raw_value(json).unwrap();
        let tool = ToolProperties {
            kind: Some(kind),
            input: Some(&input),
            ..ToolProperties::default()
        };
        Subject::of_tool(&tool, "/w")
    };
    let call = json!({"command": "cat src/a; curl x", "path": "src/a"});
    let mut policy = Policy::from(Mode::Reads);
    let mut rule = Rule::new("r".into(), Effect::Allow);
    rule.path("**", None).unwrap();
    policy.add(rule);
    policy.add_listed("Read", "list", Effect::Allow).unwrap();
    assert_eq!(policy.judge(&of("execute", &call)).effect, Effect::Ask);
    assert_eq!(policy.judge(&of("read", &call)).effect, Effect::Ask);
    let file = json!({"path": "src/a"});
    assert_eq!(policy.judge(&of("edit", &file)).by, "r");
    // To deny, either is enough.
    policy
        .add_listed("Read(src/**)", "list", Effect::Deny)
        .unwrap();
    assert_eq!(policy.judge(&of("read", &call)).effect, Effect::Deny);
}
