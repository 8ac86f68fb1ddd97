//! Recorded ACP agents: their updates as messages, converted to updates and read again.

use crate::acp_history::updates_of;
use crate::acp_updates::tests::recordings::{lines, recordings};
use crate::replay::Replay;
use acpipe_dialects::acp::updates::read_line;
use acpipe_model::event::AgentEvent;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Places that differ, each with the reason. `*` ends a place of which only the beginning counts.
const DIFFERENT: &[(&str, &str)] = &[
    (
        "dynamic-tool.output",
        "acpipe's own statement that the agent did not report the end",
    ),
    ("dynamic-tool.title", "only the last title is sent"),
    (
        "dynamic-tool.toolMetadata.acp._meta",
        "acpipe's own statement that the agent did not report the end",
    ),
    (
        "dynamic-tool.toolMetadata.acp._meta.terminal_*",
        "the data of the terminal's own part",
    ),
    (
        "dynamic-tool.toolMetadata.acp.content",
        "the text of an error that the agent sent as raw output",
    ),
    (
        "dynamic-tool.toolMetadata.acp.kind",
        "a call without a kind has ACP's default",
    ),
    (
        "dynamic-tool.toolMetadata.acp.other",
        "a status that the agent sent after the end",
    ),
    (
        "dynamic-tool.toolMetadata.acp.settled",
        "acpipe's own statement that the agent did not report the end",
    ),
    (
        "dynamic-tool.toolMetadata.acp.status",
        "acpipe's own statement that the agent did not report the end",
    ),
    (
        "dynamic-tool.toolMetadata.acp.title",
        "only the last title is sent",
    ),
    (
        "parts",
        "subagents and their messages have no stable update",
    ),
];

/// Returns the messages of lines, by session.
fn messages<'a>(lines: impl Iterator<Item = &'a str>) -> BTreeMap<String, Vec<Value>> {
    let mut replays: BTreeMap<String, Vec<Replay>> = BTreeMap::new();
    let new = || Replay::new("acp", "r".to_owned());
    for line in lines {
        let mut events = Vec::new();
        if read_line(line, &mut events).is_none() {
            // The result of a prompt ends its turn.
            if line.contains("\"stopReason\"") {
                for turns in replays.values_mut() {
                    turns.push(new());
                }
            }
            continue;
        }
        for event in events {
            if let AgentEvent::Update {
                session,
                update,
                original,
            } = event
            {
                let turns = replays
                    .entry(session.into_owned())
                    .or_insert_with(|| vec![new()]);
                turns.last_mut().unwrap().update(&update, original);
            }
        }
    }
    let messages = |turn: Replay| turn.finish().values().collect::<Vec<_>>();
    let finished = |turns: Vec<Replay>| turns.into_iter().flat_map(messages).collect();
    let all = replays.into_iter();
    all.map(|(session, turns)| (session, finished(turns)))
        .collect()
}

/// Converts a message to updates and back.
fn again(message: &Value) -> Vec<Value> {
    let mut lines = Vec::new();
    updates_of(message, &mut |update| {
        let mut update: Value = serde_json::from_slice(update).unwrap();
        // The metadata of the message is not that of its first part.
        if let Some(meta) = update["_meta"].as_object_mut() {
            let own = meta.get_mut("acpipe").and_then(Value::as_object_mut);
            let emptied = own.is_some_and(|own| own.remove("metadata").is_some() && own.is_empty());
            if emptied {
                meta.remove("acpipe");
            }
            if meta.is_empty() {
                update.as_object_mut().unwrap().remove("_meta");
            }
        }
        let params = json!({ "sessionId": "s", "update": update });
        let line = json!({ "jsonrpc": "2.0", "method": "session/update", "params": params });
        lines.push(line.to_string());
    });
    let mut got = messages(lines.iter().map(String::as_str));
    got.remove("s").unwrap_or_default()
}

fn compare(place: &str, one: &Value, other: &Value, found: &mut BTreeSet<(String, String)>) {
    match (one, other) {
        (a, b) if a == b => {}
        (Value::Object(a), Value::Object(b)) => {
            let names: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            for name in names.into_iter().filter(|name| *name != "id") {
                let place = format!("{place}.{name}");
                compare(&place, &one[name], &other[name], found);
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (a, b) in a.iter().zip(b) {
                compare(place, a, b, found);
            }
        }
        (a, b) => {
            let (mut a, mut b) = (a.to_string(), b.to_string());
            a.truncate(a.floor_char_boundary(200));
            b.truncate(b.floor_char_boundary(200));
            found.insert((place.to_owned(), format!("{a} became {b}")));
        }
    }
}

fn is_allowed(place: &str) -> bool {
    DIFFERENT
        .iter()
        .any(|(known, _)| match known.strip_suffix('*') {
            Some(start) => place.starts_with(start),
            None => place == *known,
        })
}

#[test]
fn messages_of_acp_agents_survive_as_updates() {
    let mut found: BTreeMap<String, (usize, String)> = BTreeMap::new();
    let (mut parts, mut stored_messages) = (0, 0);
    for (name, recording) in recordings("") {
        if name.starts_with("claude-cli-") {
            continue;
        }
        let lines = lines(&recording);
        for message in messages(lines.iter().map(String::as_str))
            .into_values()
            .flatten()
        {
            stored_messages += 1;
            let got = again(&message);
            let mut differences = BTreeSet::new();
            let all = |message: &Value| message["parts"].as_array().cloned().unwrap_or_default();
            let (mut stored, mut read) = (
                all(&message),
                got.iter().flat_map(all).collect::<Vec<Value>>(),
            );
            parts += stored.len();
            // The terminal of a call follows it. Parts of one kind keep their order.
            for parts in [&mut stored, &mut read] {
                parts.sort_by_key(|part| part["type"].to_string());
            }
            let kinds = |parts: &[Value]| -> Vec<String> {
                let kinds = parts
                    .iter()
                    .map(|part| part["type"].as_str().unwrap().to_owned());
                kinds.filter(|kind| kind != "step-start").collect()
            };
            if kinds(&stored) == kinds(&read) {
                let shown = |part: &&Value| part["type"] != "step-start";
                let pairs = stored.iter().filter(shown).zip(read.iter().filter(shown));
                for (one, other) in pairs {
                    let kind = one["type"].as_str().unwrap();
                    compare(kind, one, other, &mut differences);
                }
            } else {
                let (one, other) = (json!(kinds(&stored)), json!(kinds(&read)));
                compare("parts", &one, &other, &mut differences);
            }
            for (place, what) in differences {
                let entry = found
                    .entry(place)
                    .or_insert_with(|| (0, format!("{name}: {what}")));
                entry.0 += 1;
            }
        }
    }
    assert!(
        stored_messages > 100 && parts > 200,
        "{stored_messages} messages, {parts} parts"
    );
    let unknown: Vec<_> = found
        .iter()
        .filter(|(place, _)| !is_allowed(place))
        .collect();
    assert!(unknown.is_empty(), "{unknown:#?}");
    for (known, reason) in DIFFERENT {
        let is_found = found.keys().any(|place| match known.strip_suffix('*') {
            Some(start) => place.starts_with(start),
            None => place == known,
        });
        assert!(is_found, "{known} ({reason}) no longer differs");
    }
}
