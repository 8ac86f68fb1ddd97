//! Faults of the environment, such as a full disk.

use crate::harness::server::Server;
use crate::harness::steps::{end, resumable, say, until_cancelled};
use crate::harness::{FAKE_AGENT, World, calls};
use serde_json::{Value, json};

#[test]
fn full_disk_ends_the_turn_and_keeps_the_log_intact() {
    let [wait, stop] = until_cancelled();
    let long = "x".repeat(20 << 10);
    let script = resumable(json!({
        "session/prompt": [[say("one"), end("end_turn")], [say(&long), say(&long), wait, stop]],
    }));
    let mut world = World::new();
    world.room = Some(64);
    let path = world.script(&script);
    let args = ["--", FAKE_AGENT, &path];
    let mut s = Server::in_world(world, &args);
    s.ensure("default");
    let first = s.prompt("first");
    let prompt = json!({"message": "second", "turnId": "second"});
    let id = s.send("session/prompt", &prompt);
    let summary = s.result(&id);
    assert_eq!(summary["errors"][0]["kind"], "storage", "{summary}");
    let message = summary["errors"][0]["message"].as_str().unwrap();
    assert!(message.contains("free disk space"), "{message}");
    // All chunks that the client received are stored, except the error.
    let mut seen = s.numbered("default");
    let (_, last) = seen.pop_last().unwrap();
    assert_eq!(last["type"], "error");
    assert_eq!(last["errorText"], message);
    let after = first.chunks.len();
    let page = s.call("session/replay", &json!({"afterSeq": after}));
    let stored = page["entries"].as_array().unwrap().iter();
    let stored: Vec<(u64, &Value)> = stored
        .map(|e| (e["seq"].as_u64().unwrap(), &e["chunk"]))
        .collect();
    for (seq, chunk) in &seen {
        assert!(stored.contains(&(*seq, chunk)), "{seq} {chunk}");
    }

    // With more space the session continues.
    s.world.room = None;
    let mut s = s.restarted(&args);
    let page = s.call("session/replay", &json!({"afterSeq": 0}));
    let entries = page["entries"].as_array().unwrap();
    let begin: Vec<&Value> = entries[..after].iter().map(|e| &e["chunk"]).collect();
    assert_eq!(begin, first.chunks.iter().collect::<Vec<_>>());
    assert_eq!(entries.last().unwrap()["chunk"]["type"], "error");
    // The chunks that end the second turn have the numbers after the last stored one.
    s.allow_gaps("default");
    let third = s.prompt("third");
    assert_eq!(third.one("data-recovery")["data"]["rung"], "resume");
    assert_eq!(third.summary["stopReason"], "end_turn");
    let end = s.finish();
    assert_eq!(calls(&end.log, "session/prompt").len(), 3);
}
