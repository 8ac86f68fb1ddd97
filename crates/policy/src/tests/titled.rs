//! Tests of agents whose titles begin with the name of the tool.

use super::super::*;
use serde_json::value::to_raw_value;
use serde_json::{Value, json};

/// Returns whether an entry allows a call with this title and text, of an agent that is known to title so, and of
/// another one.
fn allows(entry: &str, title: &str, text: Option<&str>) -> [bool; 2] {
    let mut policy = Policy::from(Mode::Deny);
    policy.add_listed(entry, "list", Effect::Allow).unwrap();
    let content: Vec<Value> = text
        .iter()
        .map(|text| json!({"type": "content", "content": {"type": "text", "text": text}}))
        .collect();
    let content = to_raw_value(&content).unwrap();
    let tool = ToolProperties {
        title: Some(title),
        content: Some(&content),
        ..ToolProperties::default()
    };
    let subject = Subject::of_tool(&tool, "/w");
    let other = subject.clone();
    [subject.with_titled_name(), other].map(|s| policy.judge(&s).effect == Effect::Allow)
}

#[test]
fn name_in_the_title_allows_if_the_text_describes_the_same_action() {
    let runs = Some("Requesting approval to perform: Run command `touch x`");
    let writes = Some("Requesting approval to perform: Write file `/w/a`");
    for (entry, title, text, want) in [
        ("Shell", "Shell: touch x", runs, true),
        ("Bash", "Shell: touch x", runs, true),
        ("WriteFile", "WriteFile: /w/a", writes, true),
        ("Write", "WriteFile: /w/a", writes, true),
        ("Write", "Shell: touch x", runs, false),
        ("Shell", "WriteFile: /w/a", writes, false),
        // A rule for a kind as such.
        ("execute", "Shell: touch x", runs, false),
        // The title alone, another command, another kind, a tool of a server with the name of a built-in one.
        ("Shell", "Shell: touch x", None, false),
        ("Shell", "Shell: ls", runs, false),
        ("Shell", "Shell: /w/a", writes, false),
        (
            "Shell",
            "Shell: touch x",
            Some("Call MCP tool `Shell`."),
            false,
        ),
    ] {
        let got = allows(entry, title, text);
        assert_eq!(got, [want, false], "{entry} {title} {text:?}");
    }
}

#[test]
fn only_an_agent_that_titles_so_is_known_by_its_titles() {
    use acpipe_model::builtin_agents::hints::titles_name_tools;
    let acp = ["acp".to_owned()];
    assert!(titles_name_tools("kimi", &acp) && titles_name_tools("/opt/kimi-cli", &acp));
    assert!(!titles_name_tools("opencode", &acp) && !titles_name_tools("my-agent", &[]));
}
