//! Notices of slow starts.

use super::{Play, S};
use crate::hub::tests::play::{program, settings};
use acpipe_model::transport::Fallback;
use acpipe_protocol::wire::{FoundBy, Program};
use serde_json::json;
use std::time::Instant;

#[test]
fn slow_start_of_a_fallback_names_its_package_runner() {
    let mut settings = settings(Instant::now());
    settings.default_agent.spec.fallback = Some(Fallback {
        command: "npx".into(),
        args: vec!["-y".into(), "@google/gemini-cli".into()],
        cwd: "/".into(),
    });
    for (found_by, is_named) in [(FoundBy::PackageRunner, true), (FoundBy::Path, false)] {
        let (mut play, _) = Play::of(settings.clone(), &[]);
        play.started_as(Program {
            found_by,
            ..program()
        });
        let notices = play.wait_notices(S(3));
        let note = notices[0].1["note"].as_str().unwrap();
        let words = "npx may be downloading @google/gemini-cli";
        assert_eq!(note.contains(words), is_named, "{note}");
    }
}

#[test]
fn slow_start_notices_are_spaced_out() {
    let (mut play, hello) = Play::new("npx", &[]);
    let spawn = play.wait_notices(S(3));
    assert_eq!(spawn.len(), 1);
    assert_eq!(spawn[0].1["stage"], "spawn");
    play.started();
    play.write_stderr(b"npm warn\n");
    let wait_notices = play.wait_notices(S(50));
    let times: Vec<u64> = wait_notices.iter().map(|(at, _)| *at).collect();
    assert_eq!(times, [4, 8, 16, 32]);
    let note = wait_notices[3].1["note"].as_str().unwrap();
    for words in ["initialize, 32 s", "npx may be downloading", "npm warn"] {
        assert!(note.contains(words), "{note}");
    }
    let waiting = play.hub.status(play.now).waiting_for.unwrap();
    assert_eq!(waiting.silent_ms, 53_000);
    play.answer(&hello, &json!({"protocolVersion": 1}));
    assert_eq!(play.wait_notices(S(1000)), []);
}
