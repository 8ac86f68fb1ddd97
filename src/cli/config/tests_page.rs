//! Tests of `docs/guides/permissions.md`: each configuration in it parses and gives the decisions listed
//! below it.

use super::policy_of;
use acpipe_json::to_raw;
use acpipe_policy::{PRESETS, Policy, Subject, ToolProperties};
use serde_json::json;

const PAGE: &str = include_str!("../../../docs/guides/permissions.md");
const HOME: &str = "/home/me";
const CWD: &str = "/home/me/project";

/// Parses an action as the page writes it, such as `read FILE`.
pub fn subject(verb: &str, what: &str, cwd: &str) -> Subject {
    let (kind, name, input) = match verb {
        "read" => (Some("read"), None, json!({ "path": what })),
        "write" => (Some("edit"), None, json!({ "path": what })),
        "run" => (Some("execute"), None, json!({ "command": what })),
        "use" => (None, Some(what), json!({})),
        _ => panic!("{verb:?} is no word of the page"),
    };
    let input = to_raw(&input);
    let tool = ToolProperties {
        name,
        kind,
        input: Some(&input),
        ..ToolProperties::default()
    };
    Subject::of_tool(&tool, cwd)
}

/// Returns the text between backticks.
fn code(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

#[test]
fn examples_on_the_permissions_page_hold() {
    let mut policy: Option<Policy> = None;
    let mut block: Option<String> = None;
    let (mut files, mut verdicts) = (0, 0);
    for line in PAGE.lines() {
        match (line, &mut block) {
            ("```toml", _) => block = Some(String::new()),
            ("```", Some(text)) => {
                policy = Some(policy_of(text, Some(HOME.into())).unwrap());
                files += 1;
                block = None;
            }
            (_, Some(text)) => {
                text.push_str(line);
                text.push('\n');
            }
            (_, None) if line.starts_with("## ") => policy = None,
            (_, None) => {
                let Some((asked, wanted)) = line
                    .strip_prefix("| ")
                    .and_then(|row| row.split_once(" | "))
                else {
                    continue;
                };
                let (Some(policy), true) = (&policy, asked.contains('`')) else {
                    continue;
                };
                let (verb, _) = asked.split_once(' ').unwrap();
                for what in code(&asked.replace("\\|", "|")) {
                    let verdict = policy.judge(&subject(verb, what, CWD));
                    let said = format!("{} by `{}` |", verdict.effect.name(), verdict.by);
                    assert_eq!(said, wanted, "{verb} {what}");
                    verdicts += 1;
                }
            }
        }
    }
    // Fails if a row of the page was not recognized.
    assert_eq!((files, verdicts), (5, 52));
}

#[test]
fn permissions_page_lists_all_presets() {
    for preset in PRESETS {
        let row = format!("| `{}` | ", preset.name);
        assert!(PAGE.contains(&row), "{row}");
    }
}
