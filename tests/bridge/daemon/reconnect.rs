//! A client that loses its connection in mid-turn, again and again.

use super::Daemon;
use super::client::{folded, logged};
use crate::harness::FAKE_AGENT;
use crate::harness::steps::{end, say};
use serde_json::json;

/// Number of reconnects in a test run. `RECONNECTS=1000 cargo test --test bridge daemon::reconnect -- --ignored` has
/// more.
const RECONNECTS: usize = 60;

fn reconnect(times: usize) {
    // The turn lasts until the cancel, however long the reconnects take.
    let steps = [say("word {i} "), json!({"sleep": 1})];
    let words = json!({"repeat": {"times": 10_000_000, "until": "session/cancel", "steps": steps}});
    let steps = json!([words, {"wait": "session/cancel"}, end("cancelled")]);
    let (daemon, script) = Daemon::with_script(&json!({ "session/prompt": [steps] }));
    let mut owner = daemon.client(&["--", FAKE_AGENT, &script]);
    owner.ensure("s");
    let prompt = owner.send(
        "session/prompt",
        &json!({"sessionId": "s", "message": "go"}),
    );
    let mut chunks: Vec<(u64, Option<String>, serde_json::Value)> = Vec::new();
    for round in 0..times {
        let after = chunks.last().map_or(0, |(seq, ..)| *seq);
        let mut client = daemon.client(&[]);
        client.call(
            "session/attach",
            &json!({"sessionId": "s", "afterSeq": after}),
        );
        // Some connections end before anything has arrived, others after several chunks.
        for _ in 0..round % 5 {
            client.next("session/chunk");
        }
        chunks.append(client.chunks.entry("s".to_owned()).or_default());
    }
    owner.call("session/cancel", &json!({"sessionId": "s"}));
    owner.answer(prompt).unwrap();
    let stored = logged(&mut owner, "s");
    let after = chunks.last().map_or(0, |(seq, ..)| *seq);
    let mut client = daemon.client(&[]);
    client.call(
        "session/attach",
        &json!({"sessionId": "s", "afterSeq": after}),
    );
    while after < stored.last().unwrap().0 && client.last_seq("s") < stored.last().unwrap().0 {
        client.next("session/chunk");
    }
    chunks.append(client.chunks.entry("s".to_owned()).or_default());
    let is_increasing = chunks.windows(2).all(|pair| pair[0].0 < pair[1].0);
    assert!(is_increasing, "a chunk was repeated");
    assert_eq!(folded(&chunks), folded(&stored));
    daemon.stop();
}

#[test]
fn reconnects_in_mid_turn_lose_and_repeat_nothing() {
    reconnect(RECONNECTS);
}

#[test]
#[ignore = "long: RECONNECTS sets the number of reconnects"]
fn many_reconnects_in_mid_turn_lose_and_repeat_nothing() {
    let times = std::env::var("RECONNECTS")
        .ok()
        .and_then(|times| times.parse().ok());
    reconnect(times.unwrap_or(1000));
}
