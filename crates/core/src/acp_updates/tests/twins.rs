//! Scenarios that were recorded with the ACP adapter of Claude Code and with its CLI: the CLI's updates show an
//! editor the same calls, results and plans in the same order as the adapter's.

use super::recordings::{cli_turns, lines, recordings};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// Scenarios: the adapter's recording and the CLI's, and why they differ; empty if they do not.
const TWINS: &[(&str, &str, &str)] = &[
    ("background-task", "background-task", ""),
    ("bash-allow-once", "bash-ask", ""),
    ("bash-readonly", "bash-allowed", ""),
    (
        "cancel-open-permission",
        "interrupt-open-permission",
        "its recording has another turn",
    ),
    ("cancel-stream", "interrupt", ""),
    ("hello", "hello", ""),
    ("max-tokens", "max-tokens", ""),
    (
        "plan-exit",
        "plan-mode-exit",
        "the adapter's recording has a warning",
    ),
    (
        "plan-todowrite",
        "todo-taskcreate",
        "the adapter hides the calls of the task tools",
    ),
    ("subagent", "subagent-forward-text", ""),
    ("thinking", "thinking", ""),
    ("two-tools", "two-tools", ""),
    ("unicode", "unicode", ""),
    ("unknown-tool", "unknown-tool", ""),
    ("write-allow-once", "write-allow", ""),
    ("write-reject", "write-deny", ""),
];

/// Returns what an editor shows, in order.
fn shown<'a>(updates: impl Iterator<Item = &'a Value>) -> Vec<String> {
    let mut shown: Vec<String> = Vec::new();
    let mut calls = Vec::new();
    let mut ended = BTreeSet::new();
    for update in updates {
        let said = |name: &str| update[name].as_str().unwrap_or("-").to_owned();
        let mut number = || {
            let id = said("toolCallId");
            let at = calls.iter().position(|known| *known == id);
            at.unwrap_or_else(|| {
                calls.push(id);
                calls.len() - 1
            })
        };
        let line = match said("sessionUpdate").as_str() {
            kind @ ("agent_message_chunk" | "agent_thought_chunk")
                if update["content"]["text"] != "" =>
            {
                kind.to_owned()
            }
            "tool_call" => {
                let kind = update["kind"].as_str().unwrap_or("other");
                format!(
                    "call {} {} {kind} {}",
                    number(),
                    said("name"),
                    said("status")
                )
            }
            "tool_call_update" if update["status"].is_string() => {
                let number = number();
                if !ended.insert(number) {
                    continue;
                }
                format!("end {number} {}", said("status"))
            }
            "plan" => format!("plan {}", update["entries"].as_array().unwrap().len()),
            _ => continue,
        };
        if shown.last() != Some(&line) {
            shown.push(line);
        }
    }
    shown
}

#[test]
fn cli_and_adapter_show_the_same() {
    let all = recordings("claude-");
    let find = |name: String| {
        let found = all.iter().find(|(known, _)| *known == name);
        found.map(|(_, text)| text.as_str()).unwrap()
    };
    let mut wrong = String::new();
    for (adapter, cli, differs) in TWINS {
        let lines = lines(find(format!("claude-agent-acp-{adapter}")));
        let values: Vec<Value> = lines
            .iter()
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect();
        let updates = values.iter().map(|frame| &frame["params"]["update"]);
        let theirs = shown(updates.filter(|update| update.is_object()));
        let turns = cli_turns(find(format!("claude-cli-{cli}")));
        let ours = shown(turns.iter().flat_map(|turn| &turn.updates));
        if (theirs == ours) != differs.is_empty() {
            let _ = writeln!(wrong, "{cli}:\n  adapter {theirs:?}\n  CLI     {ours:?}");
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}
