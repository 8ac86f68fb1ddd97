//! The index beside a long log: what is stored is the same with it and without it.

use crate::harness::World;
use crate::harness::server::{Framing, Server};
use crate::sizes::{identity, sessions, turn};
use serde_json::{Value, json};
use std::fs;
use std::io::Write as _;
use std::path::PathBuf;

const SESSION: &str = "long";

/// Turns of a log that is long enough for an index.
const TURNS: usize = 250;

/// Starts acpipe on a state directory with a long log that has no index.
fn long_log() -> (Server, PathBuf) {
    let world = World::new();
    let (mut log, mut seq) = (identity(SESSION), 0);
    for n in 0..TURNS {
        turn(n, &mut seq, &mut log);
    }
    let path = sessions(&world).join(format!("{SESSION}.jsonl"));
    fs::write(&path, &log).unwrap();
    let s = begun(Server::launch(world, &[], Framing::Lines, &[]));
    (s, path)
}

fn begun(mut s: Server) -> Server {
    s.initialize();
    s.waive("agent/state");
    s
}

fn params() -> Value {
    json!({ "sessionId": SESSION })
}

/// Returns the session, its last messages and its last chunks.
fn read(s: &mut Server) -> [Value; 3] {
    let info = s.call("session/get", &params());
    let after = info["seq"].as_u64().unwrap() - 30;
    let messages = s.call(
        "message/list",
        &json!({"sessionId": SESSION, "before": null, "limit": 9}),
    );
    let chunks = s.call(
        "session/replay",
        &json!({"sessionId": SESSION, "afterSeq": after}),
    );
    [info, messages, chunks]
}

#[test]
fn long_log_is_read_in_the_same_way_with_an_index() {
    let (mut s, log) = long_log();
    let without = read(&mut s);
    assert_eq!(without[0]["messages"], 2 * TURNS);
    let mut s = begun(s.restart(&[]));
    assert!(log.with_extension("index").exists());
    assert_eq!(read(&mut s), without);
    s.call("session/close", &params());
    // Another program, which has no index, continues the session and is killed while it writes.
    let (mut more, mut seq) = (String::new(), without[0]["seq"].as_u64().unwrap());
    turn(TURNS, &mut seq, &mut more);
    more.push_str("{\"record\":\"chunk\",\"turnId\":");
    let mut file = fs::OpenOptions::new().append(true).open(&log).unwrap();
    file.write_all(more.as_bytes()).unwrap();
    let with = read(&mut s);
    assert_eq!(with[0]["messages"], 2 * (TURNS + 1));
    assert_eq!(with[0]["seq"], seq);
    s.call("session/close", &params());
    fs::remove_file(log.with_extension("index")).unwrap();
    assert_eq!(read(&mut s), with);
    s.finish();
}

#[test]
fn index_of_other_content_is_not_used() {
    let (mut s, log) = long_log();
    read(&mut s);
    let mut s = begun(s.restart(&[]));
    let stored = fs::read(&log).unwrap();
    // A log that was cut shorter: a crash of the machine lost its end.
    let end = stored.len() / 2;
    let end = stored[..end].iter().rposition(|b| *b == b'\n').unwrap() + 1;
    fs::write(&log, &stored[..end]).unwrap();
    let mut cut = read(&mut s);
    s.call("session/close", &params());
    fs::remove_file(log.with_extension("index")).unwrap();
    let again = read(&mut s);
    // The close has stored the session's identity.
    cut[0]["updatedAt"] = again[0]["updatedAt"].clone();
    assert_eq!(again, cut);
    s.finish();
}

#[test]
fn index_is_removed_with_the_messages_and_with_the_session() {
    for (method, archive) in [
        ("session/clear", false),
        ("session/clear", true),
        ("message/clear", false),
    ] {
        let (mut s, log) = long_log();
        read(&mut s);
        let mut s = begun(s.restart(&[]));
        let index = log.with_extension("index");
        assert!(index.exists());
        s.call(method, &json!({"sessionId": SESSION, "archive": archive}));
        let s = s.restart(&[]);
        assert!(!index.exists(), "{method}, archive: {archive}");
        assert_eq!(log.exists(), method == "message/clear");
        begun(s).finish();
    }
}
