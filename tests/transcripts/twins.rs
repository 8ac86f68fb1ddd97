//! Compares scenarios that were recorded with the ACP adapter of Claude Code and with its CLI: the messages
//! are equal, except for the differences in `twins.md`.
//!
//! Ids become numbers in order of appearance, the keys of both dialects become one key, and file names that
//! differ between the recordings are unified. Each part is compared with the part of the same kind and number
//! in the other message.

use acpipe_core::fold::Fold;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Text of the adapter's recording, with the CLI's text that replaces it.
type Names<'a> = &'a [(&'a str, &'a str)];

/// Scenarios: the adapter's recording, the CLI's recording, and the names to replace in the former.
pub const TWINS: &[(&str, &str, Names<'static>)] = &[
    ("ask-user-question-elicitation", "ask-user-question", &[]),
    ("background-task", "background-task", &[]),
    ("bash-allow-once", "bash-ask", &[("acp1.txt", "x.txt")]),
    ("bash-readonly", "bash-allowed", &[]),
    (
        "cancel-open-permission",
        "interrupt-open-permission",
        &[("acp-never.txt", "never.txt")],
    ),
    ("cancel-stream", "interrupt", &[]),
    ("error-midstream", "error-midstream", &[]),
    ("error400", "error400", &[]),
    ("error401", "error401", &[]),
    ("error529", "error529", &[]),
    ("hello", "hello", &[]),
    ("max-tokens", "max-tokens", &[]),
    ("max-turns-1", "max-turns-1", &[]),
    ("no-api-key", "no-api-key", &[]),
    ("plan-exit", "plan-mode-exit", &[]),
    ("plan-todowrite", "todo-taskcreate", &[]),
    ("refusal", "refusal", &[]),
    ("subagent", "subagent-forward-text", &[]),
    ("thinking", "thinking", &[]),
    ("two-tools", "two-tools", &[]),
    ("unicode", "unicode", &[]),
    ("unknown-tool", "unknown-tool", &[]),
    (
        "write-allow-always",
        "write-allow-always",
        &[
            ("acp-a-ed5527.txt", "a-0404e5.txt"),
            ("acp-b-48f665.txt", "b-cd5d03.txt"),
        ],
    ),
    (
        "write-allow-once",
        "write-allow",
        &[("acp-w-0edef1.txt", "w-7f2c64.txt")],
    ),
    (
        "write-reject",
        "write-deny",
        &[("acp-no.txt", "denied.txt")],
    ),
];

/// The parts of a message, by kind and number.
pub type Facts = BTreeMap<String, Value>;

/// Returns the normalized message of a turn.
pub fn facts(chunks: &[Value], names: Names<'_>) -> Facts {
    let mut fold = Fold::default();
    for chunk in chunks {
        fold.push(chunk);
    }
    let mut text = fold.message().to_string();
    for (theirs, ours) in names {
        text = text.replace(theirs, ours);
    }
    let mut message: Value = serde_json::from_str(&text).unwrap();
    normal(&mut message, &mut Vec::new());
    let mut facts = Facts::new();
    facts.insert("metadata".to_owned(), message["metadata"].take());
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for part in message["parts"].as_array_mut().into_iter().flatten() {
        let name = part["toolName"].as_str();
        let kind = name.or(part["type"].as_str()).unwrap_or_default();
        let count = counts.entry(kind.to_owned()).or_default();
        *count += 1;
        facts.insert(format!("{kind} {count}"), part.take());
    }
    facts
}

/// Replaces ids by numbers, and the keys of both dialects by one.
fn normal(value: &mut Value, ids: &mut Vec<String>) {
    match value {
        Value::Object(object) => {
            let known = |key: &str| ["acp", "claude"].contains(&key);
            let renamed: Map<String, Value> = std::mem::take(object)
                .into_iter()
                .map(|(key, mut value)| {
                    let is_id = (key.ends_with("Id") || key == "id") && value.is_string();
                    if is_id && !key.starts_with("option") && value != "plan" {
                        let id = value.as_str().unwrap_or_default().to_owned();
                        let at = ids.iter().position(|known| *known == id);
                        let at = at.unwrap_or_else(|| {
                            ids.push(id);
                            ids.len() - 1
                        });
                        value = json!(format!("id {at}"));
                    } else {
                        normal(&mut value, ids);
                    }
                    let key = if known(&key) {
                        "dialect".to_owned()
                    } else {
                        key
                    };
                    (key, value)
                })
                .collect();
            *object = renamed;
        }
        Value::Array(items) => items.iter_mut().for_each(|item| normal(item, ids)),
        _ => {}
    }
}

/// Returns the differences between two messages: the place, and both values.
pub fn differences(adapter: &Facts, cli: &Facts) -> BTreeSet<(String, String)> {
    let mut found = BTreeSet::new();
    let keys: BTreeSet<&String> = adapter.keys().chain(cli.keys()).collect();
    for key in keys {
        compare(key, adapter.get(key), cli.get(key), &mut found);
    }
    found
}

fn compare(
    place: &str,
    adapter: Option<&Value>,
    cli: Option<&Value>,
    found: &mut BTreeSet<(String, String)>,
) {
    let member = |value: Option<&Value>, key: &str| value.and_then(|v| v.get(key)).cloned();
    match (adapter, cli) {
        (a, b) if a == b => {}
        (Some(Value::Object(a)), Some(Value::Object(b))) => {
            let keys: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            for key in keys {
                let (a, b) = (member(adapter, key), member(cli, key));
                compare(&format!("{place}.{key}"), a.as_ref(), b.as_ref(), found);
            }
        }
        (Some(Value::Array(a)), Some(Value::Array(b))) if a.len() == b.len() => {
            for (at, (a, b)) in a.iter().zip(b).enumerate() {
                compare(&format!("{place}[{at}]"), Some(a), Some(b), found);
            }
        }
        (a, b) => {
            let shown =
                |value: Option<&Value>| value.map_or("nothing".to_owned(), Value::to_string);
            let text = format!("adapter {}, CLI {}", shown(a), shown(b));
            found.insert((place.to_owned(), text));
        }
    }
}

/// An accepted difference: its scenario and its place; in both `*` stands for anything.
pub struct AcceptedDifference<'a> {
    scenario: &'a str,
    place: &'a str,
}

impl<'a> AcceptedDifference<'a> {
    /// Parses the rows of `twins.md`.
    pub fn read(table: &'a str) -> Vec<Self> {
        let rows = table.lines().filter(|line| line.starts_with('|')).skip(2);
        let row = |row: &'a str| {
            let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
            let [scenario, place, class, reason] = cells[..] else {
                panic!("{row} is no difference with its class and reason");
            };
            assert!(
                ["ids", "recorded", "here", "there"].contains(&class),
                "{row}"
            );
            assert!(!reason.is_empty(), "{row}: no reason");
            Self { scenario, place }
        };
        rows.map(row).collect()
    }

    pub fn covers(&self, scenario: &str, place: &str) -> bool {
        matches(self.scenario, scenario) && matches(self.place, place)
    }

    pub fn name(&self) -> String {
        format!("{}: {}", self.scenario, self.place)
    }
}

fn matches(pattern: &str, text: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else {
        return pattern == text;
    };
    let Some(text) = text.strip_prefix(start) else {
        return false;
    };
    let mut ends = text.char_indices().map(|(at, _)| at).chain([text.len()]);
    ends.any(|at| matches(rest, &text[at..]))
}
