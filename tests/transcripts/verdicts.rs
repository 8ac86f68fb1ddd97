//! Decisions of rules on all requests of the recorded agents: `verdicts.md`, one row a request. Decisions of
//! modes are in `permissions.md`.

use super::replay::{self, ReplayClient};
use super::{claude, folder, names};
use acpipe::cli::policy_of;
use acpipe_core::profile::Profile;
use serde_json::Value;
use std::fmt::Write as _;

/// Columns: name and configuration.
const POLICIES: &[(&str, &str)] = &[
    (
        "preset",
        "[permissions]\npreset = \"maverick-deny-dangerous\"",
    ),
    ("rules", CAREFUL),
    ("lists", LISTS),
];

const CAREFUL: &str = r#"
[permissions]
default = "deny"

[[permissions.rules]]
name = "edit"
effect = "allow"
kind = "edit"
path = "**"

[[permissions.rules]]
name = "run"
effect = "allow"
command = ["echo *", "sleep *", "touch *"]

[[permissions.rules]]
name = "never"
effect = "deny"
path = "**/*never*"
"#;

const LISTS: &str = r#"
[permissions]
default = "deny"
allowed_tools = ["Edit", "Bash(echo *)", "mcp__tiny"]
disallowed_tools = ["Bash(touch:*)", "Edit(ed.txt)"]
"#;

/// Returns the title and the decision of each request.
fn decided(name: &str, recording: &str, config: &str) -> Vec<(String, String)> {
    let policy = policy_of(config, None).unwrap();
    let seen = ReplayClient::new(Profile::V7);
    let got = if name.starts_with("claude-cli-") {
        claude::replay_to(seen, recording, claude::resumes(name), policy)
    } else {
        replay::replay_to(seen, recording, policy)
    };
    let chunks = got.turns.iter().flat_map(|turn| &turn.chunks);
    let chunks: Vec<&Value> = chunks.chain(&got.outside).collect();
    let decisions = chunks.iter().filter(|chunk| {
        chunk["type"] == "data-permission" && chunk["data"]["approved"].is_boolean()
    });
    let row = |chunk: &&Value| {
        let data = &chunk["data"];
        let shown = chunks.iter().rev().find(|shown| {
            shown["toolCallId"] == data["toolCallId"] && shown["type"] == "tool-input-available"
        });
        let title = shown.and_then(|shown| shown["title"].as_str().or(shown["toolName"].as_str()));
        let word = match data["approved"].as_bool() {
            Some(true) => "allow",
            _ => "deny",
        };
        let why = data["rule"]
            .as_str()
            .or(data["by"].as_str())
            .unwrap_or("its own rules");
        let why = why.replace(
            ", but no client answers permission requests",
            ", unanswered",
        );
        (title.unwrap_or("?").to_owned(), format!("{word}: {why}"))
    };
    decisions.map(row).collect()
}

#[test]
fn recorded_requests_get_the_expected_verdicts() {
    let mut table = String::from(
        "# What rules say of what the recorded agents asked for\n\n\
         Written by `UPDATE_TRANSCRIPTS=1 cargo test --test transcripts verdicts`; the policies are in `verdicts.rs`.\n\n",
    );
    let columns = POLICIES.iter().map(|(name, _)| format!(" {name} |"));
    let _ = writeln!(
        table,
        "| recording | asked for |{}",
        columns.collect::<String>()
    );
    let _ = writeln!(table, "|-|-|{}", "-|".repeat(POLICIES.len()));
    let mut questions = 0;
    for name in names("recordings") {
        let path = folder().join("recordings").join(format!("{name}.ndjson"));
        let recording = std::fs::read_to_string(path).unwrap();
        if !recording.contains("session/request_permission") && !recording.contains("can_use_tool")
        {
            continue;
        }
        let columns = POLICIES
            .iter()
            .map(|(_, config)| decided(&name, &recording, config));
        let columns: Vec<_> = columns.collect();
        for (n, (title, _)) in columns[0].iter().enumerate() {
            questions += 1;
            let title = title.replace('|', "\\|").replace('\n', " ");
            let _ = write!(table, "| {name} | {title} |");
            for column in &columns {
                // The recorded requests do not depend on the policy.
                assert_eq!(column.len(), columns[0].len(), "{name}");
                let _ = write!(table, " {} |", column[n].1);
            }
            table.push('\n');
        }
    }
    assert!(
        questions > 70,
        "{questions} questions: recordings are missing"
    );
    let path = folder().join("verdicts.md");
    if std::env::var_os("UPDATE_TRANSCRIPTS").is_some() {
        std::fs::write(&path, &table).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    for (is, wanted) in table.lines().zip(expected.lines()) {
        assert_eq!(is, wanted);
    }
    assert_eq!(table.lines().count(), expected.lines().count());
}
