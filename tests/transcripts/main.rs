//! Recorded sessions of real agents, replayed through the core: one recording, one list of chunks.
//!
//! The bridge makes its own calls in the order in which the recording client made its calls; the agent's
//! lines are fed as they came, only the ids of its answers are those of the bridge's calls. After a wanted
//! change `UPDATE_TRANSCRIPTS=1 cargo test --test transcripts` writes the lists anew.

#![expect(clippy::unwrap_used, reason = "a test may end at any surprise")]

mod replay;
mod stream;

use acpipe::core::permit::Policy;
use acpipe::core::profile::Profile;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts")
}

/// Recordings in which the client refused or broke off what the agent asked.
fn policy(name: &str) -> Policy {
    if name.contains("reject") || name.contains("write-cancelled") {
        Policy::Deny
    } else {
        Policy::Approve
    }
}

#[test]
fn recordings_become_the_expected_chunks() {
    let update = std::env::var_os("UPDATE_TRANSCRIPTS").is_some();
    let mut recordings: Vec<PathBuf> = std::fs::read_dir(folder().join("recordings"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    recordings.sort();
    assert!(recordings.len() > 40, "recordings are missing");
    let mut wrong = String::new();
    for path in recordings {
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let recording = std::fs::read_to_string(&path).unwrap();
        let turns = replay::replay(&recording, policy(&name), Profile::V7);
        assert!(!turns.is_empty(), "{name}: no turn");
        let mut seen = String::new();
        for turn in &turns {
            if let Err(fault) = stream::check(&turn.chunks) {
                let _ = writeln!(wrong, "{name}: {}: {fault}", turn.id);
            }
            for chunk in &turn.chunks {
                let _ = writeln!(seen, "{chunk}");
            }
            let _ = writeln!(seen, "{}", turn.end);
        }
        let expected = folder().join("expected").join(format!("{name}.ndjson"));
        if update {
            std::fs::create_dir_all(folder().join("expected")).unwrap();
            std::fs::write(&expected, &seen).unwrap();
            continue;
        }
        let want = std::fs::read_to_string(&expected).unwrap_or_default();
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
}
