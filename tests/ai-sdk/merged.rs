//! Chunks that are coalesced for a slow client: the SDK's readers build the same message from them.

use super::judge::{self, Stream};
use super::replay::{ReplayClient, replay_to};
use super::{PROFILES, generate, streams, turns};
use acpipe_policy::Mode;
use std::path::Path;

/// Returns the streams of a session for two clients: one that keeps up, and one that is always behind.
fn both(name: &str, recording: &str, policy: Mode, profile: super::Profile) -> Vec<Stream> {
    let seen = replay_to(ReplayClient::new(profile), recording, policy);
    let slow = replay_to(ReplayClient::slow(profile), recording, policy);
    let (seen, slow) = (streams(name, seen, profile), streams(name, slow, profile));
    assert_eq!(seen.len(), slow.len(), "{name}");
    let pairs = seen.into_iter().zip(slow);
    pairs.flat_map(|(seen, slow)| [seen, slow]).collect()
}

fn recorded() -> Vec<Stream> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts/recordings");
    let mut all = Vec::new();
    for file in std::fs::read_dir(folder).unwrap() {
        let file = file.unwrap().path();
        let name = file.file_stem().unwrap().to_str().unwrap();
        if !name.starts_with("claude-cli-") {
            let recording = std::fs::read_to_string(&file).unwrap();
            let of = |profile| both(name, &recording, Mode::Approve, profile);
            all.extend(PROFILES.into_iter().flat_map(of));
        }
    }
    all
}

fn generated(seed: u64) -> Vec<Stream> {
    let session = generate::session(seed);
    let name = format!("seed {seed}");
    both(&name, &session.recording, session.policy, session.profile)
}

#[test]
fn sdk_reads_the_same_message_from_coalesced_chunks() {
    let streams = recorded()
        .into_iter()
        .chain((0..turns() as u64 / 5).flat_map(generated));
    let Some(verdicts) = judge::judge(streams) else {
        return;
    };
    let wrong = judge::report(&verdicts);
    assert!(wrong.is_empty(), "{wrong}");
    let (mut all, mut merged) = (0, 0);
    for pair in verdicts.chunks(2) {
        let [seen, slow] = pair else {
            panic!("a stream has no twin")
        };
        assert_eq!(seen.message, slow.message, "{}", seen.stream.name);
        all += seen.stream.chunks.len();
        merged += slow.stream.chunks.len();
    }
    assert!(merged < all, "{merged} of {all} chunks");
}
