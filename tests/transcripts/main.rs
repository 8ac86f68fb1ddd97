//! Recorded sessions of real agents, replayed through the core: each recording has a list of expected chunks.
//!
//! The hub sends its requests in the order in which the recording client sent them. The agent's lines are
//! replayed unchanged, except that the ids of its responses are those of the hub's requests. A list holds the
//! turns in order, each with its summary, then the chunks outside of turns, then the refused calls. After an
//! intended change `UPDATE_TRANSCRIPTS=1 cargo test --test transcripts` rewrites the lists. `excluded.md`
//! lists the recordings that are not replayed, with reasons; `twins.md` the differences between messages of
//! the Claude Code adapter and of its CLI; `permissions.md` and `verdicts.md` the policies' decisions on the
//! agents' requests.

#![expect(clippy::unwrap_used, reason = "a test may end at any surprise")]

mod alarms;
mod claude;
mod fast_path;
mod permissions;
mod replay;
mod stream;
mod twins;
mod verdicts;

use acpipe_core::fold::Fold;
use acpipe_core::hub::{MAY_NOT_ASK, RUN_NOTICES};
use acpipe_core::profile::Profile;
use acpipe_policy::Mode;
use permissions::{ALLOW, REFUSE};
use replay::{ReplayClient, Replayed};
use serde_json::Value;
use serde_json::json;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts")
}

/// Returns the policy that matches the recording: `Deny` if its client refused or cancelled the agent's
/// requests.
fn policy(name: &str) -> Mode {
    if name.contains("reject") || name.contains("deny") || name.contains("write-cancelled") {
        Mode::Deny
    } else {
        Mode::Approve
    }
}

/// Replays a recording to a client with this profile.
fn play(name: &str, recording: &str, profile: Profile) -> Replayed {
    if name.starts_with("claude-cli-") {
        claude::replay(recording, claude::resumes(name), policy(name), profile)
    } else {
        replay::replay(recording, policy(name), profile)
    }
}

/// Returns the names of the files in a folder, without their extensions.
fn names(of: &str) -> BTreeSet<String> {
    let files = std::fs::read_dir(folder().join(of)).unwrap();
    let paths = files.map(|file| file.unwrap().path());
    paths
        .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
        .collect()
}

/// Formats what a client received, one JSON value a line.
fn list(got: &Replayed) -> String {
    let turns = got.turns.iter();
    // A turn without a prompt has no summary.
    let turns = turns.flat_map(|turn| {
        let end = Some(&turn.end).filter(|end| !end.is_null());
        turn.chunks.iter().chain(end).cloned()
    });
    let outside = got.outside.iter().map(|chunk| json!({ "outside": chunk }));
    let lines = turns.chain(outside).chain(got.refused.iter().cloned());
    lines
        .flat_map(|line| [line.to_string(), "\n".to_owned()])
        .collect()
}

#[test]
fn recordings_become_the_expected_chunks() {
    let update = std::env::var_os("UPDATE_TRANSCRIPTS").is_some();
    let recordings = names("recordings");
    assert!(recordings.len() > 130, "recordings are missing");
    let mut wrong = String::new();
    for name in &recordings {
        let path = |of| folder().join(of).join(format!("{name}.ndjson"));
        let recording = std::fs::read_to_string(path("recordings")).unwrap();
        let got = play(name, &recording, Profile::V7);
        if got.turns.is_empty() && got.refused.is_empty() {
            let _ = writeln!(wrong, "{name}: no turn");
        }
        for turn in &got.turns {
            if let Err(fault) = stream::check(&turn.chunks) {
                let _ = writeln!(wrong, "{name}: {}: {fault}", turn.id);
            }
        }
        let seen = list(&got);
        if update {
            std::fs::create_dir_all(folder().join("expected")).unwrap();
            std::fs::write(path("expected"), &seen).unwrap();
            continue;
        }
        let want = std::fs::read_to_string(path("expected")).unwrap_or_default();
        for (n, (seen, want)) in seen.lines().zip(want.lines()).enumerate() {
            if seen != want {
                let _ = writeln!(
                    wrong,
                    "{name}, line {}:\n  have {seen}\n  want {want}",
                    n + 1
                );
                break;
            }
        }
        if seen.lines().count() != want.lines().count() {
            let (have, want) = (seen.lines().count(), want.lines().count());
            let _ = writeln!(wrong, "{name}: {have} lines, not {want}");
        }
    }
    assert!(
        wrong.is_empty(),
        "{wrong}\nIf this is wanted: UPDATE_TRANSCRIPTS=1 cargo test --test transcripts"
    );
    assert_eq!(names("expected"), recordings, "a list for each recording");
}

/// Stored chunks that are replayed to a client of an older profile are those that it would have received
/// live.
#[test]
fn stored_chunks_are_adapted_as_live_ones() {
    for name in names("recordings") {
        let path = folder().join("recordings").join(format!("{name}.ndjson"));
        let recording = std::fs::read_to_string(path).unwrap();
        let play = |profile| play(&name, &recording, profile).turns;
        let stored = play(Profile::V7);
        for profile in [Profile::V6, Profile::V5] {
            let live = play(profile);
            assert_eq!(stored.len(), live.len(), "{name}, {profile:?}");
            for (stored, live) in stored.iter().zip(live) {
                let mut adapted = Vec::new();
                for chunk in stored.chunks.clone() {
                    profile.adapt_stored(chunk, |chunk| adapted.push(chunk));
                }
                assert_eq!(adapted, live.chunks, "{name}, {profile:?}");
            }
        }
    }
}

/// A slow client receives fewer chunks, which build the same messages.
#[test]
fn coalesced_chunks_fold_to_the_same_message() {
    let (mut all, mut merged) = (0, 0);
    for name in names("recordings") {
        if name.starts_with("claude-cli-") {
            continue;
        }
        let path = folder().join("recordings").join(format!("{name}.ndjson"));
        let recording = std::fs::read_to_string(path).unwrap();
        let play = |seen| replay::replay_to(seen, &recording, policy(&name)).turns;
        let seen = play(ReplayClient::new(Profile::V7));
        let slow = play(ReplayClient::slow(Profile::V7));
        assert_eq!(seen.len(), slow.len(), "{name}");
        for (seen, slow) in seen.iter().zip(slow) {
            let [one, other] = [&seen.chunks, &slow.chunks].map(|chunks| {
                let mut fold = Fold::default();
                for chunk in chunks {
                    fold.push(chunk);
                }
                fold.message()
            });
            assert_eq!(one, other, "{name}");
            assert_eq!(seen.end, slow.end, "{name}");
            all += seen.chunks.len();
            merged += slow.chunks.len();
        }
    }
    assert!(merged < all, "{merged} of {all} chunks");
}

/// Checks that the same chunks follow whether the client answers at once or the policy decides; only the recorded decider
/// differs.
#[test]
fn client_answers_equal_to_the_policy_give_the_same_stream() {
    let mut asked = 0;
    for name in names("recordings") {
        if name.starts_with("claude-cli-") {
            continue;
        }
        let path = folder().join("recordings").join(format!("{name}.ndjson"));
        let recording = std::fs::read_to_string(path).unwrap();
        for (mode, kinds) in [(Mode::Approve, ALLOW), (Mode::Deny, REFUSE)] {
            let play = |seen, mode| replay::replay_to(seen, &recording, mode).turns;
            let decided = play(ReplayClient::new(Profile::V7), mode);
            let seen = ReplayClient::answering(Profile::V7, 0, kinds);
            let asked_for = play(seen, Mode::Ask);
            assert_eq!(decided.len(), asked_for.len(), "{name}, {mode:?}");
            for (decided, asked_for) in decided.iter().zip(asked_for) {
                asked += asked_for
                    .chunks
                    .iter()
                    .filter(|c| c["isAutomatic"] == false)
                    .count();
                // The asking policy also reports each tool that runs without a request, and a mode in which the agent
                // does not ask.
                let is_same = |chunk: &&Value| {
                    let title = &chunk["data"]["title"];
                    let mut own = RUN_NOTICES.iter().chain([&MAY_NOT_ASK]);
                    !own.any(|own| title == own)
                };
                let of = |chunks: &[Value]| -> Vec<Value> {
                    chunks.iter().filter(is_same).map(without_who).collect()
                };
                assert_eq!(
                    of(&decided.chunks),
                    of(&asked_for.chunks),
                    "{name}, {mode:?}"
                );
            }
        }
    }
    assert!(asked > 50, "{asked} questions");
}

fn without_who(chunk: &Value) -> Value {
    let mut chunk = chunk.clone();
    if let Some(fields) = chunk.as_object_mut() {
        fields.remove("isAutomatic");
        fields.remove("reason");
        if let Some(data) = fields.get_mut("data").and_then(Value::as_object_mut) {
            for who in ["by", "rule", "reason"] {
                data.remove(who);
            }
        }
    }
    chunk
}

#[test]
fn recordings_are_excluded_for_a_reason() {
    let table = std::fs::read_to_string(folder().join("excluded.md")).unwrap();
    let rows = table.lines().filter(|line| line.starts_with('|')).skip(2);
    let rows: Vec<Vec<&str>> = rows
        .map(|row| row.trim_matches('|').split('|').map(str::trim).collect())
        .collect();
    assert!(!rows.is_empty(), "the table is missing");
    let recordings = names("recordings");
    for row in &rows {
        let [name, reason] = row[..] else {
            panic!("{row:?} is no file and reason");
        };
        assert!(!reason.is_empty(), "{name}: no reason");
        assert!(!recordings.contains(name), "{name} is among the recordings");
    }
    assert!(
        rows.is_sorted_by(|a, b| a[0] < b[0]),
        "sorted, each file once"
    );
}

#[test]
fn adapter_and_cli_messages_differ_only_as_listed() {
    let read = |name: &str| {
        let path = folder().join("recordings").join(format!("{name}.ndjson"));
        play(name, &std::fs::read_to_string(path).unwrap(), Profile::V7)
    };
    let table = std::fs::read_to_string(folder().join("twins.md")).unwrap();
    let wanted = twins::AcceptedDifference::read(&table);
    let mut used = vec![false; wanted.len()];
    let mut wrong = String::new();
    for (adapter, cli, names) in twins::TWINS {
        let theirs = read(&format!("claude-agent-acp-{adapter}"));
        let ours = read(&format!("claude-cli-{cli}"));
        assert!(!theirs.turns.is_empty() && !ours.turns.is_empty(), "{cli}");
        // Turns that only one recording has belong to another scenario.
        for (theirs, ours) in theirs.turns.iter().zip(&ours.turns) {
            let theirs = twins::facts(&theirs.chunks, names);
            let ours = twins::facts(&ours.chunks, &[]);
            for (place, what) in twins::differences(&theirs, &ours) {
                match wanted.iter().position(|row| row.covers(cli, &place)) {
                    Some(at) => used[at] = true,
                    None => {
                        let _ = writeln!(wrong, "{cli}: {place}: {what}");
                    }
                }
            }
        }
    }
    for (row, _) in wanted.iter().zip(used).filter(|(_, used)| !used) {
        let _ = writeln!(
            wrong,
            "{}: no difference: strike it from the table",
            row.name()
        );
    }
    assert!(wrong.is_empty(), "{wrong}");
}
