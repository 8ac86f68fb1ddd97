//! Reports of tools that ran and were not approved as they ran, for every recording under every policy that restricts:
//! `alarms.md`.
//!
//! A call of a real agent that was approved raises no alarm however its reports change, and neither does one that the agent
//! ends after its refusal.

use super::permissions::{Column, chosen, play, recorded, same, ways};
use super::{folder, names};
use acpipe_core::hub::RUN_NOTICES;
use acpipe_policy::{Effect, Mode, Policy};
use acpipe_protocol::wire::SessionOptions;
use std::fmt::Write as _;

/// Recording whose client let a call run with another input, which the clients here do not.
const REWRITTEN: &str = "claude-cli-permission-updated-input";

/// A policy that allows everything but a command, so that each call must be read.
fn no_rm() -> Column {
    let mut policy = Policy::from(Mode::Approve);
    policy
        .add_listed("Bash(rm:*)", "disallowed_tools", Effect::Deny)
        .unwrap();
    Column {
        name: "no rm",
        policy,
        client: None,
    }
}

#[test]
fn approved_calls_of_real_agents_raise_no_alarm() {
    let [_, _, wrong @ ..] = RUN_NOTICES;
    let mut table = String::from(
        "# Reports of tools that ran without approval\n\n\
         Written by `UPDATE_TRANSCRIPTS=1 cargo test --test transcripts alarms`. A policy that answers otherwise than the\n\
         recording's client leads to reports of tools that the agent ran with the recorded approval.\n\n\
         | recording | policy | answers as recorded | reports |\n|-|-|-|-|\n",
    );
    let listed = ["deny", "client: yes", "no rm"];
    let mut ways = ways();
    ways.retain(|way| way.policy.may_restrict(&SessionOptions::default()));
    ways.push(no_rm());
    for name in &names("recordings") {
        let path = folder().join("recordings").join(format!("{name}.ndjson"));
        let recording = std::fs::read_to_string(path).unwrap();
        let answers = recorded(&recording);
        for way in &ways {
            let got = play(name, &recording, way);
            let is_same = name != REWRITTEN && same(&chosen(&got), &answers);
            let chunks = got.turns.iter().flat_map(|turn| &turn.chunks);
            let chunks = chunks.chain(&got.outside);
            let notices = chunks.filter(|chunk| chunk["type"] == "data-notice");
            let mut reports = Vec::new();
            for notice in notices {
                let title = notice["data"]["title"].as_str().unwrap_or_default();
                if !RUN_NOTICES.contains(&title) {
                    continue;
                }
                let is_alarm = is_same && wrong.contains(&title);
                assert!(!is_alarm, "{name}, {}: {notice}", way.name);
                let what = notice["data"]["description"].as_str().unwrap_or_default();
                let title = title.trim_start_matches("The agent ");
                reports.push(
                    format!("{title}: {what}")
                        .replace('|', "\\|")
                        .replace('\n', " "),
                );
            }
            if !reports.is_empty() && listed.contains(&way.name) {
                let same = if is_same { "yes" } else { "no" };
                let reports = reports.join("<br>");
                let _ = writeln!(table, "| {name} | {} | {same} | {reports} |", way.name);
            }
        }
    }
    let path = folder().join("alarms.md");
    if std::env::var_os("UPDATE_TRANSCRIPTS").is_some() {
        std::fs::write(&path, &table).unwrap();
    }
    let want = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(
        table, want,
        "UPDATE_TRANSCRIPTS=1 cargo test --test transcripts alarms"
    );
}
