//! Every recorded permission request under every policy, with the agent's reaction: `permissions.md`.
//!
//! A recording shows the agent's reaction to one answer. A policy that gives this answer must lead to the
//! recorded chunks; under other policies only the rules of chunk streams are checked.

use super::replay::{ReplayClient, Replayed, frames};
use super::{claude, folder, names, replay, stream};
use acpipe_core::profile::Profile;
use acpipe_policy::{Mode, Policy};
use acpipe_protocol::tape::Direction;
use acpipe_protocol::wire::OfferedKind;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// Options that clients choose.
pub const ALLOW: &[OfferedKind] = &[OfferedKind::AllowOnce, OfferedKind::AllowAlways];
pub const REFUSE: &[OfferedKind] = &[OfferedKind::RejectOnce, OfferedKind::RejectAlways];

/// A column of the table: its name, and who decides.
pub struct Column {
    pub name: &'static str,
    pub policy: Policy,
    pub client: Option<&'static [OfferedKind]>,
}

pub fn ways() -> Vec<Column> {
    let mut always = Policy::from(Mode::Approve);
    always.set_always(true);
    let by_policy = |name, policy| Column {
        name,
        policy,
        client: None,
    };
    let by_client = |name, kinds| Column {
        name,
        policy: Mode::Ask.into(),
        client: Some(kinds),
    };
    vec![
        by_policy("approve", Mode::Approve.into()),
        by_policy("always", always),
        by_policy("reads", Mode::Reads.into()),
        by_policy("deny", Mode::Deny.into()),
        by_client("client: yes", ALLOW),
        by_client("client: always", &[OfferedKind::AllowAlways]),
        by_client("client: no", REFUSE),
        by_client("client: away", &[]),
    ]
}

pub fn play(name: &str, recording: &str, way: &Column) -> Replayed {
    let seen = match way.client {
        None => ReplayClient::new(Profile::V7),
        Some(kinds) => ReplayClient::answering(Profile::V7, 0, kinds),
    };
    if name.starts_with("claude-cli-") {
        claude::replay_to(seen, recording, claude::resumes(name), way.policy.clone())
    } else {
        replay::replay_to(seen, recording, way.policy.clone())
    }
}

/// Returns the kind of the option that was chosen for each request; `cancelled` if there is none.
pub fn chosen(got: &Replayed) -> Vec<String> {
    let chunks = got.turns.iter().flat_map(|turn| &turn.chunks);
    let mut last: BTreeMap<(usize, String), &Value> = BTreeMap::new();
    let mut order: Vec<&str> = Vec::new();
    for chunk in chunks.filter(|chunk| chunk["type"] == "data-permission") {
        let id = chunk["id"].as_str().unwrap();
        if !order.contains(&id) {
            order.push(id);
        }
        let at = order.iter().position(|known| *known == id).unwrap();
        last.insert((at, id.to_owned()), &chunk["data"]);
    }
    last.values().map(|data| kind(data)).collect()
}

fn kind(data: &Value) -> String {
    let chosen = &data["outcome"]["optionId"];
    let mut options = data["options"].as_array().into_iter().flatten();
    let option = options.find(|option| !chosen.is_null() && option["optionId"] == *chosen);
    match option.and_then(|option| option["kind"].as_str()) {
        Some(kind) => kind.to_owned(),
        None => "cancelled".to_owned(),
    }
}

/// Like [`chosen`], for the answers of the recording's client; `None` if an answer was not valid.
pub fn recorded(recording: &str) -> Vec<Option<String>> {
    let mut asked: Vec<(String, Value, Option<String>)> = Vec::new();
    for recorded in frames(recording) {
        let frame: Value = serde_json::from_str(recorded.body.line()).unwrap_or_default();
        let request = &frame["request"];
        let is_of_agent = recorded.direction == Direction::In;
        if is_of_agent && frame["method"] == "session/request_permission" {
            let options = frame["params"]["options"].clone();
            asked.push((frame["id"].to_string(), options, None));
        } else if is_of_agent && request["subtype"] == "can_use_tool" {
            asked.push((frame["request_id"].to_string(), Value::Null, None));
        } else if !is_of_agent {
            let response = &frame["response"];
            let id = if frame["type"] == "control_response" {
                response["request_id"].to_string()
            } else if frame.get("method").is_none() {
                frame["id"].to_string()
            } else {
                continue;
            };
            let open = asked
                .iter_mut()
                .find(|(of, _, answer)| *of == id && answer.is_none());
            let Some((_, options, answer)) = open else {
                continue;
            };
            let said = &response["response"];
            *answer = match (options.is_null(), said["behavior"].as_str()) {
                (false, _) => {
                    let outcome = &frame["result"]["outcome"];
                    let data = serde_json::json!({ "options": options, "outcome": outcome });
                    let is_one = outcome["outcome"] == "cancelled" || kind(&data) != "cancelled";
                    is_one.then(|| kind(&data))
                }
                (true, Some("allow")) if said["updatedPermissions"].is_array() => {
                    Some("allow_always".to_owned())
                }
                (true, Some("allow")) => Some("allow_once".to_owned()),
                (true, Some("deny")) if said["interrupt"] == true => Some("cancelled".to_owned()),
                (true, Some("deny")) => Some("reject_once".to_owned()),
                _ => None,
            };
        }
    }
    asked.into_iter().map(|(_, _, answer)| answer).collect()
}

/// Describes how the tools that needed approval ended, and the stop reason of the turn.
fn reaction(got: &Replayed) -> String {
    let mut words: Vec<String> = Vec::new();
    for turn in &got.turns {
        let of = |kind: &str| turn.chunks.iter().filter(|c| c["type"] == kind).count();
        if of("tool-approval-request") == 0 {
            continue;
        }
        let asked: BTreeSet<&str> = turn
            .chunks
            .iter()
            .filter(|c| c["type"] == "tool-approval-request")
            .filter_map(|c| c["toolCallId"].as_str())
            .collect();
        for call in asked {
            let ends = turn.chunks.iter().rev().find(|c| {
                let kind = c["type"].as_str().unwrap_or_default();
                c["toolCallId"] == call
                    && kind.starts_with("tool-output-")
                    && c["preliminary"] != true
            });
            let end = ends.and_then(|c| c["type"].as_str()).unwrap_or("nothing");
            words.push(end.trim_start_matches("tool-output-").to_owned());
        }
        let stop = turn.end["summary"]["stopReason"].as_str();
        words.push(format!("then {}", stop.unwrap_or("nothing")));
    }
    words.join(", ")
}

/// Returns `true` if the chosen kinds are the recorded ones.
pub fn same(ours: &[String], theirs: &[Option<String>]) -> bool {
    ours.len() == theirs.len() && ours.iter().zip(theirs).all(|(a, b)| Some(a) == b.as_ref())
}

#[test]
fn recorded_permission_requests_are_decided_under_every_policy() {
    let ways = ways();
    let titles: Vec<&str> = ways.iter().map(|way| way.name).collect();
    let mut table = format!(
        "# Recorded permission questions under every policy\n\n\
         Written by `UPDATE_TRANSCRIPTS=1 cargo test --test transcripts`. Cells: the kind of the chosen option, question\n\
         by question. The reaction is the agent's own, recorded, to the answer that the recording's client gave: `available`,\n\
         `error` or `denied` of each tool that was asked about, and the stop reason.\n\n\
         | recording | {} | recorded answer | the agent's reaction |\n|{}\n",
        titles.join(" | "),
        "-|".repeat(titles.len() + 3)
    );
    let mut reactions: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    let all = names("recordings");
    for name in &all {
        let path = folder().join("recordings").join(format!("{name}.ndjson"));
        let recording = std::fs::read_to_string(path).unwrap();
        let answers = recorded(&recording);
        if answers.is_empty() {
            continue;
        }
        let mut cells = Vec::new();
        let mut seen = None;
        for way in &ways {
            let got = play(name, &recording, way);
            for turn in &got.turns {
                if let Err(fault) = stream::check(&turn.chunks) {
                    panic!("{name}, {}: {fault}", way.name);
                }
            }
            let ours = chosen(&got);
            if seen.is_none() && same(&ours, &answers) {
                seen = Some(reaction(&got));
                let agents = [
                    "claude-agent-acp",
                    "claude-cli",
                    "gemini",
                    "opencode",
                    "zedcodex",
                ];
                let agent = agents.into_iter().find(|agent| name.starts_with(agent));
                reactions
                    .entry(agent.unwrap_or("testy"))
                    .or_default()
                    .extend(ours.clone());
            }
            cells.push(ours.join(", "));
        }
        let answers: Vec<&str> = answers
            .iter()
            .map(|a| a.as_deref().unwrap_or("none"))
            .collect();
        let seen = seen.unwrap_or_else(|| "not played: no policy answers so".to_owned());
        let _ = writeln!(
            table,
            "| {name} | {} | {} | {seen} |",
            cells.join(" | "),
            answers.join(", ")
        );
    }
    let path = folder().join("permissions.md");
    if std::env::var_os("UPDATE_TRANSCRIPTS").is_some() {
        std::fs::write(&path, &table).unwrap();
    }
    let want = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(
        table, want,
        "UPDATE_TRANSCRIPTS=1 cargo test --test transcripts"
    );
    for agent in [
        "claude-agent-acp",
        "claude-cli",
        "gemini",
        "opencode",
        "zedcodex",
    ] {
        let seen = &reactions[agent];
        for kind in ["allow_once", "allow_always", "reject_once", "cancelled"] {
            assert!(seen.contains(kind), "{agent}: no reaction to {kind}");
        }
    }
}
